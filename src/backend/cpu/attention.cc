// The attention block on the CPU: normalise, project, rotate, store, attend, project back.
#include <cmath>

#include "backend/cpu/attention_split.h"
#include "backend/cpu/cpu_backend.h"
#include "base/units.h"

namespace sluice {
namespace {

/// Queries of this many tokens share one pass over the keys and values.
constexpr size_t kAttentionTokens = 16;

}  // namespace

void CpuBackend::attention_block(size_t layer, size_t first_position, size_t token_count,
                                 KvCache& cache, float* hidden) {
  CHECK(token_count <= limits_.ubatch_token_max);
  CHECK(first_position + token_count <= cache.context_token_max());
  const LayerWeights& weights = map_.dense.layers[layer];
  normalise(hidden, weights.attention_norm, token_count);
  project_query_key_value(layer, token_count);
  extend_rope_table(first_position + token_count);
  rotate_and_store(layer, first_position, token_count, cache);
  attend(layer, first_position, token_count, cache);

  const ActivationRows& rows =
      scratch_.attended_input.rows(dtype_info(weights.attention_output.dtype).activation);
  const MatmulJob job{.weights = weights.attention_output,
                      .activations = rows.begin,
                      .activation_stride = rows.stride,
                      .token_count = token_count,
                      .out = scratch_.projected,
                      .out_stride = config_.hidden_size};
  run_matmuls(pool_, kernels_, {&job, 1});
  pool_.run_ranges(token_count * config_.hidden_size, 4096, [&](size_t begin, size_t end) {
    kernels_.add(scratch_.projected + begin, end - begin, hidden + begin);
  });
}

void CpuBackend::project_query_key_value(size_t layer, size_t token_count) {
  const LayerWeights& weights = map_.dense.layers[layer];
  const MatmulJob jobs[] = {input_job(weights.query, token_count, scratch_.query),
                            input_job(weights.key, token_count, scratch_.key),
                            input_job(weights.value, token_count, scratch_.value)};
  run_matmuls(pool_, kernels_, jobs);
}

/// Angles in double, so that far positions are as exact as near ones. The table grows with the
/// context; each row is computed once and serves every layer and head.
void CpuBackend::extend_rope_table(size_t position_end) {
  if (position_end <= rope_position_end_) return;
  CHECK(position_end <= limits_.context_token_max);
  const size_t pairs = rope_frequencies_.size();
  for_tokens(position_end - rope_position_end_, [&](size_t row) {
    const size_t position = rope_position_end_ + row;
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(position) * rope_frequencies_[i];
      scratch_.rope_cos[position * pairs + i] = static_cast<float>(std::cos(angle));
      scratch_.rope_sin[position * pairs + i] = static_cast<float>(std::sin(angle));
    }
  });
  rope_position_end_ = position_end;
}

void CpuBackend::rotate_and_store(size_t layer, size_t first_position, size_t token_count,
                                  KvCache& cache) {
  const LayerWeights& weights = map_.dense.layers[layer];
  const LayerConfig& shape = config_.layers[layer];
  const size_t dim = config_.head_dim;
  const size_t pairs = rope_frequencies_.size();
  const auto type = static_cast<size_t>(cache.type());
  const auto turn = [&](float* head, const Matrix& norm, size_t position) {
    if (norm.present())
      kernels_.rms_norm(head, reinterpret_cast<const float*>(norm.data), config_.rms_epsilon, dim,
                        head);
    kernels_.rope_neox(head, scratch_.rope_cos + position * pairs,
                       scratch_.rope_sin + position * pairs, pairs);
  };
  for_tokens(token_count, [&](size_t token) {
    const size_t position = first_position + token;
    for (size_t head = 0; head < shape.head_count; ++head)
      turn(scratch_.query + (token * shape.head_count + head) * dim, weights.query_norm, position);
    for (size_t head = 0; head < shape.kv_head_count; ++head) {
      const size_t offset = (token * shape.kv_head_count + head) * dim;
      turn(scratch_.key + offset, weights.key_norm, position);
      kernels_.store_key[type](scratch_.key + offset, dim, position, cache.keys(layer, head));
      kernels_.store_value[type](scratch_.value + offset, dim, position, cache.value_stride(),
                                 cache.values(layer, head));
    }
  });
}

void CpuBackend::attend(size_t layer, size_t first_position, size_t token_count,
                        const KvCache& cache) {
  const LayerConfig& shape = config_.layers[layer];
  const size_t dim = config_.head_dim;
  const size_t group = shape.head_count / shape.kv_head_count;
  const size_t row = shape.head_count * dim;
  const size_t chunks = ceil_div(token_count, kAttentionTokens);
  const size_t share = plan_query_share(chunks * shape.kv_head_count, group, pool_.thread_count());
  const size_t parts = ceil_div(group, share);
  const auto kernel = kernels_.attention[static_cast<size_t>(cache.type())];
  pool_.run_queue(chunks * shape.kv_head_count * parts, [&](size_t task, size_t) {
    const size_t first_query = task % parts * share;
    const size_t kv_head = task / parts % shape.kv_head_count;
    // The last tokens see the most keys: they go first, so that the short tasks even out.
    const size_t token = (chunks - 1 - task / parts / shape.kv_head_count) * kAttentionTokens;
    const size_t offset = token * row + (kv_head * group + first_query) * dim;
    kernel({.queries = scratch_.query + offset,
            .token_stride = row,
            .token_count = std::min(kAttentionTokens, token_count - token),
            .group_size = std::min(share, group - first_query),
            .first_position = first_position + token,
            .keys = cache.keys(layer, kv_head),
            .values = cache.values(layer, kv_head),
            .head_dim = dim,
            .value_stride = cache.value_stride(),
            .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
            .out = scratch_.attended + offset});
  });
  for_tokens(token_count, [&](size_t token) {
    scratch_.attended_input.write(kernels_, token, scratch_.attended + token * row, row);
  });
}

}  // namespace sluice
