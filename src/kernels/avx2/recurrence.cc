// Layers that remember by a state: the convolution before it, how much of it is kept, and its step.
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/lanes.h"

namespace sluice::kernels::avx2 {

void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    __m256 sum = _mm256_setzero_ps();
    for (size_t k = 0; k < width; ++k)
      sum = _mm256_fmadd_ps(load_some(taps + k * tap_stride + i, n - i),
                            load_some(x + k * row_stride + i, n - i), sum);
    store_some(out + i, sum, n - i);
  }
}

void silu(float* x, size_t n) {
  for (size_t i = 0; i < n; i += kLanes)
    store_some(x + i, silu_lanes(load_some(x + i, n - i)), n - i);
}

void softplus_decay(float* x, const float* bias, float factor, size_t n) {
  const __m256 a = _mm256_set1_ps(factor);
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 sum = _mm256_add_ps(load_some(x + i, n - i), load_some(bias + i, n - i));
    store_some(x + i, exp_lanes(_mm256_mul_ps(a, softplus_lanes(sum))), n - i);
  }
}

void sigmoid_decay(float* x, const float* bias, float factor, float bound, size_t n) {
  const __m256 a = _mm256_set1_ps(factor);
  const __m256 b = _mm256_set1_ps(bound);
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 sum = _mm256_add_ps(load_some(x + i, n - i), load_some(bias + i, n - i));
    store_some(x + i, exp_lanes(_mm256_mul_ps(b, sigmoid_lanes(_mm256_mul_ps(a, sum)))), n - i);
  }
}

namespace {

constexpr size_t kParts = kDeltaTile / kLanes;  ///< registers of a row of a tile

/// Tiles of the state that pass all tokens together: with key_dim 128 two are 16 KiB, and stay in
/// L1.
constexpr size_t kTilesTogether = 2;

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
    __m256 known[kRegisters], out[kRegisters];
    for (size_t i = 0; i < args.key_dim; ++i) decayed_key[i] = key[i] * decay[i];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRegisters; ++r) known[r] = out[r] = _mm256_setzero_ps();
    for (size_t i = 0; i < args.key_dim; ++i) {
      const __m256 k = _mm256_set1_ps(decayed_key[i]);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRegisters; ++r)
        known[r] = _mm256_fmadd_ps(k, _mm256_loadu_ps(at(r, i)), known[r]);
    }
    const __m256 strength = _mm256_set1_ps(args.strengths[token * args.strength_stride]);
    __m256 correction[kRegisters];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRegisters; ++r) {
      const __m256 wanted = load_some(value + r * kLanes, left(r));
      correction[r] = _mm256_mul_ps(_mm256_sub_ps(wanted, known[r]), strength);
    }
    for (size_t i = 0; i < args.key_dim; ++i) {
      const __m256 a = _mm256_set1_ps(decay[i]);
      const __m256 k = _mm256_set1_ps(key[i]);
      const __m256 q = _mm256_set1_ps(query[i]);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRegisters; ++r) {
        const __m256 kept =
            _mm256_fmadd_ps(a, _mm256_loadu_ps(at(r, i)), _mm256_mul_ps(k, correction[r]));
        _mm256_storeu_ps(at(r, i), kept);
        out[r] = _mm256_fmadd_ps(q, kept, out[r]);
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

}  // namespace sluice::kernels::avx2
