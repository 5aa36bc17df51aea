#include "forward/batch_layout.h"

#include <algorithm>

#include "base/units.h"
#include "forward/forward_pass.h"

namespace sluice {
namespace {

constexpr size_t kLogitsTokens = 32;

using Formats = std::array<bool, kActivationFormatCount>;

/// What FFNs of one kind ask for: formats of their input and of what down multiplies.
struct FfnNeeds {
  Formats input{};
  Formats inner{};
  uint64_t width = 0;
};

void want(Formats& formats, const Matrix& matrix) {
  formats[static_cast<size_t>(dtype_info(matrix.dtype).activation)] = true;
}

FfnNeeds expert_needs(const ModelConfig& config, const WeightMap& map) {
  FfnNeeds needs;
  needs.width = config.expert_hidden_size;
  for (const ExpertLayout& layer : map.experts)
    for (const ExpertPart& part : layer.parts())
      want(part.kind == ExpertPartKind::down ? needs.inner : needs.input, part.shape);
  return needs;
}

FfnNeeds dense_needs(const WeightMap& map) {
  FfnNeeds needs;
  for (const LayerWeights& layer : map.dense.layers) {
    const DenseFfn& ffn = layer.dense_ffn();
    if (!ffn.present()) continue;
    want(needs.input, ffn.gate);
    want(needs.input, ffn.up);
    want(needs.inner, ffn.down);
    if (layer.shared_gate.present()) want(needs.input, layer.shared_gate);
    needs.width = std::max<uint64_t>(needs.width, ffn.down.cols);
  }
  return needs;
}

}  // namespace

size_t logits_token_max(const ForwardLimits& limits) {
  return std::min({kLogitsTokens, limits.ubatch_token_max, limits.batch_token_max});
}

ForwardLimits limits_for(const ForwardLimits& limits, size_t token_count) {
  ForwardLimits cut = limits;
  cut.step_token_max = token_count;
  cut.batch_token_max = std::min(limits.batch_token_max, token_count);
  cut.ubatch_token_max = std::min(limits.ubatch_token_max, token_count);
  return cut;
}

BatchLayout::BatchLayout(const ModelConfig& config, const WeightMap& map,
                         const ForwardLimits& limits)
    : used_count_(config.expert_used_count) {
  const uint64_t tokens = limits.batch_token_max;
  const uint64_t pairs = tokens * used_count_;
  hidden_ = take(limits.step_token_max, config.hidden_size * sizeof(float));
  experts_ = take(tokens, used_count_ * sizeof(int32_t));
  weights_ = take(tokens, used_count_ * sizeof(float));
  const FfnNeeds experts = expert_needs(config, map);
  const FfnNeeds dense = dense_needs(map);
  inputs_differ_ = std::ranges::any_of(
      map.dense.layers, [](const LayerWeights& layer) { return layer.experts_norm.present(); });
  for (size_t i = 0; i < kActivationFormatCount; ++i) {
    const auto row_bytes = [&](uint64_t cols) {
      return activation_layout(static_cast<ActivationFormat>(i), cols).row_bytes;
    };
    if (experts.input[i] || (dense.input[i] && !inputs_differ_))
      ffn_input_[i] = take(tokens, row_bytes(config.hidden_size));
    if (!inputs_differ_)
      shared_input_[i] = ffn_input_[i];
    else if (dense.input[i])
      shared_input_[i] = take(tokens, row_bytes(config.hidden_size));
    if (experts.inner[i]) activated_[i] = take(pairs, row_bytes(experts.width));
    if (dense.inner[i]) dense_activated_[i] = take(tokens, row_bytes(dense.width));
  }
  expert_output_ = take(pairs, config.hidden_size * sizeof(float));
  if (dense.width > 0) dense_output_ = take(tokens, config.hidden_size * sizeof(float));
  logits_ = take(logits_token_max(limits), config.vocabulary_size * sizeof(float));
}

BatchLayout::Rows BatchLayout::take(uint64_t row_count, uint64_t stride) {
  const Rows rows{bytes_, stride};
  bytes_ += round_up(row_count * stride, 64);
  return rows;
}

BatchBuffers BatchLayout::place(std::byte* memory) const {
  BatchBuffers batch;
  const auto floats = [&](const Rows& rows) {
    return reinterpret_cast<float*>(memory + rows.offset);
  };
  const auto rows_at = [&](const Rows& rows) {
    return rows.stride == 0 ? ActivationRows{} : ActivationRows{memory + rows.offset, rows.stride};
  };
  batch.routing = {.experts = reinterpret_cast<int32_t*>(memory + experts_.offset),
                   .weights = floats(weights_),
                   .used_count = used_count_};
  batch.inputs_differ = inputs_differ_;
  for (size_t i = 0; i < kActivationFormatCount; ++i) {
    batch.ffn_input[i] = rows_at(ffn_input_[i]);
    batch.shared_input[i] = rows_at(shared_input_[i]);
    batch.activated[i] = rows_at(activated_[i]);
  }
  batch.expert_output = floats(expert_output_);
  if (dense_output_.stride > 0) batch.shared_output = floats(dense_output_);
  return batch;
}

BatchBuffers BatchLayout::place_dense_ffn(std::byte* memory) const {
  BatchBuffers batch = place(memory);
  for (size_t i = 0; i < kActivationFormatCount; ++i) {
    const Rows& rows = dense_activated_[i];
    batch.activated[i] =
        rows.stride == 0 ? ActivationRows{} : ActivationRows{memory + rows.offset, rows.stride};
    batch.ffn_input[i] = batch.shared_input[i];
  }
  batch.expert_output = batch.shared_output;
  return batch;
}

float* BatchLayout::hidden(std::byte* memory) const {
  return reinterpret_cast<float*>(memory + hidden_.offset);
}

float* BatchLayout::logits(std::byte* memory) const {
  return reinterpret_cast<float*>(memory + logits_.offset);
}

}  // namespace sluice
