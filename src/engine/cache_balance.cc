#include "engine/cache_balance.h"

#include <algorithm>
#include <limits>

#include "base/units.h"

namespace sluice {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kCalmNs = 10 * kSecond;
constexpr uint64_t kTakeIntervalNs = kSecond;
constexpr uint64_t kPressureIntervalNs = kSecond;
constexpr uint64_t kShare = 16;  ///< of the cache: what pressure costs, and what calm gives
/// As memory_plan.cc leaves it: what the kernel holds for us counts in a control group.
constexpr uint64_t kGroupMargin = 12 * kMiB;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

int64_t difference(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a) - static_cast<int64_t>(b);
}

uint64_t missing(int64_t spare) {
  return spare < 0 ? static_cast<uint64_t>(-spare) : 0;
}

}  // namespace

struct CacheBalance::Spare {
  int64_t cap;      ///< below the cap
  int64_t machine;  ///< free beyond the headroom
  int64_t group;    ///< left beyond the margin
  int64_t least() const { return std::min({cap, machine, group}); }
};

CacheBalance::CacheBalance(const BalanceLimits& limits) : limits_(limits) {}

BalanceStep CacheBalance::decide(const BalanceInput& input) {
  if (calm_since_ns_ == 0) calm_since_ns_ = input.now_ns;
  if (input.pressure == PressureSignal::pressed) calm_since_ns_ = input.now_ns;
  const Spare spare = measure(input);
  BalanceStep step = give(input, spare);
  if (step.reason == BalanceReason::balanced) step = take(input, spare);
  return step;
}

CacheBalance::Spare CacheBalance::measure(const BalanceInput& input) const {
  // What is booked will be touched sooner or later, and faster than samples come: an empty cache
  // fills at the drive's rate. Every limit must hold then, too.
  const uint64_t own = std::max(input.resident_bytes, input.ledger_bytes + input.overhead_bytes);
  const uint64_t untouched = own - input.resident_bytes;
  return {.cap = limits_.cap_bytes > 0 ? difference(limits_.cap_bytes, own) : kUnlimited,
          .machine = difference(input.memory.available_bytes, limits_.headroom_bytes + untouched),
          .group = input.memory.cgroup_left_bytes
                       ? difference(*input.memory.cgroup_left_bytes, kGroupMargin + untouched)
                       : kUnlimited};
}

BalanceStep CacheBalance::give(const BalanceInput& input, const Spare& spare) {
  BalanceStep step;
  const auto want = [&](uint64_t bytes, BalanceReason reason) {
    if (bytes > step.give_bytes) step = {.give_bytes = bytes, .take_bytes = 0, .reason = reason};
  };
  want(missing(spare.cap), BalanceReason::cap);
  if (missing(spare.machine) > limits_.headroom_bytes / 4)
    want(missing(spare.machine), BalanceReason::headroom);
  if (missing(spare.group) > kGroupMargin / 2)
    want(missing(spare.group), BalanceReason::control_group);
  const bool again = pressed_ns_ == 0 || input.now_ns - pressed_ns_ >= kPressureIntervalNs;
  const bool is_short =
      std::min(spare.machine, spare.group) < static_cast<int64_t>(limits_.headroom_bytes);
  if (input.pressure == PressureSignal::pressed && is_short && again && step.give_bytes == 0) {
    pressed_ns_ = input.now_ns;
    want(input.cache_bytes / kShare, BalanceReason::pressure);
  }
  const uint64_t above_floor = input.cache_bytes - std::min(input.cache_bytes, limits_.floor_bytes);
  step.give_bytes = std::min(step.give_bytes, above_floor);
  if (step.give_bytes == 0) return {};
  calm_since_ns_ = input.now_ns;
  // What a prompt drove out comes back with its end; only the cap is sure to have been the
  // prompt's.
  if (input.work == WorkKind::prompt && step.reason == BalanceReason::cap)
    lent_bytes_ += step.give_bytes;
  return step;
}

BalanceStep CacheBalance::take(const BalanceInput& input, const Spare& spare) {
  const uint64_t below_plan =
      limits_.planned_bytes - std::min(limits_.planned_bytes, input.cache_bytes);
  if (below_plan == 0 || spare.least() <= 0) return {};
  const auto room = static_cast<uint64_t>(spare.least());

  if (input.work == WorkKind::decode && lent_bytes_ > 0) {
    const uint64_t bytes = std::min({lent_bytes_, below_plan, room});
    lent_bytes_ = 0;
    return {.give_bytes = 0, .take_bytes = bytes, .reason = BalanceReason::prompt_over};
  }
  const bool is_calm = input.now_ns - calm_since_ns_ >= kCalmNs;
  const bool is_time = taken_ns_ == 0 || input.now_ns - taken_ns_ >= kTakeIntervalNs;
  const bool is_roomy = spare.machine > static_cast<int64_t>(limits_.headroom_bytes / 2) &&
                        spare.group > static_cast<int64_t>(kGroupMargin / 2);
  if (!is_calm || !is_time || !is_roomy || input.work == WorkKind::prompt) return {};
  // So much stays free that taking does not lead to giving.
  const uint64_t kept_free = limits_.headroom_bytes / 2;
  const uint64_t takeable = std::min(static_cast<uint64_t>(spare.machine) - kept_free, room);
  const uint64_t bytes = std::min({below_plan, takeable, limits_.planned_bytes / kShare + 1});
  taken_ns_ = input.now_ns;
  return {.give_bytes = 0, .take_bytes = bytes, .reason = BalanceReason::calm};
}

std::string BalanceStep::text() const {
  switch (reason) {
    case BalanceReason::balanced:
      return {};
    case BalanceReason::cap:
      return fmt::format("the expert cache gives back {} to keep within --ram",
                         format_bytes(give_bytes));
    case BalanceReason::headroom:
      return fmt::format("the expert cache gives back {}: the machine is short of memory",
                         format_bytes(give_bytes));
    case BalanceReason::control_group:
      return fmt::format("the expert cache gives back {}: the control group is short of memory",
                         format_bytes(give_bytes));
    case BalanceReason::pressure:
      return fmt::format("the expert cache gives back {}: the kernel reports memory pressure",
                         format_bytes(give_bytes));
    case BalanceReason::prompt_over:
      return fmt::format("the expert cache takes back {} that the prompt needed",
                         format_bytes(take_bytes));
    case BalanceReason::calm:
      return fmt::format("the expert cache takes back {}: memory is free again",
                         format_bytes(take_bytes));
  }
  return {};
}

}  // namespace sluice
