#include "backend/cpu/delta_net.h"

#include <algorithm>
#include <cmath>

#include "base/elementary.h"
#include "base/units.h"

namespace sluice {
namespace {

static_assert(DeltaConfig::kStateColumns == kernels::kDeltaTile);

/// Columns of a head's state that are one task.
constexpr size_t kTaskColumns = 32;

}  // namespace

DeltaNet::DeltaNet(const CpuContext& cpu)
    : cpu_(cpu),
      shape_(cpu.config.delta),
      is_kda_(cpu.config.architecture->delta == DeltaForm::kda) {
  CHECK(shape_.key_dim <= kernels::kDeltaKeyMax);
  for (size_t i = 0; i < cpu.config.layer_count(); ++i) {
    if (cpu.config.layers[i].mixer != MixerKind::delta_net) continue;
    const DeltaNetWeights& weights = cpu.map.dense.layers[i].delta;
    decay_rank_ = std::max(decay_rank_, weights.decay_down.rows);
    gate_rank_ = std::max(gate_rank_, weights.gate_down.rows);
    if (weights.decay_down.present()) decay_low_input_.want(format_of(weights.decay));
    if (weights.gate_down.present()) gate_low_input_.want(format_of(weights.gate));
    given_input_.want(format_of(weights.output));
  }
}

void DeltaNet::want_input(const LayerWeights& layer, ActivationSet& input) const {
  const DeltaNetWeights& weights = layer.delta;
  const auto want = [&](const Matrix& matrix) {
    if (matrix.present()) input.want(format_of(matrix));
  };
  for (const auto& convolved : weights.inputs) want(convolved.weight);
  want(weights.strength);
  want(weights.strength_and_decay);
  want(weights.decay_down.present() ? weights.decay_down : weights.decay);
  want(weights.gate_down.present() ? weights.gate_down : weights.gate);
}

void DeltaNet::lay_out(Carver& carve) {
  const size_t tokens = cpu_.limits.ubatch_token_max;
  const size_t heads = shape_.value_head_count;
  channels_ = carve.floats((shape_.convolution_width - 1 + tokens) * shape_.channels());
  convolved_ = carve.floats(tokens * shape_.channels());
  strength_and_decay_ = carve.floats(tokens * 2 * heads);
  strength_ = carve.floats(tokens * heads);
  head_decay_ = carve.floats(tokens * heads);
  decay_ = carve.floats(tokens * heads * shape_.key_dim);
  gate_ = carve.floats(tokens * shape_.value_channels());
  const auto floats_and_rows = [&](size_t cols, float*& floats, ActivationSet& set) {
    floats = carve.floats(tokens * cols);
    set.place(carve.take(set.bytes(tokens, cols)), tokens, cols);
  };
  floats_and_rows(decay_rank_, decay_low_, decay_low_input_);
  floats_and_rows(gate_rank_, gate_low_, gate_low_input_);
  floats_and_rows(shape_.value_channels(), given_, given_input_);
}

void DeltaNet::mix(size_t layer, size_t, size_t token_count, const ActivationSet& input,
                   SequenceState& state, float* out) {
  const DeltaNetWeights& weights = cpu_.map.dense.layers[layer].delta;
  float* running = state.running(layer);
  project(weights, token_count, input);
  std::copy_n(last_inputs(running), last_input_floats(), channels_);
  cpu_.for_tokens(token_count, [&](size_t token) {
    convolve(weights, token);
    set_strengths(weights, token);
    set_decays(weights, token);
  });
  std::copy_n(channels_ + token_count * shape_.channels(), last_input_floats(),
              last_inputs(running));
  pass_states(token_count, running);
  cpu_.for_tokens(token_count, [&](size_t token) { gate_output(weights, token); });
  cpu_.multiply(product_of(weights.output, given_input_, token_count, out));
}

/// All that is made of the layer's input; the families differ in what is one matrix.
void DeltaNet::project(const DeltaNetWeights& weights, size_t token_count,
                       const ActivationSet& input) {
  std::array<MatmulJob, 8> jobs;
  size_t count = 0;
  const auto add = [&](const Matrix& matrix, float* out, size_t out_stride) {
    if (!matrix.present()) return;
    jobs[count] = product_of(matrix, input, token_count, out);
    jobs[count++].out_stride = out_stride;
  };
  const size_t heads = shape_.value_head_count;
  float* channels = channels_ + last_input_floats();
  for (const auto& convolved : weights.inputs) {
    add(convolved.weight, channels, shape_.channels());
    channels += convolved.weight.rows;
  }
  add(weights.strength, strength_, heads);
  add(weights.strength_and_decay, strength_and_decay_, 2 * heads);
  if (weights.decay_down.present())
    add(weights.decay_down, decay_low_, weights.decay_down.rows);
  else
    add(weights.decay, is_kda_ ? decay_ : head_decay_, weights.decay.rows);
  if (weights.gate_down.present())
    add(weights.gate_down, gate_low_, weights.gate_down.rows);
  else
    add(weights.gate, gate_, weights.gate.rows);
  cpu_.multiply(std::span(jobs).first(count));
  project_from_low(weights, token_count);
}

void DeltaNet::project_from_low(const DeltaNetWeights& weights, size_t token_count) {
  std::array<MatmulJob, 2> jobs;
  size_t count = 0;
  const auto add = [&](const Matrix& down, const float* low, const ActivationSet& input,
                       const Matrix& up, float* out) {
    if (!down.present()) return;
    cpu_.for_tokens(token_count, [&](size_t token) {
      input.write(cpu_.kernels, token, low + token * down.rows, down.rows);
    });
    jobs[count++] = product_of(up, input, token_count, out);
  };
  add(weights.decay_down, decay_low_, decay_low_input_, weights.decay, decay_);
  add(weights.gate_down, gate_low_, gate_low_input_, weights.gate, gate_);
  if (count > 0) cpu_.multiply(std::span(jobs).first(count));
}

/// Queries and keys get their lengths here: keys 1, queries what attention divides by.
void DeltaNet::convolve(const DeltaNetWeights& weights, size_t token) const {
  const float* rows = channels_ + token * shape_.channels();
  float* out = convolved_ + token * shape_.channels();
  size_t first = 0;
  for (const auto& input : weights.inputs) {
    if (!input.weight.present()) break;
    const size_t count = input.weight.rows;
    cpu_.kernels.convolve(rows + first, shape_.channels(), floats_of(input.taps), count,
                          shape_.convolution_width, count, out + first);
    first += count;
  }
  cpu_.kernels.silu(out, shape_.channels());
  const float query_length = 1.0f / std::sqrt(static_cast<float>(shape_.key_dim));
  for (size_t head = 0; head < 2 * shape_.key_head_count; ++head)
    cpu_.kernels.set_length(out + head * shape_.key_dim,
                            head < shape_.key_head_count ? query_length : 1.0f,
                            cpu_.config.rms_epsilon, shape_.key_dim);
}

/// What was projected together lies key head by key head: the strengths of its value heads, then
/// their decays.
void DeltaNet::set_strengths(const DeltaNetWeights& weights, size_t token) const {
  const size_t heads = shape_.value_head_count;
  float* strength = strength_ + token * heads;
  if (weights.strength_and_decay.present()) {
    const float* both = strength_and_decay_ + token * 2 * heads;
    const size_t group = heads / shape_.key_head_count;
    for (size_t head = 0; head < heads; ++head) {
      const size_t at = head / group * 2 * group + head % group;
      strength[head] = both[at];
      head_decay_[token * heads + head] = both[at + group];
    }
  }
  for (size_t head = 0; head < heads; ++head) strength[head] = sigmoid_f32(strength[head]);
}

void DeltaNet::set_decays(const DeltaNetWeights& weights, size_t token) const {
  const size_t heads = shape_.value_head_count;
  const size_t dim = shape_.key_dim;
  for (size_t head = 0; head < heads; ++head) {
    float* decay = decay_ + (token * heads + head) * dim;
    const size_t count = is_kda_ ? dim : 1;
    if (!is_kda_) *decay = head_decay_[token * heads + head];
    const float* bias = floats_of(weights.decay_bias) + head * count;
    const float factor = floats_of(weights.decay_factor)[head];
    if (shape_.decay_bound < 0)
      cpu_.kernels.sigmoid_decay(decay, bias, factor, shape_.decay_bound, count);
    else
      cpu_.kernels.softplus_decay(decay, bias, factor, count);
    std::fill(decay + count, decay + dim, *decay);
  }
}

void DeltaNet::pass_states(size_t token_count, float* states) const {
  const size_t heads = shape_.value_head_count;
  const size_t parts = ceil_div(size_t{shape_.value_dim}, kTaskColumns);
  const bool grouped = cpu_.config.architecture->delta == DeltaForm::grouped;
  cpu_.pool.run_queue(heads * parts, [&](size_t task, size_t) {
    const size_t head = task / parts;
    const size_t key_head =
        grouped ? head / (heads / shape_.key_head_count) : head % shape_.key_head_count;
    const size_t first = task % parts * kTaskColumns;
    const size_t column = head * shape_.value_dim + first;
    cpu_.kernels.delta_rule(
        {.state = states + head * shape_.head_state_floats() + first * shape_.key_dim,
         .key_dim = shape_.key_dim,
         .value_dim = std::min<size_t>(kTaskColumns, shape_.value_dim - first),
         .token_count = token_count,
         .queries = convolved_ + key_head * shape_.key_dim,
         .keys = convolved_ + shape_.key_channels() + key_head * shape_.key_dim,
         .query_stride = shape_.channels(),
         .decays = decay_ + head * shape_.key_dim,
         .decay_stride = heads * shape_.key_dim,
         .values = convolved_ + 2 * shape_.key_channels() + column,
         .value_stride = shape_.channels(),
         .strengths = strength_ + head,
         .strength_stride = heads,
         .out = given_ + column,
         .out_stride = shape_.value_channels()});
  });
}

void DeltaNet::gate_output(const DeltaNetWeights& weights, size_t token) const {
  const size_t row = shape_.value_channels();
  float* given = given_ + token * row;
  const float* gate = gate_ + token * row;
  cpu_.normalise_rows(given, shape_.value_head_count, shape_.value_dim, weights.norm);
  (is_kda_ ? cpu_.kernels.sigmoid_multiply : cpu_.kernels.silu_multiply)(gate, given, row, given);
  given_input_.write(cpu_.kernels, token, given, row);
}

}  // namespace sluice
