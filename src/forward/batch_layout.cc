#include "forward/batch_layout.h"

#include <algorithm>

#include "base/units.h"
#include "forward/forward_pass.h"

namespace sluice {
namespace {

constexpr size_t kLogitsTokens = 32;

using Formats = std::array<bool, kActivationFormatCount>;

/// The activation formats that some expert matrix of the kinds asks for.
Formats formats_wanted(const WeightMap& map, bool down) {
  Formats wanted{};
  for (const ExpertLayout& layer : map.experts)
    for (const ExpertPart& part : layer.parts())
      if ((part.kind == ExpertPartKind::down) == down)
        wanted[static_cast<size_t>(dtype_info(part.shape.dtype).activation)] = true;
  return wanted;
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
  const Formats input = formats_wanted(map, false);
  const Formats inner = formats_wanted(map, true);
  for (size_t i = 0; i < kActivationFormatCount; ++i) {
    const auto format = static_cast<ActivationFormat>(i);
    if (input[i])
      ffn_input_[i] = take(tokens, activation_layout(format, config.hidden_size).row_bytes);
    if (inner[i])
      activated_[i] = take(pairs, activation_layout(format, config.expert_hidden_size).row_bytes);
  }
  expert_output_ = take(pairs, config.hidden_size * sizeof(float));
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
  for (size_t i = 0; i < kActivationFormatCount; ++i) {
    batch.ffn_input[i] = rows_at(ffn_input_[i]);
    batch.activated[i] = rows_at(activated_[i]);
  }
  batch.expert_output = floats(expert_output_);
  return batch;
}

float* BatchLayout::hidden(std::byte* memory) const {
  return reinterpret_cast<float*>(memory + hidden_.offset);
}

float* BatchLayout::logits(std::byte* memory) const {
  return reinterpret_cast<float*>(memory + logits_.offset);
}

}  // namespace sluice
