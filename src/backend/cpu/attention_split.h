// How attention is cut for threads. The natural task is one KV head, for some tokens: its keys and
// values are read once for all queries that share them. A token that is generated makes no more
// such tasks than there are KV heads, four in many models; where that leaves threads idle, the
// queries of a head are shared out, and its keys and values are read for each share. (Cutting the
// keys instead would give other bits.) Pure; any thread.
#pragma once

#include <cstddef>

namespace sluice {

/// How many of the queries of a KV head go together, 1 … group_size, when there are `task_count`
/// tasks as long as none is cut.
size_t plan_query_share(size_t task_count, size_t group_size, size_t thread_count);

/// What a query sees at least: the first key, and where the block of keys that has it begins.
struct VisibleKeys {
  size_t first;
  size_t
      block;  ///< a multiple of kernels::kAttentionBlock, so that windows change no block's border
};

/// Of a query at `position` that sees `window` keys, its own included; 0: all before it.
VisibleKeys visible_keys(size_t window, size_t position);

}  // namespace sluice
