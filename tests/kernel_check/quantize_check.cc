#include <cmath>
#include <cstring>
#include <limits>

#include "tests/kernel_check/check.h"

namespace sluice::kernels::check {
namespace {

using QuantizeFn = void (*)(const float*, size_t, const QuantizedRow&);

QuantizeFn entry_of(const KernelTable& table, ActivationFormat format) {
  return format == ActivationFormat::q8_256 ? table.quantize_q8_256 : table.quantize_q8_32;
}

size_t block_of(ActivationFormat format) {
  return format == ActivationFormat::q8_256 ? kSuperBlock : kSmallBlock;
}

/// A row preset to a pattern, and all of its memory compared: what lies beside the part that a
/// kernel quantises belongs to another thread and must not be touched.
void expect_same_row(const ActivationLayout& layout, const Bytes& got, const Bytes& wanted) {
  const auto floats = [&](const Bytes& row) {
    const auto* scales = reinterpret_cast<const float*>(row.data() + layout.scale_offset);
    return std::span(scales, (layout.sum16_offset - layout.scale_offset) / sizeof(float));
  };
  expect_same(floats(got), floats(wanted));
  for (size_t i = 0; i < got.size(); ++i) {
    if (i == layout.scale_offset) i = layout.sum16_offset;
    ASSERT_EQ(static_cast<int>(got.data()[i]), static_cast<int>(wanted.data()[i]))
        << (i < layout.scale_offset ? "byte of q " : "byte of the sums ")
        << (i < layout.scale_offset ? i : i - layout.sum16_offset);
  }
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

  /// Quantises the floats as a part of a longer row, with 0 … 2 blocks before it and one behind.
  void compare(const std::vector<float>& floats, size_t offset) {
    const auto [isa, format] = GetParam();
    Bytes x(floats.size() * sizeof(float), offset * sizeof(float));
    std::memcpy(x.data(), floats.data(), x.size());
    const size_t first = offset % 3 * block_of(format);
    const size_t cols = first + floats.size() + block_of(format);
    const ActivationLayout layout = activation_layout(format, cols);
    const auto quantize = [&, format = format](const KernelTable& table) {
      Bytes row(layout.row_bytes);
      std::memset(row.data(), 0x25, row.size());
      entry_of(table, format)(x.as<float>(), floats.size(),
                              quantized_row(format, cols, row.data()).from(format, first));
      return row;
    };
    expect_same_row(layout, quantize(kernel_table(isa)), quantize(kernel_table(Isa::ref)));
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
