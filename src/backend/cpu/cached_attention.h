// Attention over a KV cache, whatever made its queries, keys and values: the part that all forms of
// attention share. One thread at a time; inside, the pool's.
#pragma once

#include "backend/cpu/cpu_context.h"
#include "backend/sequence_state.h"

namespace sluice {

/// Stores one token's key and value of one KV head. Heads and positions may go to several threads.
void store_key_value(const CpuContext& cpu, const SequenceState& state, size_t layer,
                     size_t kv_head, size_t position, const float* key, const float* value);

/// The queries of `token_count` tokens at positions first_position …, whose keys and values are
/// stored.
struct Queries {
  size_t first_position;
  size_t token_count;
  const float* queries;  ///< [token][head][key_dim]
  float* attended;       ///< [token][head][value_dim]
};
void attend(const CpuContext& cpu, const SequenceState& state, size_t layer,
            const Queries& queries);

}  // namespace sluice
