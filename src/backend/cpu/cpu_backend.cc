#include "backend/cpu/cpu_backend.h"

#include <algorithm>

#include "backend/cpu/attention.h"
#include "backend/cpu/expert_tiles.h"
#include "backend/cpu/latent_attention.h"

namespace sluice {
namespace {

std::unique_ptr<TokenMixer> make_mixer(MixerKind kind, const CpuContext& cpu,
                                       const std::vector<RopeTable>& ropes) {
  switch (kind) {
    case MixerKind::attention:
      return std::make_unique<Attention>(cpu, ropes);
    case MixerKind::latent_attention:
      return std::make_unique<LatentAttention>(cpu, ropes);
  }
  CHECK(false);
}

}  // namespace

CpuBackend::CpuBackend(const ModelConfig& config, const WeightMap& map,
                       const kernels::KernelTable& kernels, ComputePool& pool, const Limits& limits,
                       Ledger& ledger)
    : cpu_{config, map, kernels, pool, limits}, ledger_(ledger) {
  thread_floats_ = std::max<size_t>(2 * kTileResultsMax, config.hidden_size);
  for (const RopeConfig& rope : config.ropes) ropes_.emplace_back(rope);
  for (size_t i = 0; i < config.layer_count(); ++i) {
    const LayerWeights& layer = map.dense.layers[i];
    const MixerKind kind = config.layers[i].mixer;
    std::unique_ptr<TokenMixer>& mixer = mixers_[static_cast<size_t>(kind)];
    if (mixer == nullptr) mixer = make_mixer(kind, cpu_, ropes_);
    mixer->want_input(layer, scratch_.input);
    if (!layer.router.present()) continue;
    scratch_.input.want(format_of(layer.router));
    scratch_.predict_input.want(format_of(layer.router));
  }
  scratch_.input.want(format_of(map.output_is_embedding ? map.dense.embedding : map.dense.output));
}

uint64_t CpuBackend::lay_out(std::byte* memory) {
  Carver carve(memory);
  const size_t tokens = cpu_.limits.ubatch_token_max;
  const size_t hidden_size = cpu_.config.hidden_size;
  scratch_.projected = carve.floats(tokens * hidden_size);
  scratch_.router_logits = carve.floats(tokens * cpu_.config.expert_count);
  scratch_.selection = carve.floats(tokens * cpu_.config.expert_count);
  scratch_.per_thread = carve.floats(cpu_.pool.thread_count() * thread_floats_);
  scratch_.input.place(carve.take(scratch_.input.bytes(tokens, hidden_size)), tokens, hidden_size);
  scratch_.predict_norm = carve.floats(hidden_size);
  const size_t predict_bytes = scratch_.predict_input.bytes(kPredictLayersMax, hidden_size);
  scratch_.predict_input.place(carve.take(predict_bytes), kPredictLayersMax, hidden_size);
  for (RopeTable& rope : ropes_) rope.lay_out(carve, cpu_.limits.context_token_max);
  // Mixers take turns, and share what each needs.
  uint64_t end = carve.used();
  for (const auto& mixer : mixers_) {
    if (mixer == nullptr) continue;
    Carver turn = carve;
    mixer->lay_out(turn);
    end = std::max(end, turn.used());
  }
  return end;
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
  // Divisors are those of the first; layers with a pace of their own have none.
  const Matrix& divisors = map.dense.divisors_for(config, limits.context_token_max);
  for (RopeTable& rope : backend->ropes_)
    rope.set_angles(&rope == &backend->ropes_.front()
                        ? std::span(floats_of(divisors), divisors.rows * divisors.cols)
                        : std::span<const float>());
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
  const Matrix& embedding = cpu_.map.dense.embedding;
  const DtypeInfo& info = dtype_info(embedding.dtype);
  cpu_.for_tokens(tokens.size(), [&](size_t token) {
    info.decode(embedding.row(static_cast<size_t>(tokens[token])),
                embedding.cols / info.block_elements, hidden + token * cpu_.config.hidden_size);
    if (cpu_.config.embedding_scale == 1.0f) return;
    for (float& value :
         std::span(hidden + token * cpu_.config.hidden_size, cpu_.config.hidden_size))
      value *= cpu_.config.embedding_scale;
  });
}

/// scratch.projected and scratch.input = norm(hidden), in every format that a matrix wants.
void CpuBackend::normalise(const float* hidden, const Matrix& weight, size_t token_count) {
  const size_t size = cpu_.config.hidden_size;
  cpu_.for_tokens(token_count, [&](size_t token) {
    float* row = scratch_.projected + token * size;
    cpu_.kernels.rms_norm(hidden + token * size, floats_of(weight), cpu_.config.rms_epsilon, size,
                          row);
    scratch_.input.write(cpu_.kernels, token, row, size);
  });
}

TokenMixer& CpuBackend::mixer_of(size_t layer) const {
  return *mixers_[static_cast<size_t>(cpu_.config.layers[layer].mixer)];
}

void CpuBackend::mix_tokens(size_t layer, size_t first_position, size_t token_count,
                            SequenceState& state, float* hidden) {
  CHECK(token_count <= cpu_.limits.ubatch_token_max);
  CHECK(first_position + token_count <= state.context_token_max());
  for (RopeTable& rope : ropes_) rope.extend(cpu_, first_position + token_count);
  normalise(hidden, cpu_.map.dense.layers[layer].mixer_norm, token_count);
  mixer_of(layer).mix(layer, first_position, token_count, scratch_.input, state,
                      scratch_.projected);
  if (const Matrix& after = cpu_.map.dense.layers[layer].norm_after_mixer; after.present())
    cpu_.for_tokens(token_count, [&](size_t token) {
      cpu_.normalise_if_any(after, scratch_.projected + token * cpu_.config.hidden_size);
    });
  cpu_.pool.run_ranges(token_count * cpu_.config.hidden_size, 4096, [&](size_t begin, size_t end) {
    cpu_.kernels.add_scaled(cpu_.config.residual_scale, scratch_.projected + begin, end - begin,
                            hidden + begin);
  });
}

void CpuBackend::output(size_t token_count, const float* hidden, float* logits) {
  CHECK(token_count <= cpu_.limits.ubatch_token_max);
  normalise(hidden, cpu_.map.dense.output_norm, token_count);
  const DenseWeights& dense = cpu_.map.dense;
  const Matrix& head = cpu_.map.output_is_embedding ? dense.embedding : dense.output;
  cpu_.multiply(product_of(head, scratch_.input, token_count, logits));
  finish_logits({logits, token_count * head.rows});
}

void CpuBackend::finish_logits(std::span<float> logits) const {
  const float scale = cpu_.config.logit_scale;
  const float cap = cpu_.config.logit_cap;
  if (scale == 1.0f && cap == 0.0f) return;
  cpu_.pool.run_ranges(logits.size(), 4096, [&](size_t begin, size_t end) {
    const std::span<float> some = logits.subspan(begin, end - begin);
    if (scale != 1.0f)
      for (float& logit : some) logit /= scale;
    if (cap != 0.0f) cpu_.kernels.soft_cap(cap, some.size(), some.data());
  });
}

}  // namespace sluice
