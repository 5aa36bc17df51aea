#include "engine/cache_balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "base/units.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr BalanceLimits kLimits{.cap_bytes = 0,
                                .headroom_bytes = 512 * kMiB,
                                .floor_bytes = 400 * kMiB,
                                .planned_bytes = 4 * kGiB};

/// A process with a cache and 1 GiB of everything else on a machine with so much available.
BalanceInput at(uint64_t seconds, uint64_t cache_bytes, uint64_t available_bytes) {
  return {.now_ns = seconds * kSecond,
          .memory = {.total_bytes = 16 * kGiB,
                     .available_bytes = available_bytes,
                     .cgroup_left_bytes = {},
                     .cgroup_limit_bytes = {}},
          .resident_bytes = 1 * kGiB + cache_bytes,
          .ledger_bytes = 900 * kMiB + cache_bytes,
          .overhead_bytes = 100 * kMiB,
          .cache_bytes = cache_bytes};
}

TEST(CacheBalance, LeavesThingsAloneWithinTheHeadroom) {
  CacheBalance balance(kLimits);
  for (uint64_t t = 1; t < 100; ++t) {
    const uint64_t available = t % 2 == 0 ? 512 * kMiB : 384 * kMiB;  // 3/4 of the headroom
    const BalanceStep step = balance.decide(at(t, 4 * kGiB, available));
    EXPECT_EQ(step.reason, BalanceReason::balanced);
    EXPECT_EQ(step.text(), "");
  }
}

TEST(CacheBalance, GivesBackTheHeadroomAtOnce) {
  CacheBalance balance(kLimits);
  const BalanceStep step = balance.decide(at(1, 4 * kGiB, 383 * kMiB));
  EXPECT_EQ(step.give_bytes, 129 * kMiB);
  EXPECT_EQ(step.take_bytes, 0u);
  EXPECT_EQ(step.text(), "the expert cache gives back 129.0 MiB: the machine is short of memory");
  EXPECT_EQ(balance.decide(at(1, 4 * kGiB, 0)).give_bytes, 512 * kMiB) << "no waiting in between";
}

TEST(CacheBalance, TheControlGroupsMarginCounts) {
  CacheBalance balance(kLimits);
  BalanceInput input = at(1, 4 * kGiB, 8 * kGiB);
  input.memory.cgroup_left_bytes = 6 * kMiB;
  EXPECT_EQ(balance.decide(input).give_bytes, 0u);
  input.memory.cgroup_left_bytes = 5 * kMiB;
  const BalanceStep step = balance.decide(input);
  EXPECT_EQ(step.give_bytes, 7 * kMiB);
  EXPECT_EQ(step.reason, BalanceReason::control_group);
}

TEST(CacheBalance, TheStatedCapHoldsToTheByte) {
  BalanceLimits limits = kLimits;
  limits.cap_bytes = 5 * kGiB;
  CacheBalance balance(limits);
  EXPECT_EQ(balance.decide(at(1, 4 * kGiB, 8 * kGiB)).give_bytes, 0u) << "exactly the cap";
  BalanceInput input = at(2, 4 * kGiB, 8 * kGiB);
  ++input.resident_bytes;
  EXPECT_EQ(balance.decide(input).give_bytes, 1u);
  input = at(3, 4 * kGiB, 8 * kGiB);
  input.ledger_bytes += 30 * kMiB;  // booked and not touched yet
  const BalanceStep step = balance.decide(input);
  EXPECT_EQ(step.give_bytes, 6 * kMiB) << "1000 + 30 of 1024 MiB beside the cache";
  EXPECT_THAT(step.text(), HasSubstr("within --ram"));
}

/// A cache that is still filling would run into a limit between two samples.
TEST(CacheBalance, WhatIsBookedCountsAsTaken) {
  BalanceInput input = at(1, 4 * kGiB, 1512 * kMiB);
  input.resident_bytes -= 1024 * kMiB;  // 1000 MiB of what is booked have not been touched
  EXPECT_EQ(CacheBalance(kLimits).decide(input).give_bytes, 0u) << "just the headroom will be left";
  input.memory.available_bytes -= 200 * kMiB;
  EXPECT_EQ(CacheBalance(kLimits).decide(input).give_bytes, 200 * kMiB);
  input.memory.available_bytes = 8 * kGiB;
  input.memory.cgroup_left_bytes = 1012 * kMiB;
  EXPECT_EQ(CacheBalance(kLimits).decide(input).give_bytes, 0u);
  *input.memory.cgroup_left_bytes -= 50 * kMiB;
  const BalanceStep step = CacheBalance(kLimits).decide(input);
  EXPECT_EQ(step.give_bytes, 50 * kMiB);
  EXPECT_EQ(step.reason, BalanceReason::control_group);

  CacheBalance balance(kLimits);
  input = at(1, 2 * kGiB, 1770 * kMiB);
  input.resident_bytes -= 1024 * kMiB;
  balance.decide(input);
  input.now_ns = 12 * kSecond;
  EXPECT_EQ(balance.decide(input).take_bytes, 2 * kMiB) << "nor is it taken twice";
}

TEST(CacheBalance, NeverBelowTheExpertsOfAToken) {
  CacheBalance balance(kLimits);
  EXPECT_EQ(balance.decide(at(1, 450 * kMiB, 0)).give_bytes, 50 * kMiB);
  EXPECT_EQ(balance.decide(at(2, 400 * kMiB, 0)).reason, BalanceReason::balanced);
  EXPECT_EQ(balance.decide(at(3, 100 * kMiB, 0)).give_bytes, 0u);
}

TEST(CacheBalance, PressureCostsASixteenthASecond) {
  CacheBalance balance(kLimits);
  BalanceInput input = at(1, 3200 * kMiB, 1000 * kMiB);
  input.pressure = PressureSignal::pressed;
  const BalanceStep step = balance.decide(input);
  EXPECT_EQ(step.give_bytes, 200 * kMiB);
  EXPECT_EQ(step.reason, BalanceReason::pressure);
  input.now_ns += kSecond - 1;
  EXPECT_EQ(balance.decide(input).give_bytes, 0u);
  input.now_ns += 1;
  EXPECT_EQ(balance.decide(input).give_bytes, 200 * kMiB);
}

// A machine whose memory is full of cached files reports pressure whenever someone asks for much at
// once: 16 GiB of slots that fill, say. Nobody gains by slots that are given back then.
TEST(CacheBalance, PressureWithoutAShortageIsTheFileCaches) {
  CacheBalance balance(kLimits);
  BalanceInput input = at(1, 3200 * kMiB, 1 * kGiB);
  input.pressure = PressureSignal::pressed;
  EXPECT_EQ(balance.decide(input).reason, BalanceReason::balanced);
  input.memory.available_bytes -= 1;
  EXPECT_EQ(balance.decide(input).reason, BalanceReason::pressure);

  input = at(10, 3200 * kMiB, 8 * kGiB);
  input.pressure = PressureSignal::pressed;
  EXPECT_EQ(balance.decide(input).reason, BalanceReason::balanced);
  input.memory.cgroup_left_bytes = 500 * kMiB;
  EXPECT_EQ(balance.decide(input).reason, BalanceReason::pressure) << "the control group's";
}

TEST(CacheBalance, TakesAgainSlowlyAndOnlyInCalm) {
  CacheBalance balance(kLimits);
  EXPECT_GT(balance.decide(at(100, 4 * kGiB, 0)).give_bytes, 0u);
  for (uint64_t t = 101; t < 110; ++t)
    EXPECT_EQ(balance.decide(at(t, 2 * kGiB, 8 * kGiB)).take_bytes, 0u) << t;
  const BalanceStep step = balance.decide(at(110, 2 * kGiB, 8 * kGiB));
  EXPECT_EQ(step.take_bytes, 256 * kMiB + 1) << "a sixteenth of 4 GiB, rounded up";
  EXPECT_EQ(step.reason, BalanceReason::calm);
  EXPECT_EQ(balance.decide(at(110, 2 * kGiB, 8 * kGiB)).take_bytes, 0u) << "once a second";
  EXPECT_EQ(balance.decide(at(111, 2 * kGiB, 768 * kMiB)).take_bytes, 0u) << "1.5 headrooms";
  EXPECT_EQ(balance.decide(at(112, 2 * kGiB, 770 * kMiB)).take_bytes, 2 * kMiB);
  EXPECT_EQ(balance.decide(at(113, 4 * kGiB - 100, 8 * kGiB)).take_bytes, 100u) << "the plan";
  BalanceInput pressed = at(114, 2 * kGiB, 8 * kGiB);
  pressed.pressure = PressureSignal::pressed;
  balance.decide(pressed);
  EXPECT_EQ(balance.decide(at(123, 2 * kGiB, 8 * kGiB)).take_bytes, 0u) << "calm starts anew";
}

TEST(CacheBalance, APromptBorrowsAndReturns) {
  BalanceLimits limits = kLimits;
  limits.cap_bytes = 5 * kGiB;
  CacheBalance balance(limits);
  BalanceInput prompt = at(1, 4 * kGiB, 8 * kGiB);
  prompt.work = WorkKind::prompt;
  prompt.ledger_bytes += 324 * kMiB;
  EXPECT_EQ(balance.decide(prompt).give_bytes, 300 * kMiB);

  prompt = at(2, 4 * kGiB - 300 * kMiB, 8 * kGiB);
  prompt.ledger_bytes += 324 * kMiB;
  prompt.work = WorkKind::prompt;
  EXPECT_EQ(balance.decide(prompt).reason, BalanceReason::balanced);

  BalanceInput decode = at(3, 4 * kGiB - 300 * kMiB, 8 * kGiB);
  decode.work = WorkKind::decode;
  const BalanceStep step = balance.decide(decode);
  EXPECT_EQ(step.take_bytes, 300 * kMiB) << "at once";
  EXPECT_EQ(step.reason, BalanceReason::prompt_over);
  EXPECT_EQ(balance.decide(decode).take_bytes, 0u) << "and once";
}

/// A machine on which another program grows and shrinks: the cache must follow without swinging.
TEST(CacheBalance, DoesNotSwing) {
  CacheBalance balance(kLimits);
  uint64_t cache = 4 * kGiB;
  int give_count = 0;
  const auto live = [&](uint64_t from, uint64_t to, uint64_t other_bytes) {
    for (uint64_t t = from; t < to; ++t) {
      const uint64_t used = other_bytes + 1 * kGiB + cache;
      const uint64_t available = 16 * kGiB - std::min(16 * kGiB, used);
      const BalanceStep step = balance.decide(at(t, cache, available));
      cache = cache - step.give_bytes + step.take_bytes;
      give_count += step.give_bytes > 0 ? 1 : 0;
    }
  };
  live(1, 100, 8 * kGiB);
  EXPECT_EQ(cache, 4 * kGiB);
  live(100, 200, 13 * kGiB);
  EXPECT_EQ(cache, 1536 * kMiB) << "16 − 13 − 1 − 0.5";
  EXPECT_EQ(give_count, 5) << "2.5 GiB, of which a machine without memory shows 0.5 at a time";
  live(200, 300, 12 * kGiB);
  EXPECT_EQ(cache, 2304 * kMiB) << "16 − 12 − 1 − 0.75";
  live(300, 400, 8 * kGiB);
  EXPECT_EQ(cache, 4 * kGiB);
  EXPECT_EQ(give_count, 5) << "taking never led to giving";
}

TEST(CacheBalance, KeepsItsBoundsWhateverHappens) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    BalanceLimits limits = kLimits;
    limits.cap_bytes = random.below(2) * random.below(8 * kGiB);
    CacheBalance balance(limits);
    uint64_t cache = 4 * kGiB;
    for (uint64_t t = 1; t < 200; ++t) {
      BalanceInput input = at(t, cache, random.below(4 * kGiB));
      if (random.below(2) == 0) input.memory.cgroup_left_bytes = random.below(2 * kGiB);
      input.pressure = random.below(10) == 0 ? PressureSignal::pressed : PressureSignal::none;
      input.work = static_cast<WorkKind>(random.below(3));
      const BalanceStep step = balance.decide(input);
      ASSERT_TRUE(step.give_bytes == 0 || step.take_bytes == 0);
      ASSERT_EQ(step.reason == BalanceReason::balanced, step.give_bytes + step.take_bytes == 0);
      ASSERT_EQ(step.reason == BalanceReason::balanced, step.text().empty());
      cache = cache - step.give_bytes + step.take_bytes;
      ASSERT_GE(cache, limits.floor_bytes);
      ASSERT_LE(cache, limits.planned_bytes);
      if (limits.cap_bytes > 0 && cache > limits.floor_bytes) {
        ASSERT_LE(1 * kGiB + cache, limits.cap_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
