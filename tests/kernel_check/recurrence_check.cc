#include <cstring>

#include "tests/kernel_check/check.h"

namespace sluice::kernels::check {
namespace {

const KernelTable& reference() {
  return kernel_table(Isa::ref);
}

/// A copy of the floats that ends where they end, `offset` floats past a 64-byte boundary.
Bytes placed(const std::vector<float>& floats, size_t offset) {
  Bytes bytes(floats.size() * sizeof(float), offset * sizeof(float));
  std::memcpy(bytes.data(), floats.data(), bytes.size());
  return bytes;
}

class Recurrence : public testing::TestWithParam<Isa> {
 protected:
  const KernelTable& table() const { return kernel_table(GetParam()); }
};

#define SKIP_UNLESS_OWN(member)                                                              \
  if (const std::string reason =                                                             \
          reason_to_skip(GetParam(), [](const KernelTable& table) { return table.member; }); \
      !reason.empty())                                                                       \
  GTEST_SKIP() << reason

TEST_P(Recurrence, Convolution) {
  SKIP_UNLESS_OWN(convolve);
  Random random(3);
  for (const FloatKind kind : kFloatKinds)
    for (size_t n = 1; n <= 70; ++n) {
      SCOPED_TRACE(testing::Message() << name_of(kind) << ", n = " << n);
      const size_t width = 1 + n % 4, row = n + n % 3, tap = n + n % 5;
      Bytes x = placed(make_floats(kind, (width - 1) * row + n, random), n % 16);
      Bytes taps = placed(make_floats(kind, (width - 1) * tap + n, random), (n + 3) % 16);
      Output got(n, n % 16), wanted(n, n % 16);
      table().convolve(x.as<float>(), row, taps.as<float>(), tap, width, n, got.data());
      reference().convolve(x.as<float>(), row, taps.as<float>(), tap, width, n, wanted.data());
      expect_same(got, wanted);
      if (HasFailure()) return;
    }
}

TEST_P(Recurrence, Decays) {
  SKIP_UNLESS_OWN(softplus_decay);
  Random random(4);
  for (const FloatKind kind : kFloatKinds)
    for (size_t n = 1; n <= 70; ++n) {
      SCOPED_TRACE(testing::Message() << name_of(kind) << ", n = " << n);
      const std::vector<float> x = make_floats(kind, n, random);
      Bytes bias = placed(make_floats(kind, n, random), (n + 3) % 16);
      Output got(x, n % 16), wanted(x, n % 16), got_bound(x), wanted_bound(x);
      table().softplus_decay(got.data(), bias.as<float>(), -1.5f, n);
      reference().softplus_decay(wanted.data(), bias.as<float>(), -1.5f, n);
      expect_same(got, wanted);
      table().sigmoid_decay(got_bound.data(), bias.as<float>(), 1.5f, -5.0f, n);
      reference().sigmoid_decay(wanted_bound.data(), bias.as<float>(), 1.5f, -5.0f, n);
      expect_same(got_bound, wanted_bound);
      if (HasFailure()) return;
    }
}

/// One call of the delta rule on memory of its own.
struct DeltaCase {
  DeltaCase(FloatKind kind, size_t key_dim, size_t value_dim, size_t token_count, Random& random)
      : state(make_floats(FloatKind::ordinary, delta_state_floats(key_dim, value_dim), random)) {
    args.key_dim = key_dim;
    args.value_dim = value_dim;
    args.token_count = token_count;
    const auto add = [&](size_t row, size_t gap, size_t& stride) {
      stride = row + gap;
      inputs.push_back(placed(make_floats(kind, (token_count - 1) * stride + row, random), gap));
      return inputs.back().as<float>();
    };
    args.queries = add(key_dim, 5, args.query_stride);
    args.keys = add(key_dim, 5, args.query_stride);
    args.decays = add(key_dim, 0, args.decay_stride);
    args.values = add(value_dim, 3, args.value_stride);
    args.strengths = add(1, 2, args.strength_stride);
    args.out_stride = value_dim + 1;
  }

  /// The state afterwards, and what came out.
  std::pair<Output, Output> run(const KernelTable& table) {
    std::pair<Output, Output> result{Output(state), Output(args.token_count * args.out_stride)};
    args.state = result.first.data();
    args.out = result.second.data();
    table.delta_rule(args);
    // Columns that do not exist hold anything.
    for (size_t j = args.value_dim; j % kDeltaTile != 0; ++j)
      for (size_t i = 0; i < args.key_dim; ++i)
        args.state[(j / kDeltaTile * args.key_dim + i) * kDeltaTile + j % kDeltaTile] = 0.0f;
    return result;
  }

  std::vector<float> state;
  std::vector<Bytes> inputs;
  DeltaArgs args{};
};

TEST_P(Recurrence, DeltaRule) {
  SKIP_UNLESS_OWN(delta_rule);
  Random random(5);
  size_t turn = 0;
  for (const FloatKind kind : kFloatKinds)
    for (const size_t key_dim : {1u, 3u, 16u, 31u, 64u, 128u, 256u})
      for (const size_t value_dim : {1u, 15u, 16u, 17u, 32u, 33u, 63u, 64u, 100u, 128u})
        for (const size_t tokens : {1u, 3u}) {
          if (!takes_turn(turn++, 7)) continue;
          SCOPED_TRACE(testing::Message() << name_of(kind) << ", " << key_dim << " by " << value_dim
                                          << ", " << tokens << " tokens");
          DeltaCase one(kind, key_dim, value_dim, tokens, random);
          const auto got = one.run(table());
          const auto wanted = one.run(reference());
          expect_same(got.first, wanted.first);
          expect_same(got.second, wanted.second);
          if (HasFailure()) return;
        }
}

std::string case_name(const testing::TestParamInfo<Isa>& row) {
  return std::string(isa_name(row.param));
}

INSTANTIATE_TEST_SUITE_P(Kernels, Recurrence, testing::ValuesIn(kComparedIsas), case_name);

}  // namespace
}  // namespace sluice::kernels::check
