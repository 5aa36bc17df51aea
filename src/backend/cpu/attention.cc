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
      scratch_.attended_input.rows(dtype_info(weights.attention_output.weight.dtype).activation);
  const MatmulJob job{.weights = weights.attention_output.weight,
                      .activations = rows.begin,
                      .activation_stride = rows.stride,
                      .token_count = token_count,
                      .out = scratch_.projected,
                      .out_stride = config_.hidden_size};
  run_matmuls(pool_, kernels_, {&job, 1});
  add_bias(weights.attention_output.bias, token_count, scratch_.projected);
  pool_.run_ranges(token_count * config_.hidden_size, 4096, [&](size_t begin, size_t end) {
    kernels_.add_scaled(config_.residual_scale, scratch_.projected + begin, end - begin,
                        hidden + begin);
  });
}

/// To each row; an absent bias is nothing.
void CpuBackend::add_bias(const Matrix& bias, size_t token_count, float* rows) {
  if (!bias.present()) return;
  for_tokens(token_count, [&](size_t token) {
    kernels_.add(reinterpret_cast<const float*>(bias.data), bias.cols, rows + token * bias.cols);
  });
}

void CpuBackend::project_query_key_value(size_t layer, size_t token_count) {
  const LayerWeights& weights = map_.dense.layers[layer];
  const MatmulJob jobs[] = {input_job(weights.query.weight, token_count, scratch_.query),
                            input_job(weights.key.weight, token_count, scratch_.key),
                            input_job(weights.value.weight, token_count, scratch_.value)};
  run_matmuls(pool_, kernels_, jobs);
  add_bias(weights.query.bias, token_count, scratch_.query);
  add_bias(weights.key.bias, token_count, scratch_.key);
  add_bias(weights.value.bias, token_count, scratch_.value);
}

/// Angles in double, so that far positions are as exact as near ones. The table grows with the
/// context; each row is computed once and serves every layer and head.
void CpuBackend::extend_rope_table(size_t position_end) {
  if (position_end <= rope_position_end_) return;
  CHECK(position_end <= limits_.context_token_max);
  const size_t pairs = rope_.frequencies.size();
  for_tokens(position_end - rope_position_end_, [&](size_t row) {
    const size_t position = rope_position_end_ + row;
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(position) * rope_.frequencies[i];
      scratch_.rope_cos[position * pairs + i] =
          static_cast<float>(std::cos(angle)) * rope_.magnitude;
      scratch_.rope_sin[position * pairs + i] =
          static_cast<float>(std::sin(angle)) * rope_.magnitude;
    }
  });
  rope_position_end_ = position_end;
}

/// Normalises and rotates the heads of one token's query or key, in the order of the family.
void CpuBackend::turn_heads(float* heads, size_t head_count, const Matrix& norm, bool is_rotated,
                            size_t position) {
  const size_t dim = config_.head_dim;
  const size_t pairs = rope_.frequencies.size();
  const QueryKeyNorm kind = config_.architecture->query_key_norm;
  const auto normalise_rows = [&](size_t rows, size_t size) {
    for (size_t i = 0; i < rows; ++i)
      kernels_.rms_norm(heads + i * size, reinterpret_cast<const float*>(norm.data),
                        config_.rms_epsilon, size, heads + i * size);
  };
  const bool per_head = norm.present() && kind != QueryKeyNorm::whole;
  if (norm.present() && kind == QueryKeyNorm::whole) normalise_rows(1, head_count * dim);
  if (per_head && kind != QueryKeyNorm::rotated_per_head) normalise_rows(head_count, dim);
  const auto rotate =
      config_.architecture->rope == RopeKind::neox ? kernels_.rope_neox : kernels_.rope_adjacent;
  for (size_t head = 0; is_rotated && head < head_count; ++head)
    rotate(heads + head * dim, scratch_.rope_cos + position * pairs,
           scratch_.rope_sin + position * pairs, pairs);
  if (per_head && kind == QueryKeyNorm::rotated_per_head) normalise_rows(head_count, dim);
}

void CpuBackend::rotate_and_store(size_t layer, size_t first_position, size_t token_count,
                                  KvCache& cache) {
  const LayerWeights& weights = map_.dense.layers[layer];
  const LayerConfig& shape = config_.layers[layer];
  const size_t dim = config_.head_dim;
  const auto type = static_cast<size_t>(cache.type());
  for_tokens(token_count, [&](size_t token) {
    const size_t position = first_position + token;
    turn_heads(scratch_.query + token * shape.head_count * dim, shape.head_count,
               weights.query_norm, shape.is_rotated, position);
    turn_heads(scratch_.key + token * shape.kv_head_count * dim, shape.kv_head_count,
               weights.key_norm, shape.is_rotated, position);
    for (size_t head = 0; head < shape.kv_head_count; ++head) {
      const size_t offset = (token * shape.kv_head_count + head) * dim;
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
  // Tokens whose windows begin at different places go one by one.
  const size_t chunk_tokens = shape.window > 0 ? 1 : kAttentionTokens;
  const size_t chunks = ceil_div(token_count, chunk_tokens);
  const size_t share = plan_query_share(chunks * shape.kv_head_count, group, pool_.thread_count());
  const size_t parts = ceil_div(group, share);
  const Matrix& sinks = map_.dense.layers[layer].sinks;
  const auto kernel = kernels_.attention[static_cast<size_t>(cache.type())];
  pool_.run_queue(chunks * shape.kv_head_count * parts, [&](size_t task, size_t) {
    const size_t first_query = task % parts * share;
    const size_t kv_head = task / parts % shape.kv_head_count;
    // The last tokens see the most keys: they go first, so that the short tasks even out.
    const size_t token = (chunks - 1 - task / parts / shape.kv_head_count) * chunk_tokens;
    const size_t head = kv_head * group + first_query;
    const size_t offset = token * row + head * dim;
    const VisibleKeys keys = visible_keys(shape.window, first_position + token);
    kernel({.queries = scratch_.query + offset,
            .token_stride = row,
            .token_count = std::min(chunk_tokens, token_count - token),
            .group_size = std::min(share, group - first_query),
            .first_position = first_position + token - keys.block,
            .first_key = keys.first - keys.block,
            .sinks = sinks.present() ? reinterpret_cast<const float*>(sinks.data) + head : nullptr,
            .keys = cache.keys(layer, kv_head, keys.block),
            .values = cache.values(layer, kv_head, keys.block),
            .head_dim = dim,
            .value_stride = cache.value_stride(),
            .scale = config_.attention_scale,
            .out = scratch_.attended + offset});
  });
  for_tokens(token_count, [&](size_t token) {
    scratch_.attended_input.write(kernels_, token, scratch_.attended + token * row, row);
  });
}

}  // namespace sluice
