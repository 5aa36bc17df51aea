#include "quant/activation.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "base/half.h"
#include "base/random.h"

namespace sluice {
namespace {

/// One quantised row and its memory.
class Row {
 public:
  Row(ActivationFormat format, const std::vector<float>& x)
      : bytes_(allocate(activation_layout(format, x.size()).row_bytes)),
        row_(quantized_row(format, x.size(), bytes_.get())) {
    if (format == ActivationFormat::q8_256)
      quantize_q8_256(x.data(), x.size(), row_);
    else
      quantize_q8_32(x.data(), x.size(), row_);
  }

  const QuantizedRow& row() const { return row_; }
  const int8_t* q() const { return row_.q; }
  const float* scale() const { return row_.scale; }
  const int16_t* sum16() const { return row_.sum16; }

 private:
  static std::byte* allocate(size_t bytes) {
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}));
  }
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };

  std::unique_ptr<std::byte, Delete> bytes_;
  QuantizedRow row_;
};

std::vector<float> random_row(size_t cols, float magnitude) {
  Random random(cols);
  std::vector<float> x(cols);
  for (float& value : x) value = static_cast<float>(random.uniform() * 2 - 1) * magnitude;
  return x;
}

TEST(Activation, LayoutIsPaddedTo64) {
  const ActivationLayout k = activation_layout(ActivationFormat::q8_256, 2816);
  EXPECT_EQ(k.scale_offset, 2816u);
  EXPECT_EQ(k.sum16_offset, 2816u + 64);
  EXPECT_EQ(k.row_bytes, 2816u + 64 + 384);
  const ActivationLayout small = activation_layout(ActivationFormat::q8_32, 96);
  EXPECT_EQ(small.scale_offset, 128u);
  EXPECT_EQ(small.sum16_offset, 192u);
  EXPECT_EQ(small.row_bytes, 256u);
  EXPECT_EQ(activation_layout(ActivationFormat::f32, 17).row_bytes, 128u);
}

TEST(Activation, KnownRow256) {
  std::vector<float> x(512, 0.0f);
  x[3] = -127.0f;  // the largest, negative: inverse = 1, scale = 1
  x[4] = 127.0f;
  x[5] = 0.5f;  // ties go to even
  x[6] = 1.5f;
  x[7] = -2.5f;
  x[30] = 11.0f;
  const Row row(ActivationFormat::q8_256, x);
  EXPECT_EQ(row.scale()[0], 1.0f);
  EXPECT_EQ(row.q()[3], -127);
  EXPECT_EQ(row.q()[4], 127);
  EXPECT_EQ(row.q()[5], 0);
  EXPECT_EQ(row.q()[6], 2);
  EXPECT_EQ(row.q()[7], -2);
  EXPECT_EQ(row.sum16()[0], 0);
  EXPECT_EQ(row.sum16()[1], 11);
  EXPECT_EQ(row.scale()[1], 0.0f) << "a block of zeros";
  EXPECT_EQ(row.sum16()[31], 0);
}

TEST(Activation, TheFirstOfEqualMagnitudesGivesTheSign) {
  std::vector<float> x(256, 0.0f);
  x[10] = 2.0f;
  x[11] = -2.0f;
  const Row row(ActivationFormat::q8_256, x);
  EXPECT_LT(row.scale()[0], 0.0f);
  EXPECT_EQ(row.q()[10], -127);
  EXPECT_EQ(row.q()[11], 127);
}

/// The same definition by another road: rounding by the C library, in the order of the header.
TEST(Activation, AgreesWithAnotherComputation256) {
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
  for (const float magnitude : {1e-30f, 1e-3f, 1.0f, 1e4f, 3e38f}) {
    const std::vector<float> x = random_row(2816, magnitude);
    const Row row(ActivationFormat::q8_256, x);
    for (size_t block = 0; block < x.size() / 256; ++block) {
      float m = 0;
      for (size_t i = 0; i < 256; ++i)
        if (std::fabs(x[block * 256 + i]) > std::fabs(m)) m = x[block * 256 + i];
      const float inverse = -127.0f / m;
      EXPECT_EQ(row.scale()[block], 1.0f / inverse);
      for (size_t i = block * 256; i < (block + 1) * 256; ++i)
        ASSERT_EQ(row.q()[i], std::min(127L, std::lrintf(inverse * x[i])));
    }
  }
}

TEST(Activation, AgreesWithAnotherComputation32) {
  for (const float magnitude : {1e-30f, 1e-3f, 1.0f, 1e4f}) {
    const std::vector<float> x = random_row(32 * 11, magnitude);
    const Row row(ActivationFormat::q8_32, x);
    for (size_t block = 0; block < x.size() / 32; ++block) {
      float a = 0;
      for (size_t i = 0; i < 32; ++i) a = std::fmax(a, std::fabs(x[block * 32 + i]));
      const float d = a / 127.0f;
      EXPECT_EQ(row.scale()[block], f16_to_f32(f32_to_f16(d)));
      for (size_t i = block * 32; i < (block + 1) * 32; ++i)
        ASSERT_EQ(row.q()[i], std::lrintf(x[i] * (1.0f / d)));
    }
  }
}

TEST(Activation, SumsAreTheSumsOfSixteen) {
  for (const ActivationFormat format : {ActivationFormat::q8_256, ActivationFormat::q8_32}) {
    const std::vector<float> x = random_row(1024, 2.0f);
    const Row row(format, x);
    for (size_t group = 0; group < 64; ++group) {
      int sum = 0;
      for (size_t i = 0; i < 16; ++i) sum += row.q()[16 * group + i];
      EXPECT_EQ(row.sum16()[group], sum);
    }
  }
}

TEST(Activation, PartsMakeTheWhole) {
  for (const ActivationFormat format : {ActivationFormat::q8_256, ActivationFormat::q8_32}) {
    const std::vector<float> x = random_row(1024, 2.0f);
    const Row whole(format, x);
    const Row parts(format, std::vector<float>(1024, 1.0f));
    const auto quantize = format == ActivationFormat::q8_256 ? quantize_q8_256 : quantize_q8_32;
    for (const size_t first : {768, 0, 256, 512})
      quantize(x.data() + first, 256, parts.row().from(format, first));
    const size_t block = format == ActivationFormat::q8_256 ? 256 : 32;
    for (size_t i = 0; i < 1024; ++i) {
      EXPECT_EQ(parts.q()[i], whole.q()[i]);
      EXPECT_EQ(parts.scale()[i / block], whole.scale()[i / block]);
      EXPECT_EQ(parts.sum16()[i / 16], whole.sum16()[i / 16]);
    }
  }
}

TEST(Activation, TinySubnormalsBecomeZeros) {
  std::vector<float> x(256, 1e-44f);
  for (const ActivationFormat format : {ActivationFormat::q8_256, ActivationFormat::q8_32}) {
    const Row row(format, x);
    EXPECT_EQ(row.scale()[0], 0.0f);
    for (size_t i = 0; i < 256; ++i) EXPECT_EQ(row.q()[i], 0);
  }
}

/// A broken hidden state must not turn into ordinary numbers.
TEST(Activation, NonFiniteBlocksShow) {
  using Limits = std::numeric_limits<float>;
  for (const float odd : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    for (const ActivationFormat format : {ActivationFormat::q8_256, ActivationFormat::q8_32}) {
      std::vector<float> x(256, 1.0f);
      x[17] = odd;
      const Row row(format, x);
      EXPECT_FALSE(std::isfinite(row.scale()[0]));
      for (size_t i = 0; i < 32; ++i) EXPECT_EQ(row.q()[i], 0);
    }
  }
}

}  // namespace
}  // namespace sluice
