// exp, sigmoid, SiLU, GELU, tanh and softplus as this project defines them: single-precision
// polynomials built from fma, the same bits on every machine and in every vector width. libm is not
// used on the token path, because its last bit differs between versions and systems. Kernels
// restate these formulas in their own instructions (an inline function shared with them could be
// emitted with their flags and become the copy that the whole program runs) and are tested to agree
// bit for bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sluice {

/// Constants of exp: e^x = 2^n · e^r with n = round(x / ln 2), r = x − n·ln 2 in two steps
/// (Cody and Waite), e^r ≈ 1 + r + r²·(kC2 + … + kC6·r⁴) for |r| ≤ ln(2)/2. The five coefficients
/// minimise the largest relative error, which is 2^-28; with rounding e^x is within 1.1 ulp. (The
/// Taylor polynomial of the same degree costs as much and is off by up to 2.6 ulp.)
struct ExpConstants {
  static constexpr float kLow = -87.33f;     ///< below it the result is 0 (no subnormals)
  static constexpr float kHigh = 88.37626f;  ///< above it the result is +infinity
  static constexpr float kLog2E = 1.44269504f;
  static constexpr float kRound = 12582912.0f;  ///< 1.5 · 2^23: adding it rounds to an integer
  static constexpr float kLn2High = 0.693359375f;
  static constexpr float kLn2Low = -2.12194440e-4f;
  static constexpr float kC6 = 0x1.6a2434p-10f, kC5 = 0x1.1239e2p-7f, kC4 = 0x1.5558f2p-5f,
                         kC3 = 0x1.555492p-3f, kC2 = 0x1.fffffcp-2f;
};

/// e^x. NaN gives NaN; −infinity gives 0.
inline float exp_f32(float x) {
  using C = ExpConstants;
  if (x < C::kLow) return 0.0f;
  if (x > C::kHigh) return std::numeric_limits<float>::infinity();
  const float shifted = std::fma(x, C::kLog2E, C::kRound);
  const float n = shifted - C::kRound;
  float r = std::fma(n, -C::kLn2High, x);
  r = std::fma(n, -C::kLn2Low, r);
  float p = std::fma(C::kC6, r, C::kC5);
  p = std::fma(p, r, C::kC4);
  p = std::fma(p, r, C::kC3);
  p = std::fma(p, r, C::kC2);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  // p · 2^n by adding n to the exponent field: the low bits of `shifted` hold n.
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) +
                              (std::bit_cast<uint32_t>(shifted) << 23));
}

/// 1 / (1 + e^−x)
inline float sigmoid_f32(float x) {
  return 1.0f / (1.0f + exp_f32(-x));
}

/// x · sigmoid(x), computed as x / (1 + e^−x)
inline float silu_f32(float x) {
  return x / (1.0f + exp_f32(-x));
}

/// Constants of ln(1 + y) for 0 ≤ y ≤ 1: with s = y / (2 + y) ≤ 1/3 it is 2·artanh(s), and
/// artanh(s) ≈ s + s³·(kC3 + kC5·s² + … + kC11·s⁸). The coefficients interpolate at Chebyshev
/// nodes; the relative error is 2^-29.9, with rounding softplus is within 3 ulp.
struct LogConstants {
  static constexpr float kC11 = 0x1.dba25ep-4f, kC9 = 0x1.bc8cfap-4f, kC7 = 0x1.24c926p-3f,
                         kC5 = 0x1.9998d4p-3f, kC3 = 0x1.555556p-2f;
};

/// ln(1 + e^x), computed as max(x, 0) + ln(1 + e^−|x|). NaN gives NaN.
inline float softplus_f32(float x) {
  using C = LogConstants;
  const float y = exp_f32(-std::fabs(x));
  const float s = y / (2.0f + y);
  const float z = s * s;
  float p = std::fma(C::kC11, z, C::kC9);
  p = std::fma(p, z, C::kC7);
  p = std::fma(p, z, C::kC5);
  p = std::fma(p, z, C::kC3);
  const float twice = s + s;
  return (x > 0.0f ? x : 0.0f) + std::fma(twice * z, p, twice);
}

/// The GELU of models that say "tanh": x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))), computed as
/// x / (1 + e^−w) with w twice what tanh is taken of: w = x·(kLinear + kCubic·x²).
struct GeluConstants {
  static constexpr float kLinear = 1.5957691216f;  ///< 2·√(2/π)
  static constexpr float kCubic = 0.0713548163f;   ///< 0.044715 of it
};
inline float gelu_f32(float x) {
  const float w = x * std::fma(x * x, GeluConstants::kCubic, GeluConstants::kLinear);
  return x / (1.0f + exp_f32(-w));
}

/// Constants of tanh: below kSmall in magnitude x + x³·(kC0 + … + kC4·x⁸), whose coefficients
/// minimise the largest relative error (2^-27.8); from there on ±(1 − 2 / (1 + e^2|x|)).
struct TanhConstants {
  static constexpr float kSmall = 0.625f;
  static constexpr float kC4 = -0x1.75e1cep-8f, kC3 = 0x1.52269cp-6f, kC2 = -0x1.b83c5ap-5f,
                         kC1 = 0x1.110726p-3f, kC0 = -0x1.555532p-2f;
};

/// Within 2 ulp. NaN gives NaN.
inline float tanh_f32(float x) {
  using C = TanhConstants;
  const float magnitude = std::abs(x);
  if (magnitude < C::kSmall) {
    const float z = x * x;
    float p = std::fma(C::kC4, z, C::kC3);
    p = std::fma(p, z, C::kC2);
    p = std::fma(p, z, C::kC1);
    p = std::fma(p, z, C::kC0);
    return std::fma(x * z, p, x);
  }
  const float large = 1.0f - 2.0f / (1.0f + exp_f32(magnitude + magnitude));
  return std::copysign(large, x);
}

}  // namespace sluice
