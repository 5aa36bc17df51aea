// How many slots the ring pool gets (--moe-stream-pool ring). One ring serves all layers, so a slot
// holds the largest expert of the model. By itself the ring leaves the system more than the layer
// pools do, an eighth of its memory or 4 GiB, because it is meant for machines that people work at.
// A plan on paper: numbers in, numbers and sentences out. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

struct RingInput {
  uint64_t machine_bytes = 0;     ///< all memory of the machine
  uint64_t available_bytes = 0;   ///< what it could give, and what we have of it already
  uint64_t resident_bytes = 0;    ///< dense weights and the rest that stays
  uint64_t overhead_bytes = 0;    ///< KV cache, scratch, program, …
  uint64_t expert_bytes_max = 0;  ///< the largest expert, with its room for alignment
  uint64_t page_bytes = 4096;
  uint32_t experts_total = 0;  ///< of all layers: more slots are of no use
  uint32_t slots_min = 0;      ///< without which no token can run (a layer's experts used)
  /// What a stated cap or a control group leaves for the ring; never exceeded, except by slots_min.
  std::optional<uint64_t> budget_bytes = {};
  std::optional<uint32_t> slots_asked = {};  ///< outright
  std::optional<uint64_t> bytes_asked = {};  ///< the slots that these hold, if no number was asked
};

struct RingPlan {
  uint32_t slot_count = 0;
  uint64_t slot_bytes = 0;
  uint64_t ring_bytes() const { return slot_count * slot_bytes; }
  bool all_resident = false;       ///< every expert has a slot
  std::vector<std::string> notes;  ///< one line each: what was done and why, for the user
};

/// slots = (available − resident − overhead − max(machine / 8, 4 GiB)) / slot, at least a quarter
/// of what is free (available − resident − overhead), from 64 to 4096; then within the budget.
RingPlan plan_ring(const RingInput& input);

}  // namespace sluice
