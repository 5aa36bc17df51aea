#include "backend/cpu/attention_split.h"

#include <cstdint>

#include "base/units.h"
#include "kernels/kernels.h"

namespace sluice {
namespace {

/// What reading (and widening) keys and values costs a task, in queries. On an EPYC Genoa (2026)
/// one query of 128 dimensions takes half as long as four, and four half as long as eight.
constexpr size_t kReadingCost = 2;

}  // namespace

size_t plan_query_share(size_t task_count, size_t group_size, size_t thread_count) {
  size_t best_share = group_size, best_cost = SIZE_MAX;
  for (size_t share = group_size; share > 0; --share) {
    const size_t parts = ceil_div(group_size, share);
    const size_t rounds = ceil_div(task_count * parts, thread_count);
    const size_t cost = rounds * (share + kReadingCost);
    if (cost >= best_cost) continue;
    best_cost = cost;
    best_share = share;
  }
  return best_share;
}

VisibleKeys visible_keys(size_t window, size_t position) {
  const size_t first = window > 0 && position + 1 > window ? position + 1 - window : 0;
  return {first, first / kernels::kAttentionBlock * kernels::kAttentionBlock};
}

}  // namespace sluice
