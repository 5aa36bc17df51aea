#include "base/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace sluice {
namespace {

constexpr double kExpUlps = 1.1;  // as the header says
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The distance of a float from the exact value, in units of the last place of a float there.
double ulps(float value, double exact) {
  const double unit = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::abs(static_cast<double>(value) - exact) / unit;
}

/// The largest error over the floats of one sign from `low` to `high` (in magnitude), every
/// `step`th of them.
template <typename F, typename Exact>
double largest_error(float low, float high, uint32_t step, const F& f, const Exact& exact) {
  double largest = 0;
  for (uint32_t bits = std::bit_cast<uint32_t>(low); bits <= std::bit_cast<uint32_t>(high);
       bits += step) {
    const auto x = std::bit_cast<float>(bits);
    largest = std::max(largest, ulps(f(x), exact(static_cast<double>(x))));
  }
  return largest;
}

double exact_exp(double x) {
  return std::exp(x);
}
double exact_sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST(Elementary, ExpIsWithinItsBound) {
  using C = ExpConstants;
  // 331 and 977 are primes: all mantissas get their turn.
  EXPECT_LT(largest_error(0.0f, C::kHigh, 977, exp_f32, exact_exp), kExpUlps);
  EXPECT_LT(largest_error(-0.0f, C::kLow, 977, exp_f32, exact_exp), kExpUlps);
  EXPECT_LT(largest_error(0.25f, 2.0f, 331, exp_f32, exact_exp), kExpUlps);
  EXPECT_LT(largest_error(-0.25f, -2.0f, 331, exp_f32, exact_exp), kExpUlps);
  // Around the halves of ln 2, where the reduction changes over, and at the ends.
  for (int n = -125; n <= 127; ++n) {
    float x = static_cast<float>((n + 0.5) * std::log(2.0));
    for (int i = 0; i < 50; ++i) x = std::nextafter(x, -kInfinity);
    for (int i = 0; i < 100; ++i, x = std::nextafter(x, kInfinity)) {
      if (x > C::kHigh) break;
      ASSERT_LT(ulps(exp_f32(x), std::exp(static_cast<double>(x))), kExpUlps) << x;
    }
  }
}

TEST(Elementary, ExpAtItsEdges) {
  using C = ExpConstants;
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(std::numeric_limits<float>::denorm_min()), 1.0f);
  EXPECT_LT(ulps(exp_f32(C::kHigh), std::exp(static_cast<double>(C::kHigh))), kExpUlps);
  EXPECT_EQ(exp_f32(std::nextafter(C::kHigh, kInfinity)), kInfinity);
  EXPECT_LT(ulps(exp_f32(C::kLow), std::exp(static_cast<double>(C::kLow))), kExpUlps);
  EXPECT_EQ(exp_f32(std::nextafter(C::kLow, -kInfinity)), 0.0f);
  EXPECT_GE(exp_f32(C::kLow), std::numeric_limits<float>::min()) << "no subnormals";
  for (const float huge : {1e5f, 3e38f, kInfinity}) {
    EXPECT_EQ(exp_f32(huge), kInfinity);
    EXPECT_EQ(exp_f32(-huge), 0.0f);
    EXPECT_FALSE(std::signbit(exp_f32(-huge)));
  }
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Elementary, SigmoidAndSiluFollow) {
  const auto exact_silu = [](double x) { return x * exact_sigmoid(x); };
  for (const float sign : {0.0f, -0.0f}) {
    const float end = std::copysign(87.0f, sign);
    EXPECT_LT(largest_error(sign, end, 1009, sigmoid_f32, exact_sigmoid), 4.0);
    EXPECT_LT(largest_error(std::copysign(1e-30f, sign), end, 1009, silu_f32, exact_silu), 4.0);
  }
  EXPECT_EQ(sigmoid_f32(0.0f), 0.5f);
  EXPECT_EQ(sigmoid_f32(kInfinity), 1.0f);
  EXPECT_EQ(sigmoid_f32(-kInfinity), 0.0f);
  EXPECT_EQ(silu_f32(0.0f), 0.0f);
  EXPECT_EQ(silu_f32(100.0f), 100.0f);
  EXPECT_EQ(silu_f32(-100.0f), 0.0f);
  EXPECT_TRUE(std::isnan(sigmoid_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Elementary, SoftplusIsWithinItsBound) {
  const auto exact = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); };
  EXPECT_LT(largest_error(1e-30f, 100.0f, 1009, softplus_f32, exact), 3.0);
  EXPECT_LT(largest_error(-1e-30f, -87.0f, 1009, softplus_f32, exact), 3.0);
  EXPECT_LT(largest_error(-0.25f, -4.0f, 331, softplus_f32, exact), 3.0);
  EXPECT_EQ(softplus_f32(kInfinity), kInfinity);
  EXPECT_EQ(softplus_f32(-kInfinity), 0.0f);
  EXPECT_EQ(softplus_f32(100.0f), 100.0f);
  EXPECT_EQ(softplus_f32(0.0f), softplus_f32(-0.0f));
  EXPECT_TRUE(std::isnan(softplus_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Elementary, GeluAndTanhFollow) {
  const auto exact_tanh = [](double x) { return std::tanh(x); };
  for (const float sign : {0.0f, -0.0f}) {
    const float begin = std::copysign(1e-30f, sign), end = std::copysign(100.0f, sign);
    EXPECT_LT(largest_error(begin, end, 1009, tanh_f32, exact_tanh), 2.0);
    EXPECT_EQ(tanh_f32(std::copysign(kInfinity, sign)), std::copysign(1.0f, sign));
    EXPECT_EQ(tanh_f32(sign), 0.0f);
  }
  for (const float x : {0.625f, 0.62499994f}) {
    EXPECT_LT(ulps(tanh_f32(x), std::tanh(static_cast<double>(x))), 2.0) << "where forms change";
  }
  EXPECT_TRUE(std::isnan(tanh_f32(std::numeric_limits<float>::quiet_NaN())));

  const auto exact_gelu = [](double x) {
    return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  };
  EXPECT_LT(largest_error(1e-30f, 100.0f, 1009, gelu_f32, exact_gelu), 4.0);
  EXPECT_EQ(gelu_f32(0.0f), 0.0f);
  EXPECT_EQ(gelu_f32(-100.0f), 0.0f);
  for (float x = -9.0f; x < 0; x += 0.01f)
    EXPECT_NEAR(gelu_f32(x), exact_gelu(static_cast<double>(x)), 1e-7);
}

}  // namespace
}  // namespace sluice
