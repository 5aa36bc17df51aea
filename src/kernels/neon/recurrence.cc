// Layers that remember by a state: the convolution before it, how much of it is kept, and its step.
#include "kernels/neon/lanes.h"
#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    float32x4_t sum = vdupq_n_f32(0.0f);
    for (size_t k = 0; k < width; ++k)
      sum = vfmaq_f32(sum, load_some(taps + k * tap_stride + i, n - i),
                      load_some(x + k * row_stride + i, n - i));
    store_some(out + i, sum, n - i);
  }
}

void silu(float* x, size_t n) {
  for (size_t i = 0; i < n; i += kLanes)
    store_some(x + i, silu_lanes(load_some(x + i, n - i)), n - i);
}

void softplus_decay(float* x, const float* bias, float factor, size_t n) {
  const float32x4_t a = vdupq_n_f32(factor);
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t sum = vaddq_f32(load_some(x + i, n - i), load_some(bias + i, n - i));
    store_some(x + i, exp_lanes(vmulq_f32(a, softplus_lanes(sum))), n - i);
  }
}

void sigmoid_decay(float* x, const float* bias, float factor, float bound, size_t n) {
  const float32x4_t a = vdupq_n_f32(factor);
  const float32x4_t b = vdupq_n_f32(bound);
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t sum = vaddq_f32(load_some(x + i, n - i), load_some(bias + i, n - i));
    store_some(x + i, exp_lanes(vmulq_f32(b, sigmoid_lanes(vmulq_f32(a, sum)))), n - i);
  }
}

namespace {

constexpr size_t kParts = kDeltaTile / kLanes;  ///< registers of a row of a tile

/// Tiles of the state that pass all tokens together; the registers of more would not all fit.
constexpr size_t kTilesTogether = 1;

/// All tokens pass kTiles tiles, from column `first` on. Register r of a row is part r % kParts of
/// tile r / kParts.
template <size_t kTiles>
void pass_tiles(const DeltaArgs& args, size_t first) {
  constexpr size_t kRegisters = kTiles * kParts;
  float* state = args.state + first * args.key_dim;
  const auto at = [&](size_t r, size_t i) {
    return state + r / kParts * (args.key_dim * kDeltaTile) + i * kDeltaTile + r % kParts * kLanes;
  };
  const auto left = [&](size_t r) {
    const size_t column = first + r * kLanes;
    return column < args.value_dim ? args.value_dim - column : 0;
  };
  float decayed_key[kDeltaKeyMax];
  for (size_t token = 0; token < args.token_count; ++token) {
    const float* query = args.queries + token * args.query_stride;
    const float* key = args.keys + token * args.query_stride;
    const float* decay = args.decays + token * args.decay_stride;
    const float* value = args.values + token * args.value_stride + first;
    float32x4_t known[kRegisters], out[kRegisters];
    for (size_t i = 0; i < args.key_dim; ++i) decayed_key[i] = key[i] * decay[i];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRegisters; ++r) known[r] = out[r] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < args.key_dim; ++i) {
      const float32x4_t k = vdupq_n_f32(decayed_key[i]);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRegisters; ++r)
        known[r] = vfmaq_f32(known[r], k, vld1q_f32(at(r, i)));
    }
    const float32x4_t strength = vdupq_n_f32(args.strengths[token * args.strength_stride]);
    float32x4_t correction[kRegisters];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRegisters; ++r) {
      const float32x4_t wanted = load_some(value + r * kLanes, left(r));
      correction[r] = vmulq_f32(vsubq_f32(wanted, known[r]), strength);
    }
    for (size_t i = 0; i < args.key_dim; ++i) {
      const float32x4_t a = vdupq_n_f32(decay[i]);
      const float32x4_t k = vdupq_n_f32(key[i]);
      const float32x4_t q = vdupq_n_f32(query[i]);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRegisters; ++r) {
        const float32x4_t kept = vfmaq_f32(vmulq_f32(k, correction[r]), a, vld1q_f32(at(r, i)));
        vst1q_f32(at(r, i), kept);
        out[r] = vfmaq_f32(out[r], q, kept);
      }
    }
    float* to = args.out + token * args.out_stride + first;
#pragma GCC unroll 8
    for (size_t r = 0; r < kRegisters; ++r) store_some(to + r * kLanes, out[r], left(r));
  }
}

}  // namespace

void delta_rule(const DeltaArgs& args) {
  constexpr size_t kTogether = kTilesTogether * kDeltaTile;
  size_t first = 0;
  for (; first + kTogether <= args.value_dim; first += kTogether)
    pass_tiles<kTilesTogether>(args, first);
  for (; first < args.value_dim; first += kDeltaTile) pass_tiles<1>(args, first);
}

}  // namespace sluice::kernels::neon
