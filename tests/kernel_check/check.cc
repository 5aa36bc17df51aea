#include "tests/kernel_check/check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace sluice::kernels::check {

Bytes::Bytes(size_t size, size_t offset)
    : storage_(static_cast<std::byte*>(::operator new (offset + size, std::align_val_t{64}))),
      offset_(offset),
      size_(size) {}

namespace {

constexpr float kUnwritten = -1.25e-30f;

}  // namespace

Output::Output(size_t count, size_t offset_floats)
    : offset_(offset_floats), all_(count + offset_floats + 2 * kMargin, kUnwritten) {}

Output::Output(std::span<const float> content, size_t offset_floats)
    : Output(content.size(), offset_floats) {
  std::memcpy(data(), content.data(), content.size_bytes());
}

void expect_same(std::span<const float> got, std::span<const float> wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool both_nan = std::isnan(got[i]) && std::isnan(wanted[i]);
    if (both_nan || std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(wanted[i])) continue;
    FAIL() << "float " << i << " of " << got.size() << " (margins included) is " << std::hexfloat
           << got[i] << ", the reference has " << wanted[i];
  }
}

void expect_same(const Output& got, const Output& wanted) {
  expect_same(got.with_margins(), wanted.with_margins());
}

void expect_same_bytes(const Bytes& got, const Bytes& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(static_cast<int>(got.data()[i]), static_cast<int>(wanted.data()[i])) << "byte " << i;
}

const char* name_of(FloatKind kind) {
  switch (kind) {
    case FloatKind::ordinary:
      return "ordinary";
    case FloatKind::tiny:
      return "tiny";
    case FloatKind::huge:
      return "huge";
    case FloatKind::zeros:
      return "zeros";
    case FloatKind::edges:
      return "edges";
    case FloatKind::broken:
      return "broken";
  }
  return "";
}

float make_float(FloatKind kind, Random& random) {
  using Limits = std::numeric_limits<float>;
  constexpr float kEdges[] = {
      0.0f,          1.0f,          0.5f,       127.0f,     Limits::denorm_min(),
      Limits::min(), Limits::max(), 65504.0f,   65519.996f, 65520.0f,
      0x1p-24f,      0x1p-25f,      0x1.8p-25f, 87.33f,     87.33001f,
      88.37626f,     88.3763f,      103.97209f};
  const float sign = random.below(2) == 0 ? 1.0f : -1.0f;
  const float unit = sign * static_cast<float>(random.uniform());
  const auto up_to = [&](uint64_t bound) { return static_cast<int>(random.below(bound)); };
  switch (kind) {
    case FloatKind::ordinary:
      return std::ldexp(unit, up_to(6));
    case FloatKind::tiny:
      return std::ldexp(unit, -120 - up_to(30));
    case FloatKind::huge:
      return std::ldexp(unit, 100 + up_to(29));
    case FloatKind::zeros:
      return sign * 0.0f;
    case FloatKind::edges:
      return sign * kEdges[random.below(std::size(kEdges))];
    case FloatKind::broken:
      if (up_to(8) != 0) return unit;
      return up_to(2) == 0 ? sign * Limits::infinity() : Limits::quiet_NaN();
  }
  return 0.0f;
}

std::vector<float> make_floats(FloatKind kind, size_t count, Random& random) {
  std::vector<float> floats(count);
  for (float& value : floats) value = make_float(kind, random);
  return floats;
}

}  // namespace sluice::kernels::check
