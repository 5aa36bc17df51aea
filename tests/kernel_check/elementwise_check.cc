#include <bit>
#include <cstring>
#include <limits>

#include "tests/kernel_check/check.h"

namespace sluice::kernels::check {
namespace {

const KernelTable& reference() {
  return kernel_table(Isa::ref);
}

std::vector<size_t> lengths() {
  std::vector<size_t> list;
  for (size_t n = 1; n <= 68; ++n) list.push_back(n);
  for (const size_t n : {100u, 127u, 128u, 129u, 255u, 256u, 257u, 768u, 1000u, 2055u})
    list.push_back(n);
  return list;
}

/// Calls body(kind, n, offset, random) for every kind of numbers and length; the offset, in floats,
/// runs through all positions within 64 bytes.
template <class Body>
void sweep(Body body) {
  Random random(17);
  for (const FloatKind kind : kFloatKinds) {
    for (const size_t n : lengths()) {
      const size_t offset = n % 16;
      SCOPED_TRACE(testing::Message() << name_of(kind) << ", n = " << n << ", offset " << offset);
      body(kind, n, offset, random);
      if (testing::Test::HasFailure()) return;
    }
  }
}

/// A copy of the floats that starts `offset` floats past a 64-byte boundary and ends exactly.
Bytes placed(const std::vector<float>& floats, size_t offset) {
  Bytes bytes(floats.size() * sizeof(float), offset * sizeof(float));
  std::memcpy(bytes.data(), floats.data(), bytes.size());
  return bytes;
}

class Elementwise : public testing::TestWithParam<Isa> {
 protected:
  using GatedFn = decltype(&KernelTable::silu_multiply);
  using RotationFn = decltype(&KernelTable::rope_neox);

  const KernelTable& table() const { return kernel_table(GetParam()); }
  void check_gated(GatedFn kernel);
  void check_rotation(RotationFn kernel);
};

#define SKIP_UNLESS_OWN(member)                                                              \
  if (const std::string reason =                                                             \
          reason_to_skip(GetParam(), [](const KernelTable& table) { return table.member; }); \
      !reason.empty())                                                                       \
  GTEST_SKIP() << reason

TEST_P(Elementwise, Add) {
  SKIP_UNLESS_OWN(add);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    Bytes x = placed(make_floats(kind, n, random), offset);
    const std::vector<float> y = make_floats(kind, n, random);
    Output got(y, offset), wanted(y, offset);
    table().add(x.as<float>(), n, got.data());
    reference().add(x.as<float>(), n, wanted.data());
    expect_same(got, wanted);
  });
}

TEST_P(Elementwise, AddScaled) {
  SKIP_UNLESS_OWN(add_scaled);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    Bytes x = placed(make_floats(kind, n, random), offset);
    const std::vector<float> y = make_floats(kind, n, random);
    const float a = make_float(kind, random);
    Output got(y, offset), wanted(y, offset);
    table().add_scaled(a, x.as<float>(), n, got.data());
    reference().add_scaled(a, x.as<float>(), n, wanted.data());
    expect_same(got, wanted);
  });
}

TEST_P(Elementwise, RmsNorm) {
  SKIP_UNLESS_OWN(rms_norm);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    const std::vector<float> content = make_floats(kind, n, random);
    Bytes x = placed(content, offset);
    Bytes weight = placed(make_floats(FloatKind::ordinary, n, random), (offset + 3) % 16);
    Output got(n, offset), wanted(n, offset), in_place(content, offset);
    table().rms_norm(x.as<float>(), weight.as<float>(), 1e-6f, n, got.data());
    table().rms_norm(in_place.data(), weight.as<float>(), 1e-6f, n, in_place.data());
    reference().rms_norm(x.as<float>(), weight.as<float>(), 1e-6f, n, wanted.data());
    expect_same(got, wanted);
    expect_same(in_place, wanted);
  });
}

/// An activation of gate and up, over odd lengths and in place.
void Elementwise::check_gated(GatedFn kernel) {
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    const std::vector<float> gates = make_floats(kind, n, random);
    const std::vector<float> ups = make_floats(kind, n, random);
    Bytes gate = placed(gates, offset), up = placed(ups, (offset + 5) % 16);
    Output got(n, offset), wanted(n, offset), over_gate(gates, offset), over_up(ups, offset);
    (table().*kernel)(gate.as<float>(), up.as<float>(), n, got.data());
    (table().*kernel)(over_gate.data(), up.as<float>(), n, over_gate.data());
    (table().*kernel)(gate.as<float>(), over_up.data(), n, over_up.data());
    (reference().*kernel)(gate.as<float>(), up.as<float>(), n, wanted.data());
    expect_same(got, wanted);
    expect_same(over_gate, wanted);
    expect_same(over_up, wanted);
  });
}

TEST_P(Elementwise, Silu) {
  SKIP_UNLESS_OWN(silu);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    const std::vector<float> x = make_floats(kind, n, random);
    Output got(x, offset), wanted(x, offset);
    table().silu(got.data(), n);
    reference().silu(wanted.data(), n);
    expect_same(got, wanted);
  });
}

TEST_P(Elementwise, SigmoidMultiply) {
  SKIP_UNLESS_OWN(sigmoid_multiply);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    const std::vector<float> ups = make_floats(kind, n, random);
    Bytes gate = placed(make_floats(kind, n, random), offset);
    Output got(ups, offset), wanted(ups, offset);
    table().sigmoid_multiply(gate.as<float>(), got.data(), n, got.data());
    reference().sigmoid_multiply(gate.as<float>(), wanted.data(), n, wanted.data());
    expect_same(got, wanted);
  });
}

TEST_P(Elementwise, SwigluLimited) {
  SKIP_UNLESS_OWN(swiglu_limited);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    const std::vector<float> gates = make_floats(kind, n, random);
    Bytes up = placed(make_floats(kind, n, random), (offset + 5) % 16);
    Output got(gates, offset), wanted(gates, offset);
    table().swiglu_limited(got.data(), up.as<float>(), 0.7f, n, got.data());
    reference().swiglu_limited(wanted.data(), up.as<float>(), 0.7f, n, wanted.data());
    expect_same(got, wanted);
  });
}

TEST_P(Elementwise, SetLength) {
  SKIP_UNLESS_OWN(set_length);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    const std::vector<float> x = make_floats(kind, n, random);
    Output got(x, offset), wanted(x, offset);
    table().set_length(got.data(), 0.5f, 1e-6f, n);
    reference().set_length(wanted.data(), 0.5f, 1e-6f, n);
    expect_same(got, wanted);
  });
}

/// SiLU shows exp in full: floats of every exponent and many mantissas, both signs.
/// Calls body(numbers) for floats of every exponent and many mantissas, both signs, piece by piece.
template <class Body>
void over_the_whole_range(Body body) {
  constexpr size_t kCount = 4096;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kCount * 4093) {
    std::vector<float> numbers(kCount);
    for (size_t i = 0; i < kCount; ++i)
      numbers[i] = std::bit_cast<float>(static_cast<uint32_t>(bits + i * 4093));
    body(numbers);
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(Elementwise, SiluMultiply) {
  SKIP_UNLESS_OWN(silu_multiply);
  check_gated(&KernelTable::silu_multiply);
}

TEST_P(Elementwise, GeluMultiply) {
  SKIP_UNLESS_OWN(gelu_multiply);
  check_gated(&KernelTable::gelu_multiply);
}

TEST_P(Elementwise, ReluMultiply) {
  SKIP_UNLESS_OWN(relu_multiply);
  check_gated(&KernelTable::relu_multiply);
}

TEST_P(Elementwise, SwigluClamped) {
  SKIP_UNLESS_OWN(swiglu_clamped);
  check_gated(&KernelTable::swiglu_clamped);
}

/// SiLU shows exp in full.
TEST_P(Elementwise, SiluOverTheWholeRange) {
  SKIP_UNLESS_OWN(silu_multiply);
  over_the_whole_range([&](const std::vector<float>& gate) {
    const std::vector<float> ones(gate.size(), 1.0f);
    Output got(gate.size()), wanted(gate.size());
    table().silu_multiply(gate.data(), ones.data(), gate.size(), got.data());
    reference().silu_multiply(gate.data(), ones.data(), gate.size(), wanted.data());
    expect_same(got, wanted);
  });
}

/// A cap of one shows tanh in full.
TEST_P(Elementwise, SoftCapOverTheWholeRange) {
  SKIP_UNLESS_OWN(soft_cap);
  over_the_whole_range([&](const std::vector<float>& x) {
    Output got(x, 0), wanted(x, 0);
    table().soft_cap(1.0f, x.size(), got.data());
    reference().soft_cap(1.0f, x.size(), wanted.data());
    expect_same(got, wanted);
  });
}

TEST_P(Elementwise, SoftCap) {
  SKIP_UNLESS_OWN(soft_cap);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    const std::vector<float> x = make_floats(kind, n, random);
    Output got(x, offset), wanted(x, offset);
    table().soft_cap(30.0f, n, got.data());
    reference().soft_cap(30.0f, n, wanted.data());
    expect_same(got, wanted);
  });
}

TEST_P(Elementwise, Softmax) {
  SKIP_UNLESS_OWN(softmax);
  sweep([&](FloatKind kind, size_t n, size_t offset, Random& random) {
    const std::vector<float> x = make_floats(kind, n, random);
    Output got(x, offset), wanted(x, offset);
    table().softmax(got.data(), n);
    reference().softmax(wanted.data(), n);
    expect_same(got, wanted);
  });
}

void Elementwise::check_rotation(RotationFn kernel) {
  sweep([&](FloatKind kind, size_t pairs, size_t offset, Random& random) {
    const std::vector<float> x = make_floats(kind, 2 * pairs, random);
    Bytes cos = placed(make_floats(FloatKind::ordinary, pairs, random), (offset + 1) % 16);
    Bytes sin = placed(make_floats(FloatKind::ordinary, pairs, random), (offset + 2) % 16);
    Output got(x, offset), wanted(x, offset);
    (table().*kernel)(got.data(), cos.as<float>(), sin.as<float>(), pairs);
    (reference().*kernel)(wanted.data(), cos.as<float>(), sin.as<float>(), pairs);
    expect_same(got, wanted);
  });
}

TEST_P(Elementwise, RopeNeox) {
  SKIP_UNLESS_OWN(rope_neox);
  check_rotation(&KernelTable::rope_neox);
}

TEST_P(Elementwise, RopeAdjacent) {
  SKIP_UNLESS_OWN(rope_adjacent);
  check_rotation(&KernelTable::rope_adjacent);
}

std::string case_name(const testing::TestParamInfo<Isa>& row) {
  return std::string(isa_name(row.param));
}

INSTANTIATE_TEST_SUITE_P(Kernels, Elementwise, testing::ValuesIn(kComparedIsas), case_name);

}  // namespace
}  // namespace sluice::kernels::check
