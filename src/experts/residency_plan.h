// How many slots each layer gets. A plan is a decision on paper: numbers in, numbers and sentences
// out, nothing allocated. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice {

struct ResidencyInput {
  struct Layer {
    uint32_t expert_count = 0;  ///< 0: nothing streams in this layer
    uint64_t slot_bytes = 0;
  };
  std::vector<Layer> layers;
  uint32_t used_count = 0;                       ///< experts a token uses, k
  uint64_t cache_bytes_max = 0;                  ///< what the cache may take
  std::optional<uint32_t> slots_per_layer = {};  ///< asked for; given if the bytes allow
};

struct ResidencyPlan {
  std::vector<uint32_t> slot_counts;  ///< [layer]
  uint64_t cache_bytes = 0;
  bool all_resident = false;       ///< every expert has a slot
  std::vector<std::string> notes;  ///< one line each: what was done and why, for the user
};

/// Every MoE layer gets the same number of slots, but never more than it has experts and never
/// fewer than k: a layer's experts of one token must fit at once. Bytes left over go to layers from
/// the first on, a slot each. Too little memory is never refused; a note says what it costs.
ResidencyPlan plan_residency(const ResidencyInput& input);

}  // namespace sluice
