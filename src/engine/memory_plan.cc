#include "engine/memory_plan.h"

#include <algorithm>

#include "base/units.h"

namespace sluice {
namespace {

/// A cgroup also counts what the kernel holds for us (page tables, pinned pages, sockets), and
/// kills at the limit; this much of it stays unused.
constexpr uint64_t kCgroupMargin = 12 * kMiB;

/// Thread stacks, the ring, strings and other small allocations made after the plan.
constexpr uint64_t kSmallAllocations = 6 * kMiB;

constexpr size_t kAutoContextMax = 8192;
constexpr size_t kAutoContextMin = 512;
constexpr size_t kContextMax = size_t{1} << 30;
constexpr size_t kBatchTokensMax = 4096;
constexpr size_t kUbatchTokensMin = 16;
constexpr uint64_t kKvShare = 8;      ///< an automatic context takes at most 1/8 of the budget
constexpr uint64_t kBatchShare = 16;  ///< a prompt's working memory takes at most 1/16

uint64_t less(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

void choose_budget(const os::MemoryState& state, const EngineOptions& options,
                   const MemoryNeeds& needs, MemoryPlan& plan) {
  if (options.ram_bytes > 0) {
    plan.budget_bytes = options.ram_bytes;
    plan.budget_reason = "--ram";
    return;
  }
  // Both say what may be added to what we have already.
  plan.budget_bytes = less(state.available_bytes + needs.process_bytes, options.headroom_bytes);
  plan.budget_reason = "available memory less the headroom";
  if (!state.cgroup_left_bytes) return;
  const uint64_t group = less(*state.cgroup_left_bytes + needs.process_bytes, kCgroupMargin);
  if (group >= plan.budget_bytes) return;
  plan.budget_bytes = group;
  plan.budget_reason = "the memory limit of the control group";
}

/// The longest context, at most `most`, that takes no more than these bytes.
size_t context_within(const MemoryNeeds& needs, uint64_t bytes, size_t most) {
  size_t fits = 0;
  while (fits < most) {
    const size_t middle = fits + (most - fits + 1) / 2;
    if (needs.context_bytes(middle) <= bytes)
      fits = middle;
    else
      most = middle - 1;
  }
  return fits;
}

size_t choose_context(const EngineOptions& options, const MemoryNeeds& needs, uint64_t budget) {
  if (options.context_tokens > 0) return options.context_tokens;
  const size_t fits = context_within(needs, budget / kKvShare, kAutoContextMax);
  const uint64_t wanted = std::max(fits, kAutoContextMin);
  return std::min<uint64_t>(wanted, needs.context_trained_tokens);
}

/// Everything but the expert cache and what it lends.
uint64_t fixed_bytes(const MemoryNeeds& needs, const MemoryPlan& plan) {
  return needs.process_bytes + kSmallAllocations + needs.dense_bytes + needs.io_bytes +
         needs.fixed_scratch_bytes + needs.context_bytes(plan.context_tokens) +
         plan.ubatch_tokens * needs.ubatch_bytes_per_token + needs.batch_bytes_per_token;
}

uint64_t prompt_bytes(const MemoryNeeds& needs, const MemoryPlan& plan) {
  return plan.batch_tokens * needs.batch_bytes_per_token +
         plan.step_tokens * needs.step_bytes_per_token;
}

/// What cannot be done without: one token's experts in the cache, and a prompt under way.
uint64_t least_bytes(const MemoryNeeds& needs, const MemoryPlan& plan) {
  return fixed_bytes(needs, plan) + prompt_bytes(needs, plan) + needs.cache_bytes_min;
}

/// The longest context that the budget holds beside everything else and the smallest expert cache.
size_t longest_context(const MemoryNeeds& needs, const MemoryPlan& plan) {
  const uint64_t other = least_bytes(needs, plan) - needs.context_bytes(plan.context_tokens);
  return context_within(needs, less(plan.budget_bytes, other), kContextMax);
}

/// A budget that is too small for the model is exceeded, with a note. For a context that someone
/// asks for it is not: that would be found out far into a text.
std::string refuse_context(const EngineOptions& options, const MemoryNeeds& needs,
                           const MemoryPlan& plan) {
  const uint64_t context = needs.context_bytes(plan.context_tokens);
  const size_t fit = longest_context(needs, plan);
  const bool is_the_cause = fit > 0 || context > plan.budget_bytes;
  if (options.context_tokens == 0 || !is_the_cause) return {};
  return fmt::format("--ctx {} needs {} for keys and values; of {} ({}) {} are left for them{}",
                     plan.context_tokens, format_bytes(context), format_bytes(plan.budget_bytes),
                     plan.budget_reason,
                     format_bytes(less(plan.budget_bytes + context, least_bytes(needs, plan))),
                     fit > 0 ? fmt::format("; --ctx {} fits", fit) : std::string());
}

/// Better slower than beyond the budget: first a prompt goes in smaller batches, then an automatic
/// context shrinks, then the ubatch.
void shrink_to_fit(const EngineOptions& options, const MemoryNeeds& needs, MemoryPlan& plan) {
  const auto fits = [&] { return least_bytes(needs, plan) <= plan.budget_bytes; };
  if (fits()) return;
  while (!fits() && plan.step_tokens > plan.batch_tokens)
    plan.step_tokens = std::max(plan.step_tokens / 2, plan.batch_tokens);
  if (fits()) return;
  while (!fits() && plan.batch_tokens > plan.ubatch_tokens)
    plan.step_tokens = plan.batch_tokens = std::max(plan.batch_tokens / 2, plan.ubatch_tokens);
  if (!fits() && options.context_tokens == 0) {
    const size_t least = std::min(plan.context_tokens, kAutoContextMin);
    plan.context_tokens = std::clamp(longest_context(needs, plan), least, plan.context_tokens);
    plan.ubatch_tokens = std::min(plan.ubatch_tokens, plan.context_tokens);
    plan.step_tokens = plan.batch_tokens = plan.ubatch_tokens;
  }
  while (!fits() && plan.ubatch_tokens > kUbatchTokensMin) {
    plan.ubatch_tokens = std::max(plan.ubatch_tokens / 2, kUbatchTokensMin);
    plan.step_tokens = plan.batch_tokens = plan.ubatch_tokens;
  }
  plan.notes.push_back(
      fmt::format("memory is tight: prompts go in pieces of {} tokens{}", plan.batch_tokens,
                  needs.cache_bytes_min > 0 ? ", so their experts are read more than once" : ""));
  if (fits()) return;
  plan.refusal = refuse_context(options, needs, plan);
  plan.notes.push_back(fmt::format(
      "at least {} are needed, {} are to be had ({}); the budget will be exceeded",
      format_bytes(least_bytes(needs, plan)), format_bytes(plan.budget_bytes), plan.budget_reason));
}

}  // namespace

MemoryPlan plan_memory(const os::MemoryState& state, const EngineOptions& options,
                       const MemoryNeeds& needs) {
  MemoryPlan plan;
  choose_budget(state, options, needs, plan);
  plan.context_tokens = choose_context(options, needs, plan.budget_bytes);
  if (plan.context_tokens > needs.context_trained_tokens)
    plan.notes.push_back(
        fmt::format("the model was trained for {} positions; text beyond them "
                    "may lose its sense",
                    needs.context_trained_tokens));
  plan.ubatch_tokens = std::min<size_t>(options.ubatch_tokens, plan.context_tokens);
  const auto share_of = [&](uint64_t bytes_per_token) {
    return plan.budget_bytes / kBatchShare / std::max<uint64_t>(1, bytes_per_token);
  };
  const size_t batch_most = std::min(plan.context_tokens, kBatchTokensMax);
  plan.batch_tokens = std::clamp<size_t>(share_of(needs.batch_bytes_per_token),
                                         std::min(plan.ubatch_tokens, batch_most), batch_most);
  plan.step_tokens = std::clamp<size_t>(share_of(needs.step_bytes_per_token), plan.batch_tokens,
                                        plan.context_tokens);
  shrink_to_fit(options, needs, plan);
  plan.context_tokens_fit = longest_context(needs, plan);
  plan.cache_bytes_max = less(plan.budget_bytes, fixed_bytes(needs, plan));
  plan.prompt_bytes = prompt_bytes(needs, plan);
  plan.overhead_bytes = needs.process_bytes + kSmallAllocations;
  return plan;
}

}  // namespace sluice
