#include "engine/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/random.h"
#include "base/units.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSmallAllocations = 6 * kMiB;  // as in memory_plan.cc

os::MemoryState machine(uint64_t available, std::optional<uint64_t> cgroup_left = {}) {
  return {.total_bytes = 64 * kGiB,
          .available_bytes = available,
          .cgroup_left_bytes = cgroup_left,
          .cgroup_limit_bytes = {}};
}

std::function<uint64_t(size_t)> each_token(uint64_t bytes) {
  return [bytes](size_t context_tokens) { return context_tokens * bytes; };
}

/// A model of about a GiB of dense weights whose KV cache takes 96 KiB a token.
const MemoryNeeds kModel{.process_bytes = 40 * kMiB,
                         .dense_bytes = 1 * kGiB,
                         .io_bytes = 1 * kMiB,
                         .context_bytes = each_token(96 * kKiB),
                         .ubatch_bytes_per_token = 64 * kKiB,
                         .batch_bytes_per_token = 128 * kKiB,
                         .fixed_scratch_bytes = 20 * kMiB,
                         .cache_bytes_min = 500 * kMiB,
                         .context_trained_tokens = 32768};

uint64_t fixed_bytes(const MemoryNeeds& needs, const MemoryPlan& plan) {
  return needs.process_bytes + kSmallAllocations + needs.dense_bytes + needs.io_bytes +
         needs.fixed_scratch_bytes + needs.context_bytes(plan.context_tokens) +
         plan.ubatch_tokens * needs.ubatch_bytes_per_token + needs.batch_bytes_per_token;
}

/// What a prompt borrows from the expert cache.
uint64_t prompt_bytes(const MemoryNeeds& needs, const MemoryPlan& plan) {
  return plan.batch_tokens * needs.batch_bytes_per_token +
         plan.step_tokens * needs.step_bytes_per_token;
}

TEST(MemoryPlan, AvailableMemoryLessTheHeadroom) {
  const MemoryPlan plan = plan_memory(machine(16 * kGiB), {}, kModel);
  EXPECT_EQ(plan.budget_bytes, 16 * kGiB + 40 * kMiB - 512 * kMiB);
  EXPECT_EQ(plan.budget_reason, "available memory less the headroom");
  EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(MemoryPlan, TheControlGroupsLimitWhereItIsLower) {
  const MemoryPlan plan = plan_memory(machine(16 * kGiB, 4 * kGiB), {}, kModel);
  EXPECT_EQ(plan.budget_bytes, 4 * kGiB + 40 * kMiB - 12 * kMiB);
  EXPECT_THAT(plan.budget_reason, HasSubstr("control group"));
  const MemoryPlan wide = plan_memory(machine(4 * kGiB, 16 * kGiB), {}, kModel);
  EXPECT_EQ(wide.budget_bytes, 4 * kGiB + 40 * kMiB - 512 * kMiB);
}

TEST(MemoryPlan, HeadroomDoesNotReduceTheGroupsLimit) {
  EngineOptions options;
  options.headroom_bytes = 1 * kGiB;
  EXPECT_EQ(plan_memory(machine(16 * kGiB, 4 * kGiB), options, kModel).budget_bytes,
            4 * kGiB + 28 * kMiB);
}

TEST(MemoryPlan, RamIsTakenAtItsWord) {
  EngineOptions options;
  options.ram_bytes = 3 * kGiB;
  const MemoryPlan plan = plan_memory(machine(1 * kGiB, 2 * kGiB), options, kModel);
  EXPECT_EQ(plan.budget_bytes, 3 * kGiB);
  EXPECT_EQ(plan.budget_reason, "--ram");
}

TEST(MemoryPlan, AHeadroomAboveAllMemoryLeavesNothing) {
  EngineOptions options;
  options.headroom_bytes = 100 * kGiB;
  const MemoryPlan plan = plan_memory(machine(16 * kGiB), options, kModel);
  EXPECT_EQ(plan.budget_bytes, 0u);
  EXPECT_EQ(plan.cache_bytes_max, 0u);
  EXPECT_FALSE(plan.notes.empty());
}

TEST(MemoryPlan, AutomaticContextTakesAnEighth) {
  EngineOptions options;
  options.ram_bytes = 3 * kGiB;  // an eighth holds 4096 tokens of 96 KiB
  EXPECT_EQ(plan_memory(machine(0), options, kModel).context_tokens, 4096u);
  options.ram_bytes = 64 * kGiB;
  EXPECT_EQ(plan_memory(machine(0), options, kModel).context_tokens, 8192u) << "the most";
  options.ram_bytes = 100 * kMiB;
  EXPECT_EQ(plan_memory(machine(0), options, kModel).context_tokens, 512u) << "the least";
  MemoryNeeds needs = kModel;
  needs.context_trained_tokens = 300;
  options.ram_bytes = 64 * kGiB;
  EXPECT_EQ(plan_memory(machine(0), options, needs).context_tokens, 300u) << "as trained";
}

TEST(MemoryPlan, AContextAskedForIsGivenWithANoteBeyondTraining) {
  EngineOptions options;
  options.context_tokens = 32768;
  EXPECT_THAT(plan_memory(machine(16 * kGiB), options, kModel).notes, IsEmpty());
  options.context_tokens = 32769;
  const MemoryPlan plan = plan_memory(machine(16 * kGiB), options, kModel);
  EXPECT_EQ(plan.context_tokens, 32769u);
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("trained for 32768 positions")));
}

TEST(MemoryPlan, APromptGoesInOneBatchWhereASixteenthHoldsIt) {
  EngineOptions options;
  options.ram_bytes = 16 * kGiB;  // a sixteenth holds 8192 tokens of 128 KiB, 4096 are the most
  const MemoryPlan plan = plan_memory(machine(0), options, kModel);
  EXPECT_EQ(plan.batch_tokens, 4096u);
  EXPECT_EQ(plan.ubatch_tokens, 512u);
  options.ram_bytes = 4 * kGiB;
  EXPECT_EQ(plan_memory(machine(0), options, kModel).batch_tokens, 2048u);
}

TEST(MemoryPlan, ALongPromptPassesTheLayersInOneStepWhereASixteenthHoldsItsStates) {
  EngineOptions options;
  options.context_tokens = 32768;
  options.ram_bytes = 16 * kGiB;
  MemoryNeeds needs = kModel;
  needs.step_bytes_per_token = 8 * kKiB;  // 256 MiB
  EXPECT_EQ(plan_memory(machine(0), options, needs).step_tokens, 32768u);
  needs.step_bytes_per_token = 64 * kKiB;  // a sixteenth is 1 GiB
  const MemoryPlan plan = plan_memory(machine(0), options, needs);
  EXPECT_EQ(plan.step_tokens, 16384u);
  EXPECT_EQ(plan.batch_tokens, 4096u);
}

TEST(MemoryPlan, NoPieceIsLongerThanTheContext) {
  EngineOptions options;
  options.context_tokens = 100;
  const MemoryPlan plan = plan_memory(machine(16 * kGiB), options, kModel);
  EXPECT_EQ(plan.ubatch_tokens, 100u);
  EXPECT_EQ(plan.batch_tokens, 100u);
  options.context_tokens = 1;
  EXPECT_EQ(plan_memory(machine(16 * kGiB), options, kModel).batch_tokens, 1u);
}

TEST(MemoryPlan, WhatIsLeftGoesToExperts) {
  const MemoryPlan plan = plan_memory(machine(16 * kGiB), {}, kModel);
  EXPECT_EQ(plan.cache_bytes_max + fixed_bytes(kModel, plan), plan.budget_bytes);
}

TEST(MemoryPlan, TightMemoryCutsPromptsBeforeItExceedsTheBudget) {
  EngineOptions options;
  options.context_tokens = 1024;  // 96 MiB
  // Dense, KV, program and the smallest cache: 1707 MiB; a ubatch of 512 takes 96 MiB more.
  options.ram_bytes = 1740 * kMiB;
  const MemoryPlan plan = plan_memory(machine(0), options, kModel);
  EXPECT_LT(plan.ubatch_tokens, 512u);
  EXPECT_EQ(plan.batch_tokens, plan.ubatch_tokens);
  EXPECT_LE(fixed_bytes(kModel, plan) + prompt_bytes(kModel, plan) + kModel.cache_bytes_min,
            plan.budget_bytes);
  EXPECT_GE(plan.cache_bytes_max, kModel.cache_bytes_min + plan.prompt_bytes);
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("so their experts are read more than once")));
}

TEST(MemoryPlan, ADenseModelIsToldNothingOfExperts) {
  EngineOptions options;
  options.context_tokens = 1024;
  options.ram_bytes = 1740 * kMiB;
  MemoryNeeds dense = kModel;
  dense.dense_bytes += std::exchange(dense.cache_bytes_min, 0);
  EXPECT_THAT(plan_memory(machine(0), options, dense).notes,
              ElementsAre(::testing::EndsWith("tokens")));
}

TEST(MemoryPlan, AContextTooLongIsRefusedWithTheOneThatFits) {
  EngineOptions options;
  options.context_tokens = 1 << 20;  // 96 GiB
  options.ram_bytes = 16 * kGiB;
  const MemoryPlan plan = plan_memory(machine(0), options, kModel);
  EXPECT_THAT(plan.refusal, HasSubstr("--ctx 1048576 needs 96.00 GiB"));
  EXPECT_THAT(plan.refusal, HasSubstr("16.00 GiB (--ram)"));
  EXPECT_THAT(plan.refusal, HasSubstr(fmt::format("; --ctx {} fits", plan.context_tokens_fit)));
  // Asked for that one, nothing is exceeded; for one more, the budget is.
  options.context_tokens = static_cast<uint32_t>(plan.context_tokens_fit);
  options.ubatch_tokens = 16;
  const MemoryPlan fits = plan_memory(machine(0), options, kModel);
  EXPECT_EQ(fits.refusal, "");
  EXPECT_LE(fixed_bytes(kModel, fits) + prompt_bytes(kModel, fits) + kModel.cache_bytes_min,
            fits.budget_bytes);
  EXPECT_GT(fits.context_tokens, 100000u);
  ++options.context_tokens;
  EXPECT_NE(plan_memory(machine(0), options, kModel).refusal, "");
}

TEST(MemoryPlan, WhatAContextTakesNeedNotGrowWithIt) {
  MemoryNeeds needs = kModel;
  needs.context_bytes = [](size_t context) { return std::min<size_t>(context, 1000) * kMiB; };
  EngineOptions options;
  options.ram_bytes = 16 * kGiB;
  options.context_tokens = 1 << 20;
  EXPECT_EQ(plan_memory(machine(0), options, needs).refusal, "");
  options.context_tokens = 0;
  EXPECT_EQ(plan_memory(machine(0), options, needs).context_tokens, 8192u);
  options.ram_bytes = 5600 * kMiB;  // an eighth is 700 tokens
  EXPECT_EQ(plan_memory(machine(0), options, needs).context_tokens, 700u);
}

TEST(MemoryPlan, AContextIsNotRefusedForWhatTheModelTakes) {
  EngineOptions options;
  options.ram_bytes = 1 * kGiB;
  options.context_tokens = 512;
  EXPECT_EQ(plan_memory(machine(0), options, kModel).refusal, "") << "none would fit";
  options.context_tokens = 1 << 20;
  EXPECT_THAT(plan_memory(machine(0), options, kModel).refusal, HasSubstr("0 B are left for them"));
}

TEST(MemoryPlan, TooLittleMemoryIsSaidAndNotRefused) {
  EngineOptions options;
  options.ram_bytes = 1 * kGiB;
  const MemoryPlan plan = plan_memory(machine(0), options, kModel);
  EXPECT_EQ(plan.ubatch_tokens, 16u);
  EXPECT_EQ(plan.cache_bytes_max, 0u);
  ASSERT_EQ(plan.notes.size(), 2u);
  EXPECT_THAT(plan.notes[1], HasSubstr("--ram"));
  EXPECT_THAT(plan.notes[1], HasSubstr("1.00 GiB"));
}

/// Whatever the numbers: the parts never sum to more than the budget, unless a note says so.
TEST(MemoryPlan, SumsNeverExceedTheBudgetInSilence) {
  Random random(7);
  const auto up_to = [&](uint64_t most) { return random.below(most + 1); };
  for (int round = 0; round < 20000; ++round) {
    const MemoryNeeds needs{
        .process_bytes = up_to(100 * kMiB),
        .dense_bytes = up_to(4 * kGiB),
        .io_bytes = up_to(kMiB),
        .context_bytes = each_token(up_to(kMiB)),
        .ubatch_bytes_per_token = up_to(kMiB),
        .batch_bytes_per_token = up_to(kMiB),
        .step_bytes_per_token = up_to(64 * kKiB),
        .fixed_scratch_bytes = up_to(100 * kMiB),
        .cache_bytes_min = up_to(kGiB),
        .context_trained_tokens = static_cast<uint32_t>(1 + up_to(100000)),
    };
    EngineOptions options;
    options.context_tokens = static_cast<uint32_t>(up_to(1) * (1 + up_to(5000)));
    options.ubatch_tokens = static_cast<uint32_t>(1 + up_to(2000));
    options.ram_bytes = up_to(1) * up_to(8 * kGiB);
    const auto state =
        machine(up_to(8 * kGiB), up_to(1) ? std::optional(up_to(8 * kGiB)) : std::nullopt);
    const MemoryPlan plan = plan_memory(state, options, needs);
    const uint64_t fixed = fixed_bytes(needs, plan);
    ASSERT_GE(plan.context_tokens, 1u);
    ASSERT_GE(plan.ubatch_tokens, 1u);
    ASSERT_LE(plan.ubatch_tokens, plan.batch_tokens);
    ASSERT_LE(plan.batch_tokens, plan.step_tokens);
    ASSERT_LE(plan.step_tokens, plan.context_tokens);
    ASSERT_EQ(plan.prompt_bytes, prompt_bytes(needs, plan));
    ASSERT_LE(plan.ubatch_tokens, options.ubatch_tokens);
    if (fixed + plan.prompt_bytes + needs.cache_bytes_min <= plan.budget_bytes)
      ASSERT_EQ(fixed + plan.cache_bytes_max, plan.budget_bytes);
    else
      ASSERT_THAT(plan.notes.back(), HasSubstr("the budget will be exceeded"));
  }
}

}  // namespace
}  // namespace sluice
