#include <cmath>
#include <cstring>
#include <limits>

#include "check.h"

namespace sluice::kernels::check {
namespace {

using QuantizeFn = void (*)(const float*, size_t, const QuantizedRow&);

QuantizeFn entry_of(const KernelTable& table, ActivationFormat format) {
  return format == ActivationFormat::q8_256 ? table.quantize_q8_256 : table.quantize_q8_32;
}

size_t block_of(ActivationFormat format) {
  return format == ActivationFormat::q8_256 ? kSuperBlock : kSmallBlock;
}

/// The defined parts of a row as floats (scales) and bytes (the rest).
void expect_same_row(ActivationFormat format, size_t cols, Bytes& got, Bytes& wanted) {
  const ActivationLayout layout = activation_layout(format, cols);
  for (size_t i = 0; i < cols; ++i)
    ASSERT_EQ(got.as<int8_t>()[i], wanted.as<int8_t>()[i]) << "q of element " << i;
  const size_t blocks = cols / block_of(format);
  const auto scales = [&](Bytes& row) {
    return std::span(reinterpret_cast<const float*>(row.data() + layout.scale_offset), blocks);
  };
  expect_same(scales(got), scales(wanted));
  const auto* got_sums = reinterpret_cast<const int16_t*>(got.data() + layout.sum16_offset);
  const auto* wanted_sums = reinterpret_cast<const int16_t*>(wanted.data() + layout.sum16_offset);
  for (size_t i = 0; i < cols / 16; ++i) ASSERT_EQ(got_sums[i], wanted_sums[i]) << "sum " << i;
  for (size_t i = layout.row_bytes; i < got.size(); ++i)
    ASSERT_EQ(got.data()[i], std::byte{0xa5}) << "written behind the row";
}

struct QuantizeCase {
  Isa isa;
  ActivationFormat format;
};

class Quantize : public testing::TestWithParam<QuantizeCase> {
 protected:
  void SetUp() override {
    const ActivationFormat format = GetParam().format;
    const std::string reason = reason_to_skip(
        GetParam().isa, [=](const KernelTable& table) { return entry_of(table, format); });
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  void compare(const std::vector<float>& floats, size_t offset) {
    const auto [isa, format] = GetParam();
    const size_t cols = floats.size();
    Bytes x(cols * sizeof(float), offset * sizeof(float));
    std::memcpy(x.data(), floats.data(), x.size());
    const size_t row_bytes = activation_layout(format, cols).row_bytes;
    Bytes got(row_bytes + 64), wanted(row_bytes + 64);
    std::memset(got.data(), 0xa5, got.size());
    std::memset(wanted.data(), 0xa5, wanted.size());
    entry_of(kernel_table(isa), format)(x.as<float>(), cols,
                                        quantized_row(format, cols, got.data()));
    entry_of(kernel_table(Isa::ref), format)(x.as<float>(), cols,
                                             quantized_row(format, cols, wanted.data()));
    expect_same_row(format, cols, got, wanted);
  }
};

TEST_P(Quantize, EveryKindOfNumbers) {
  Random random(3);
  for (const FloatKind kind : kFloatKinds) {
    for (size_t blocks = 1; blocks <= 19; ++blocks) {
      SCOPED_TRACE(testing::Message() << name_of(kind) << ", blocks: " << blocks);
      compare(make_floats(kind, blocks * block_of(GetParam().format), random), blocks % 16);
      if (HasFailure()) return;
    }
  }
}

/// Every position of the largest value, and of an equal one of the other sign behind it: the first
/// decides the sign of the scale.
TEST_P(Quantize, TheFirstOfEqualsDecides) {
  const size_t block = block_of(GetParam().format);
  Random random(4);
  for (size_t first = 0; first < block; ++first) {
    std::vector<float> x = make_floats(FloatKind::ordinary, 2 * block, random);
    const float largest = first % 2 == 0 ? 100.0f : -100.0f;
    x[first] = largest;
    for (size_t i = first + 1; i < block; i += 7) x[i] = -largest;
    compare(x, first % 16);
    if (HasFailure()) return;
  }
}

/// With 127 as the largest value the factor is exactly ±1, so k + 0.5 is a tie.
TEST_P(Quantize, TiesGoToEven) {
  const size_t block = block_of(GetParam().format);
  std::vector<float> x(block * 8);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = i % block == 5 ? 127.0f : static_cast<float>(i % 253) - 126.5f;
  compare(x, 0);
}

/// Around the magnitudes where the factor overflows or the scale vanishes, and one non-finite value
/// among ordinary ones.
TEST_P(Quantize, EdgesOfTheRange) {
  const size_t block = block_of(GetParam().format);
  Random random(5);
  for (int exponent = -149; exponent <= 127; ++exponent) {
    std::vector<float> x(block);
    for (float& value : x)
      value = std::ldexp(make_float(FloatKind::ordinary, random), exponent - 5);
    SCOPED_TRACE(testing::Message() << "2^" << exponent);
    compare(x, 0);
    if (HasFailure()) return;
  }
  using Limits = std::numeric_limits<float>;
  for (const float odd : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    for (size_t position = 0; position < block; ++position) {
      std::vector<float> x = make_floats(FloatKind::ordinary, 2 * block, random);
      x[position] = odd;
      compare(x, 0);
      if (HasFailure()) return;
    }
  }
}

std::vector<QuantizeCase> cases() {
  std::vector<QuantizeCase> list;
  for (const Isa isa : kComparedIsas) {
    list.push_back({isa, ActivationFormat::q8_256});
    list.push_back({isa, ActivationFormat::q8_32});
  }
  return list;
}

std::string case_name(const testing::TestParamInfo<QuantizeCase>& row) {
  const bool large = row.param.format == ActivationFormat::q8_256;
  return std::string(isa_name(row.param.isa)) + (large ? "_q8_256" : "_q8_32");
}

INSTANTIATE_TEST_SUITE_P(Kernels, Quantize, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace sluice::kernels::check
