#include "experts/ring_plan.h"

#include <algorithm>

#include "base/units.h"

namespace sluice {
namespace {

constexpr uint64_t kSlotsMin = 64;
constexpr uint64_t kSlotsMax = 4096;
constexpr uint64_t kSystemBytesMin = 4 * kGiB;
constexpr uint64_t kSystemShare = 8;  ///< of the machine's memory is the system's
constexpr uint64_t kFloorShare = 4;   ///< of what is free is the ring's in any case

uint64_t less(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

/// The slots that the ring would have if nobody had said anything.
uint64_t automatic_slots(const RingInput& input, uint64_t slot_bytes, RingPlan& plan) {
  const uint64_t system_bytes = std::max(input.machine_bytes / kSystemShare, kSystemBytesMin);
  const uint64_t free_bytes =
      less(input.available_bytes, input.resident_bytes + input.overhead_bytes);
  const uint64_t polite_bytes = less(free_bytes, system_bytes);
  const uint64_t floor_bytes = free_bytes / kFloorShare;
  if (polite_bytes < floor_bytes)
    plan.notes.push_back(fmt::format(
        "the ring takes a quarter of the {} that are free: less than {} remain for the system",
        format_bytes(free_bytes), format_bytes(system_bytes)));
  const uint64_t slots = std::max(polite_bytes, floor_bytes) / slot_bytes;
  // More slots than experts are of no use, so that limit needs no words.
  if (slots > kSlotsMax && input.experts_total > kSlotsMax)
    plan.notes.push_back(fmt::format(
        "the ring gets {} slots, its most, though memory would hold {}; --moe-stream-ring asks for "
        "more",
        kSlotsMax, slots));
  if (slots < kSlotsMin && input.experts_total > slots)
    plan.notes.push_back(
        fmt::format("the ring gets {} slots, its least, where {} would leave the "
                    "system its share",
                    kSlotsMin, slots));
  return std::clamp(slots, kSlotsMin, kSlotsMax);
}

uint64_t wanted_slots(const RingInput& input, uint64_t slot_bytes, RingPlan& plan) {
  if (input.slots_asked) return *input.slots_asked;
  if (input.bytes_asked) return *input.bytes_asked / slot_bytes;
  return automatic_slots(input, slot_bytes, plan);
}

}  // namespace

RingPlan plan_ring(const RingInput& input) {
  RingPlan plan;
  plan.slot_bytes = round_up(std::max<uint64_t>(input.expert_bytes_max, 1), input.page_bytes);
  uint64_t slots =
      std::min<uint64_t>(wanted_slots(input, plan.slot_bytes, plan), input.experts_total);
  const uint64_t budget_slots =
      input.budget_bytes ? *input.budget_bytes / plan.slot_bytes : UINT64_MAX;
  if (slots > budget_slots) {
    plan.notes.push_back(
        fmt::format("the ring gets {} slots instead of {}: {} are to be had for "
                    "experts",
                    std::max<uint64_t>(budget_slots, input.slots_min), slots,
                    format_bytes(*input.budget_bytes)));
    slots = budget_slots;
  }
  if (slots < input.slots_min) {
    plan.notes.push_back(
        fmt::format("the ring gets {} slots instead of {}: the experts of a token "
                    "in one layer must fit at once; expect every expert to be "
                    "read",
                    input.slots_min, slots));
    slots = input.slots_min;
  }
  plan.slot_count = static_cast<uint32_t>(slots);
  plan.all_resident = slots == input.experts_total;
  return plan;
}

}  // namespace sluice
