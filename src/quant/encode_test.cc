#include "quant/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"

namespace sluice {
namespace {

constexpr Dtype kEncodable[] = {Dtype::f32,  Dtype::f16,  Dtype::bf16, Dtype::q4_0, Dtype::q5_0,
                                Dtype::q8_0, Dtype::q4_k, Dtype::q5_k, Dtype::q6_k};

std::vector<float> through(Dtype dtype, const std::vector<float>& x) {
  const DtypeInfo& info = dtype_info(dtype);
  const size_t blocks = x.size() / info.block_elements;
  std::vector<std::byte> bytes(blocks * info.block_bytes);
  encoder(dtype)(x.data(), blocks, bytes.data());
  std::vector<float> decoded(x.size());
  info.decode(bytes.data(), blocks, decoded.data());
  return decoded;
}

/// Roughly normal: the sum of several uniform values.
std::vector<float> bell_curve(size_t count, float magnitude) {
  Random random(99);
  std::vector<float> x(count);
  for (float& value : x) {
    double sum = -3;
    for (int i = 0; i < 6; ++i) sum += random.uniform();
    value = static_cast<float>(sum) * magnitude;
  }
  return x;
}

double relative_rms_error(const std::vector<float>& x, const std::vector<float>& y) {
  double error = 0, total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    total += double{x[i]} * x[i];
  }
  return std::sqrt(error / total);
}

TEST(Encode, EveryFormatWithAnEncoderHasADecoder) {
  for (uint32_t id = 0; id < kDtypeIdCount; ++id) {
    const DtypeInfo* info = find_dtype(id);
    if (info == nullptr || encoder(info->dtype) == nullptr) continue;
    EXPECT_NE(info->decode, nullptr) << info->name;
  }
}

/// The step of a b-bit grid over ±3.5 sigma, divided by sqrt(12), is about 2^(2 − b) of the values'
/// size; the limits below leave a quarter on top of what was measured.
TEST(Encode, ErrorsFitTheBits) {
  struct Limit {
    Dtype dtype;
    double relative_rms_error_max;
  };
  constexpr Limit kLimits[] = {{Dtype::f32, 0},     {Dtype::f16, 2.5e-4},  {Dtype::bf16, 2e-3},
                               {Dtype::q8_0, 6e-3}, {Dtype::q6_k, 2.4e-2}, {Dtype::q5_k, 4.5e-2},
                               {Dtype::q4_k, 9e-2}, {Dtype::q4_0, 0.11},
                               {Dtype::q5_0, 5.5e-2}};
  for (const float magnitude : {1e-2f, 1.0f, 300.0f}) {
    const std::vector<float> x = bell_curve(64 * 256, magnitude);
    for (const Limit& limit : kLimits) {
      const double error = relative_rms_error(x, through(limit.dtype, x));
      EXPECT_LE(error, limit.relative_rms_error_max) << dtype_info(limit.dtype).name;
      EXPECT_GE(error, limit.relative_rms_error_max / 2) << "the limit could be sharper";
    }
  }
}

TEST(Encode, ZerosStayZero) {
  const std::vector<float> zeros(512, 0.0f);
  for (const Dtype dtype : kEncodable) EXPECT_EQ(through(dtype, zeros), zeros);
}

/// Values on a grid of few steps that the format can hold exactly come back exactly.
TEST(Encode, AGridOfStepsIsExact) {
  std::vector<float> x(512);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 16) - 8.0f;
  EXPECT_EQ(through(Dtype::q4_0, x), x);
  EXPECT_EQ(through(Dtype::f16, x), x);
  EXPECT_EQ(through(Dtype::bf16, x), x);
}

TEST(Encode, OneSidedBlocksKeepTheirSign) {
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> x = bell_curve(512, 1.0f);
    for (float& value : x) value = sign * (std::abs(value) + 1.0f);
    for (const Dtype dtype : kEncodable) {
      EXPECT_LE(relative_rms_error(x, through(dtype, x)), 0.1) << dtype_info(dtype).name;
      for (const float value : through(dtype, x)) EXPECT_GE(sign * value, 0.0f);
    }
  }
}

TEST(Encode, TinyAndHugeValuesStayFinite) {
  for (const float magnitude : {1e-30f, 1e-7f, 20000.0f}) {
    const std::vector<float> x = bell_curve(512, magnitude);
    for (const Dtype dtype : kEncodable)
      for (const float value : through(dtype, x))
        EXPECT_TRUE(std::isfinite(value) && std::abs(value) <= 4 * magnitude + 1e-4f)
            << dtype_info(dtype).name << ": " << value;
  }
}

}  // namespace
}  // namespace sluice
