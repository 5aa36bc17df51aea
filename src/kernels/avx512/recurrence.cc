// Layers that remember by a state: the convolution before it, how much of it is kept, and its step.
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/lanes.h"

namespace sluice::kernels::avx512 {

void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    __m512 sum = _mm512_setzero_ps();
    for (size_t k = 0; k < width; ++k)
      sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(lanes, taps + k * tap_stride + i),
                            _mm512_maskz_loadu_ps(lanes, x + k * row_stride + i), sum);
    _mm512_mask_storeu_ps(out + i, lanes, sum);
  }
}

void silu(float* x, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    _mm512_mask_storeu_ps(x + i, lanes, silu_lanes(_mm512_maskz_loadu_ps(lanes, x + i)));
  }
}

void softplus_decay(float* x, const float* bias, float factor, size_t n) {
  const __m512 a = _mm512_set1_ps(factor);
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 sum =
        _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, x + i), _mm512_maskz_loadu_ps(lanes, bias + i));
    _mm512_mask_storeu_ps(x + i, lanes, exp_lanes(_mm512_mul_ps(a, softplus_lanes(sum))));
  }
}

void sigmoid_decay(float* x, const float* bias, float factor, float bound, size_t n) {
  const __m512 a = _mm512_set1_ps(factor);
  const __m512 b = _mm512_set1_ps(bound);
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 sum =
        _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, x + i), _mm512_maskz_loadu_ps(lanes, bias + i));
    const __m512 gate = sigmoid_lanes(_mm512_mul_ps(a, sum));
    _mm512_mask_storeu_ps(x + i, lanes, exp_lanes(_mm512_mul_ps(b, gate)));
  }
}

namespace {

static_assert(kDeltaTile == kLanes);

/// Tiles of the state that pass all tokens together: with key_dim 128 two are 16 KiB, and stay in
/// L1.
constexpr size_t kTilesTogether = 2;

/// All tokens pass kTiles tiles, from column `first` on.
template <size_t kTiles>
void pass_tiles(const DeltaArgs& args, size_t first) {
  const size_t tile_floats = args.key_dim * kLanes;
  float* state = args.state + first * args.key_dim;
  float decayed_key[kDeltaKeyMax];
  for (size_t token = 0; token < args.token_count; ++token) {
    const float* query = args.queries + token * args.query_stride;
    const float* key = args.keys + token * args.query_stride;
    const float* decay = args.decays + token * args.decay_stride;
    __m512 known[kTiles], correction[kTiles], out[kTiles];
    for (size_t i = 0; i < args.key_dim; ++i) decayed_key[i] = key[i] * decay[i];
#pragma GCC unroll 4
    for (size_t tile = 0; tile < kTiles; ++tile) known[tile] = out[tile] = _mm512_setzero_ps();
    for (size_t i = 0; i < args.key_dim; ++i) {
      const __m512 k = _mm512_set1_ps(decayed_key[i]);
#pragma GCC unroll 4
      for (size_t tile = 0; tile < kTiles; ++tile)
        known[tile] = _mm512_fmadd_ps(k, _mm512_loadu_ps(state + tile * tile_floats + i * kLanes),
                                      known[tile]);
    }
    const __m512 strength = _mm512_set1_ps(args.strengths[token * args.strength_stride]);
#pragma GCC unroll 4
    for (size_t tile = 0; tile < kTiles; ++tile) {
      const size_t at = first + tile * kLanes;
      const __m512 value = _mm512_maskz_loadu_ps(lanes_left(at, args.value_dim),
                                                 args.values + token * args.value_stride + at);
      correction[tile] = _mm512_mul_ps(_mm512_sub_ps(value, known[tile]), strength);
    }
    for (size_t i = 0; i < args.key_dim; ++i) {
      const __m512 a = _mm512_set1_ps(decay[i]);
      const __m512 k = _mm512_set1_ps(key[i]);
      const __m512 q = _mm512_set1_ps(query[i]);
#pragma GCC unroll 4
      for (size_t tile = 0; tile < kTiles; ++tile) {
        float* row = state + tile * tile_floats + i * kLanes;
        const __m512 kept =
            _mm512_fmadd_ps(a, _mm512_loadu_ps(row), _mm512_mul_ps(k, correction[tile]));
        _mm512_storeu_ps(row, kept);
        out[tile] = _mm512_fmadd_ps(q, kept, out[tile]);
      }
    }
#pragma GCC unroll 4
    for (size_t tile = 0; tile < kTiles; ++tile) {
      const size_t at = first + tile * kLanes;
      _mm512_mask_storeu_ps(args.out + token * args.out_stride + at, lanes_left(at, args.value_dim),
                            out[tile]);
    }
  }
}

}  // namespace

void delta_rule(const DeltaArgs& args) {
  size_t first = 0;
  for (; first + kTilesTogether * kLanes <= args.value_dim; first += kTilesTogether * kLanes)
    pass_tiles<kTilesTogether>(args, first);
  for (; first < args.value_dim; first += kLanes) pass_tiles<1>(args, first);
}

}  // namespace sluice::kernels::avx512
