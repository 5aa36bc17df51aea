#include "backend/cpu/cached_attention.h"

#include <algorithm>

#include "backend/cpu/attention_split.h"
#include "base/units.h"

namespace sluice {
namespace {

/// Queries of this many tokens share one pass over the keys and values.
constexpr size_t kAttentionTokens = 16;

}  // namespace

void store_key_value(const CpuContext& cpu, const SequenceState& state, size_t layer,
                     size_t kv_head, size_t position, const float* key, const float* value) {
  const LayerConfig& shape = cpu.config.layers[layer];
  const auto type = static_cast<size_t>(state.type());
  const size_t place = position % state.ring_positions(layer);
  cpu.kernels.store_key[type](key, shape.key_dim, place, state.keys(layer, kv_head));
  cpu.kernels.store_value[type](value, shape.value_dim, place, state.value_stride(layer),
                                state.values(layer, kv_head));
}

void attend(const CpuContext& cpu, const SequenceState& state, size_t layer,
            const Queries& queries) {
  const LayerConfig& shape = cpu.config.layers[layer];
  const size_t group = shape.head_count / shape.kv_head_count;
  const size_t query_row = shape.head_count * shape.key_dim;
  const size_t out_row = shape.head_count * shape.value_dim;
  // Tokens whose windows begin at different places go one by one.
  const size_t chunk_tokens = shape.window > 0 ? 1 : kAttentionTokens;
  const size_t chunks = ceil_div(queries.token_count, chunk_tokens);
  const size_t share =
      plan_query_share(chunks * shape.kv_head_count, group, cpu.pool.thread_count());
  const size_t parts = ceil_div(group, share);
  const Matrix& sinks = cpu.map.dense.layers[layer].attention.sinks;
  const size_t ring_blocks = state.ring_positions(layer) / kernels::kAttentionBlock;
  const auto kernel = cpu.kernels.attention[static_cast<size_t>(state.type())];
  cpu.pool.run_queue(chunks * shape.kv_head_count * parts, [&](size_t task, size_t) {
    const size_t first_query = task % parts * share;
    const size_t kv_head = task / parts % shape.kv_head_count;
    // The last tokens see the most keys: they go first, so that the short tasks even out.
    const size_t token = (chunks - 1 - task / parts / shape.kv_head_count) * chunk_tokens;
    const size_t head = kv_head * group + first_query;
    const VisibleKeys keys = visible_keys(shape.window, queries.first_position + token);
    kernel({.queries = queries.queries + token * query_row + head * shape.key_dim,
            .query_stride = query_row,
            .token_count = std::min(chunk_tokens, queries.token_count - token),
            .group_size = std::min(share, group - first_query),
            .first_position = queries.first_position + token - keys.block,
            .first_key = keys.first - keys.block,
            .sinks = sinks.present() ? floats_of(sinks) + head : nullptr,
            .keys = state.keys(layer, kv_head),
            .values = state.values(layer, kv_head),
            .first_block = keys.block / kernels::kAttentionBlock % ring_blocks,
            .ring_blocks = ring_blocks,
            .key_dim = shape.key_dim,
            .value_dim = shape.value_dim,
            .value_stride = state.value_stride(layer),
            .scale = cpu.config.attention_scale,
            .out = queries.attended + token * out_row + head * shape.value_dim,
            .out_stride = out_row});
  });
}

}  // namespace sluice
