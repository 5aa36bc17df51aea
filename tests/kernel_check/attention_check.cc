#include <cstring>

#include "base/units.h"
#include "quant/blocks.h"
#include "tests/kernel_check/check.h"

namespace sluice::kernels::check {
namespace {

struct AttentionCase {
  Isa isa;
  KvType type;
};

struct Shape {
  size_t key_dim;
  size_t group_size;
  size_t first_position;
  size_t tokens;
  size_t first_key = 0;
  bool has_sinks = false;
  size_t value_dim = 0;  ///< 0: as the keys

  size_t value_size() const { return value_dim > 0 ? value_dim : key_dim; }
};

constexpr size_t kHeadDims[] = {8, 16, 24, 40, 64, 80, 96, 128, 256};
constexpr size_t kPositions[] = {0,  1,  7,  14, 15,  16,  17,  31,  32, 47,
                                 62, 63, 64, 65, 100, 126, 127, 128, 200};

class AttentionCheck : public testing::TestWithParam<AttentionCase> {
 protected:
  static constexpr size_t kPad = 2;  ///< floats behind the queries of a token

  size_t type_index() const { return static_cast<size_t>(GetParam().type); }
  size_t tile_bytes(size_t row_elements) const {
    return kv_tile_bytes(GetParam().type, row_elements);
  }
  /// The natural alignment; f16 within a tile of q8_0.
  size_t offset() const { return GetParam().type == KvType::f32 ? 4 : 2; }

  template <class Member>
  void skip_unless_own(Member member) {
    const std::string reason = reason_to_skip(GetParam().isa, [=, this](const KernelTable& table) {
      return (table.*member)[type_index()];
    });
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  /// Whole tiles, also beyond the last position, as the reference stores them.
  Bytes make_keys(Shape shape, FloatKind kind) {
    const size_t positions = round_up(shape.first_position + shape.tokens, kKeyTile);
    Bytes keys(positions / kKeyTile * tile_bytes(shape.key_dim), offset());
    for (size_t position = 0; position < positions; ++position) {
      const std::vector<float> key = make_floats(kind, shape.key_dim, random_);
      reference().store_key[type_index()](key.data(), shape.key_dim, position, keys.data());
    }
    return keys;
  }

  /// Exactly as many values as there are positions, where no scales end a tile.
  Bytes make_values(Shape shape, FloatKind kind) {
    const size_t positions = shape.first_position + shape.tokens;
    const size_t stride = round_up(shape.value_size(), 16);
    const bool whole_tiles = GetParam().type == KvType::q8_0;
    const size_t rows = whole_tiles ? round_up(positions, kKeyTile) : positions;
    Bytes values(rows * tile_bytes(stride) / kKeyTile, offset());
    for (size_t position = 0; position < rows; ++position) {
      const std::vector<float> value = make_floats(kind, shape.value_size(), random_);
      reference().store_value[type_index()](value.data(), shape.value_size(), position, stride,
                                            values.data());
    }
    return values;
  }

  static const KernelTable& reference() { return kernel_table(Isa::ref); }

  void compare(Shape shape, FloatKind query_kind, FloatKind cache_kind) {
    SCOPED_TRACE(testing::Message()
                 << "keys of " << shape.key_dim << ", values of " << shape.value_size()
                 << ", group " << shape.group_size << ", first " << shape.first_position
                 << ", tokens " << shape.tokens << ", first key " << shape.first_key
                 << (shape.has_sinks ? ", sinks; " : "; ") << name_of(query_kind) << " queries, "
                 << name_of(cache_kind) << " cache");
    const Bytes keys = make_keys(shape, cache_kind);
    const Bytes values = make_values(shape, cache_kind);
    const size_t query_stride = shape.group_size * shape.key_dim + kPad;
    const size_t out_stride = shape.group_size * shape.value_size() + kPad;
    const size_t query_count = shape.tokens * query_stride - kPad;
    const size_t out_count = shape.tokens * out_stride - kPad;
    Bytes queries(query_count * sizeof(float), 4);
    for (size_t i = 0; i < query_count; ++i)
      store_block(make_float(query_kind, random_), queries.data(), i);
    const std::vector<float> sinks = make_floats(FloatKind::ordinary, shape.group_size, random_);
    AttentionArgs args = {
        .queries = queries.as<float>(),
        .query_stride = query_stride,
        .token_count = shape.tokens,
        .group_size = shape.group_size,
        .first_position = shape.first_position,
        .first_key = shape.first_key,
        .sinks = shape.has_sinks ? sinks.data() : nullptr,
        .keys = keys.data(),
        .values = values.data(),
        .key_dim = shape.key_dim,
        .value_dim = shape.value_size(),
        .value_stride = round_up(shape.value_size(), 16),
        .scale = 0.125f,
        .out = nullptr,
        .out_stride = out_stride,
    };
    Output got(out_count, shape.tokens % 16), wanted(out_count, shape.tokens % 16);
    args.out = got.data();
    kernel_table(GetParam().isa).attention[type_index()](args);
    args.out = wanted.data();
    reference().attention[type_index()](args);
    expect_same(got, wanted);
  }

  Random random_{23};
};

TEST_P(AttentionCheck, EveryHeadAroundEveryBoundary) {
  skip_unless_own(&KernelTable::attention);
  if (IsSkipped()) return;
  size_t turn = 0;
  constexpr size_t kTokens[] = {1, 2, 3, 17, 1, 5};
  for (const size_t head_dim : kHeadDims) {
    for (const size_t first_position : kPositions) {
      const size_t group_size = turn % 8 + 1;
      const size_t tokens = group_size > 4 ? 1 + turn % 3 : kTokens[turn % 6];
      compare({head_dim, group_size, first_position, tokens}, FloatKind::ordinary,
              FloatKind::ordinary);
      if (HasFailure()) return;
      ++turn;
    }
  }
}

TEST_P(AttentionCheck, KeysMayBeLongerThanValues) {
  skip_unless_own(&KernelTable::attention);
  if (IsSkipped()) return;
  constexpr size_t kValueDims[] = {8, 20, 40, 128, 512};
  size_t turn = 0;
  for (const size_t value_dim : kValueDims)
    for (const size_t key_dim : {value_dim + 16, value_dim + 64, value_dim / 2})
      compare({.key_dim = key_dim,
               .group_size = turn % 5 + 1,
               .first_position = 60 + 7 * turn,
               .tokens = 1 + turn++ % 3,
               .value_dim = value_dim},
              FloatKind::ordinary, FloatKind::ordinary);
}

/// The same keys and values, turned around in a ring of four blocks: the same bits.
TEST_P(AttentionCheck, BlocksMayLieInARing) {
  skip_unless_own(&KernelTable::attention);
  if (IsSkipped()) return;
  constexpr size_t kRing = 4;
  const Shape shape{.key_dim = 24, .group_size = 3, .first_position = 254, .tokens = 2};
  const Bytes keys = make_keys(shape, FloatKind::ordinary);
  const Bytes values = make_values(shape, FloatKind::ordinary);
  const std::vector<float> queries = make_floats(FloatKind::ordinary, 2 * 3 * 24, random_);
  const auto turned = [&](const Bytes& tiles, size_t row_elements, size_t by) {
    const size_t block_bytes = tile_bytes(row_elements) * kAttentionBlock / kKeyTile;
    Bytes ring(kRing * block_bytes, offset());
    for (size_t b = 0; b < kRing; ++b)
      std::memcpy(ring.data() + (b + by) % kRing * block_bytes, tiles.data() + b * block_bytes,
                  block_bytes);
    return ring;
  };
  for (const Isa isa : {Isa::ref, GetParam().isa}) {
    const auto attend = [&](const Bytes& some_keys, const Bytes& some_values, size_t by) {
      std::vector<float> out(queries.size());
      kernel_table(isa).attention[type_index()]({.queries = queries.data(),
                                                 .query_stride = 3 * 24,
                                                 .token_count = 2,
                                                 .group_size = 3,
                                                 .first_position = 254,
                                                 .first_key = 5,
                                                 .keys = some_keys.data(),
                                                 .values = some_values.data(),
                                                 .first_block = by,
                                                 .ring_blocks = by > 0 ? kRing : SIZE_MAX,
                                                 .key_dim = 24,
                                                 .value_dim = 24,
                                                 .value_stride = 32,
                                                 .scale = 0.3f,
                                                 .out = out.data(),
                                                 .out_stride = 3 * 24});
      return out;
    };
    const std::vector<float> wanted = attend(keys, values, 0);
    for (size_t by = 1; by < kRing; ++by)
      EXPECT_EQ(attend(turned(keys, 24, by), turned(values, 32, by), by), wanted) << by;
  }
}

TEST_P(AttentionCheck, TheFirstKeysMayBeOutOfSight) {
  skip_unless_own(&KernelTable::attention);
  if (IsSkipped()) return;
  size_t turn = 0;
  for (const size_t first_key : {1, 7, 15, 16, 17, 31, 47, 48, 62, 63}) {
    for (const size_t behind : {0, 1, 15, 64, 100}) {
      const size_t group_size = turn % 8 + 1;
      const size_t tokens = turn % 3 + 1;
      compare({40, group_size, first_key + behind, tokens, first_key, turn % 2 == 0},
              FloatKind::ordinary, FloatKind::ordinary);
      if (HasFailure()) return;
      ++turn;
    }
  }
}

TEST_P(AttentionCheck, SinksTakePartInTheSum) {
  skip_unless_own(&KernelTable::attention);
  if (IsSkipped()) return;
  for (size_t group_size = 1; group_size <= 8; ++group_size) {
    for (const size_t first_position : {0, 63, 130}) {
      compare({64, group_size, first_position, 5, 0, true}, FloatKind::ordinary,
              FloatKind::ordinary);
      if (HasFailure()) return;
    }
  }
}

TEST_P(AttentionCheck, EveryGroupAndTokenCount) {
  skip_unless_own(&KernelTable::attention);
  if (IsSkipped()) return;
  for (size_t group_size = 1; group_size <= 8; ++group_size) {
    for (const size_t tokens : {1, 2, 3, 4, 5, 7, 8, 16, 17, 33}) {
      compare({24, group_size, 50, tokens}, FloatKind::ordinary, FloatKind::ordinary);
      if (HasFailure()) return;
    }
  }
}

TEST_P(AttentionCheck, EveryKindOfNumbers) {
  skip_unless_own(&KernelTable::attention);
  if (IsSkipped()) return;
  for (const FloatKind queries : kFloatKinds) {
    for (const FloatKind cache : kFloatKinds) {
      for (const size_t first_position : {0, 15, 64, 130}) {
        compare({40, 3, first_position, 4}, queries, cache);
        compare({64, 2, first_position, 1}, queries, cache);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(AttentionCheck, StoredKeys) {
  skip_unless_own(&KernelTable::store_key);
  if (IsSkipped()) return;
  for (const FloatKind kind : kFloatKinds) {
    for (const size_t head_dim : kHeadDims) {
      for (const size_t position : {0, 1, 15, 16, 33, 63}) {
        const std::vector<float> key = make_floats(kind, head_dim, random_);
        Bytes got(4 * tile_bytes(head_dim), offset());
        Bytes wanted(got.size(), offset());
        std::memset(got.data(), 0x5a, got.size());
        std::memset(wanted.data(), 0x5a, wanted.size());
        kernel_table(GetParam().isa)
            .store_key[type_index()](key.data(), head_dim, position, got.data());
        reference().store_key[type_index()](key.data(), head_dim, position, wanted.data());
        SCOPED_TRACE(testing::Message() << "head " << head_dim << ", position " << position);
        expect_same_bytes(got, wanted);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(AttentionCheck, StoredValues) {
  skip_unless_own(&KernelTable::store_value);
  if (IsSkipped()) return;
  for (const FloatKind kind : kFloatKinds) {
    for (const size_t head_dim : kHeadDims) {
      for (const size_t position : {0, 1, 5, 15, 16, 30}) {
        const size_t stride = round_up(head_dim, 16);
        const std::vector<float> value = make_floats(kind, head_dim, random_);
        Bytes got(2 * tile_bytes(stride), offset());
        Bytes wanted(got.size(), offset());
        std::memset(got.data(), 0x5a, got.size());
        std::memset(wanted.data(), 0x5a, wanted.size());
        kernel_table(GetParam().isa)
            .store_value[type_index()](value.data(), head_dim, position, stride, got.data());
        reference().store_value[type_index()](value.data(), head_dim, position, stride,
                                              wanted.data());
        SCOPED_TRACE(testing::Message() << "head " << head_dim << ", position " << position);
        expect_same_bytes(got, wanted);
        if (HasFailure()) return;
      }
    }
  }
}

std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> list;
  for (const Isa isa : kComparedIsas)
    for (const KvType type : {KvType::f16, KvType::f32, KvType::q8_0}) list.push_back({isa, type});
  return list;
}

std::string case_name(const testing::TestParamInfo<AttentionCase>& row) {
  constexpr const char* kNames[kKvTypeCount] = {"_f16", "_f32", "_q8_0"};
  return std::string(isa_name(row.param.isa)) + kNames[static_cast<size_t>(row.param.type)];
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionCheck, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace sluice::kernels::check
