#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/expert_tiles.h"
#include "base/units.h"

namespace sluice {
namespace {

size_t heads_max(const ModelConfig& config) {
  size_t most = 0;
  for (const LayerConfig& layer : config.layers) most = std::max<size_t>(most, layer.head_count);
  return most;
}

size_t kv_heads_max(const ModelConfig& config) {
  size_t most = 0;
  for (const LayerConfig& layer : config.layers) most = std::max<size_t>(most, layer.kv_head_count);
  return most;
}

ActivationFormat format_of(const Matrix& matrix) {
  return dtype_info(matrix.dtype).activation;
}

/// Hands out 64-byte aligned pieces of a block of memory, or only counts them.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  std::byte* take(uint64_t bytes) {
    std::byte* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(bytes, 64);
    return piece;
  }
  float* floats(uint64_t count) { return reinterpret_cast<float*>(take(count * sizeof(float))); }
  uint64_t used() const { return used_; }

 private:
  std::byte* memory_;
  uint64_t used_ = 0;
};

}  // namespace

CpuBackend::CpuBackend(const ModelConfig& config, const WeightMap& map,
                       const kernels::KernelTable& kernels, ComputePool& pool, const Limits& limits,
                       Ledger& ledger)
    : config_(config), map_(map), kernels_(kernels), pool_(pool), limits_(limits), ledger_(ledger) {
  thread_floats_ = std::max<size_t>(2 * kTileResultsMax, config.hidden_size);
  for (const LayerWeights& layer : map.dense.layers) {
    scratch_.input.want(format_of(layer.query.weight));
    scratch_.input.want(format_of(layer.key.weight));
    scratch_.input.want(format_of(layer.value.weight));
    scratch_.attended_input.want(format_of(layer.attention_output.weight));
    if (!layer.router.present()) continue;
    scratch_.input.want(format_of(layer.router));
    scratch_.predict_input.want(format_of(layer.router));
  }
  scratch_.input.want(format_of(map.output_is_embedding ? map.dense.embedding : map.dense.output));
}

uint64_t CpuBackend::lay_out(std::byte* memory) {
  Carver carve(memory);
  const size_t tokens = limits_.ubatch_token_max;
  const size_t angles = limits_.context_token_max * config_.rope.rotated_dim / 2;
  const size_t heads_size = heads_max(config_) * config_.head_dim;
  const size_t kv_size = kv_heads_max(config_) * config_.head_dim;
  scratch_.projected = carve.floats(tokens * config_.hidden_size);
  scratch_.query = carve.floats(tokens * heads_size);
  scratch_.key = carve.floats(tokens * kv_size);
  scratch_.value = carve.floats(tokens * kv_size);
  scratch_.attended = carve.floats(tokens * heads_size);
  scratch_.router_logits = carve.floats(tokens * config_.expert_count);
  scratch_.selection = carve.floats(tokens * config_.expert_count);
  scratch_.rope_cos = carve.floats(angles);
  scratch_.rope_sin = carve.floats(angles);
  scratch_.per_thread = carve.floats(pool_.thread_count() * thread_floats_);
  const size_t input_bytes = scratch_.input.bytes(tokens, config_.hidden_size);
  scratch_.input.place(carve.take(input_bytes), tokens, config_.hidden_size);
  const size_t attended_bytes = scratch_.attended_input.bytes(tokens, heads_size);
  scratch_.attended_input.place(carve.take(attended_bytes), tokens, heads_size);
  scratch_.predict_norm = carve.floats(config_.hidden_size);
  const size_t predict_bytes = scratch_.predict_input.bytes(kPredictLayersMax, config_.hidden_size);
  scratch_.predict_input.place(carve.take(predict_bytes), kPredictLayersMax, config_.hidden_size);
  return carve.used();
}

Result<std::unique_ptr<CpuBackend>> CpuBackend::make(const ModelConfig& config,
                                                     const WeightMap& map,
                                                     const kernels::KernelTable& kernels,
                                                     ComputePool& pool, const Limits& limits,
                                                     Ledger& ledger) {
  std::unique_ptr<CpuBackend> backend(new CpuBackend(config, map, kernels, pool, limits, ledger));
  auto arena = os::Arena::allocate(backend->lay_out(nullptr), "the scratch memory of a ubatch");
  if (!arena) return arena.error();
  backend->arena_ = std::move(*arena);
  backend->lay_out(backend->arena_.begin());
  const Matrix& divisors = map.dense.rope_divisors;
  backend->rope_ = rope_angles(
      config.rope, {reinterpret_cast<const float*>(divisors.data), divisors.rows * divisors.cols});
  ledger.add(MemoryUse::scratch, backend->arena_.bytes());
  return backend;
}

uint64_t CpuBackend::memory_bytes(const ModelConfig& config, const WeightMap& map,
                                  ComputePool& pool, const Limits& limits) {
  Ledger unused;
  return CpuBackend(config, map, kernels::kernel_table(kernels::Isa::ref), pool, limits, unused)
      .lay_out(nullptr);
}

CpuBackend::~CpuBackend() {
  if (arena_.bytes() > 0) ledger_.remove(MemoryUse::scratch, arena_.bytes());
}

void CpuBackend::embed(std::span<const int32_t> tokens, float* hidden) {
  const Matrix& embedding = map_.dense.embedding;
  const DtypeInfo& info = dtype_info(embedding.dtype);
  for_tokens(tokens.size(), [&](size_t token) {
    info.decode(embedding.row(static_cast<size_t>(tokens[token])),
                embedding.cols / info.block_elements, hidden + token * config_.hidden_size);
    if (config_.embedding_scale == 1.0f) return;
    for (float& value : std::span(hidden + token * config_.hidden_size, config_.hidden_size))
      value *= config_.embedding_scale;
  });
}

/// scratch.projected and scratch.input = norm(hidden), in every format that a matrix wants.
void CpuBackend::normalise(const float* hidden, const Matrix& weight, size_t token_count) {
  const size_t size = config_.hidden_size;
  for_tokens(token_count, [&](size_t token) {
    float* row = scratch_.projected + token * size;
    kernels_.rms_norm(hidden + token * size, reinterpret_cast<const float*>(weight.data),
                      config_.rms_epsilon, size, row);
    scratch_.input.write(kernels_, token, row, size);
  });
}

MatmulJob CpuBackend::input_job(const Matrix& weights, size_t token_count, float* out) const {
  const ActivationRows& rows = scratch_.input.rows(format_of(weights));
  return {.weights = weights,
          .activations = rows.begin,
          .activation_stride = rows.stride,
          .token_count = token_count,
          .out = out,
          .out_stride = weights.rows};
}

void CpuBackend::output(size_t token_count, const float* hidden, float* logits) {
  CHECK(token_count <= limits_.ubatch_token_max);
  normalise(hidden, map_.dense.output_norm, token_count);
  const MatmulJob job = input_job(
      map_.output_is_embedding ? map_.dense.embedding : map_.dense.output, token_count, logits);
  run_matmuls(pool_, kernels_, {&job, 1});
  if (config_.logit_scale == 1.0f) return;
  for_tokens(token_count, [&](size_t token) {
    for (float& logit : std::span(logits + token * job.out_stride, job.out_stride))
      logit /= config_.logit_scale;
  });
}

}  // namespace sluice
