#include <cstring>
#include <iterator>

#include "tests/kernel_check/check.h"
#include "tests/kernel_check/operands.h"

namespace sluice::kernels::check {
namespace {

enum class Entry { matvec, matmul };

MatmulFn entry_of(const KernelTable& table, Entry entry, Dtype dtype) {
  const auto id = static_cast<size_t>(dtype);
  return entry == Entry::matvec ? table.matvec[id] : table.matmul[id];
}

struct MatmulCase {
  Isa isa;
  Entry entry;
  Dtype dtype;
};

struct Shape {
  size_t rows;
  size_t cols;
  size_t tokens;
};

/// How the operands lie in memory.
struct Placement {
  size_t weight_offset = 0;  ///< bytes past a 64-byte boundary
  size_t row_gap = 0;        ///< bytes behind each weight row
  size_t stride_gap = 0;     ///< bytes behind each activation row, a multiple of 64
  size_t out_gap = 0;        ///< floats behind each row of the output
  bool scattered = false;    ///< tokens name activation rows out of order, some twice
};

class Matmul : public testing::TestWithParam<MatmulCase> {
 protected:
  void SetUp() override {
    const auto [isa, entry, dtype] = GetParam();
    const std::string reason =
        reason_to_skip(isa, [entry = entry, dtype = dtype](const KernelTable& table) {
          return entry_of(table, entry, dtype);
        });
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  const DtypeInfo& info() const { return dtype_info(GetParam().dtype); }

  Bytes make_weights(Shape shape, Placement placement, WeightKind kind) {
    const size_t blocks = shape.cols / info().block_elements;
    const size_t row_bytes = blocks * info().block_bytes + placement.row_gap;
    Bytes weights(shape.rows * row_bytes - placement.row_gap, placement.weight_offset);
    std::memset(weights.data(), 0xff, weights.size());
    for (size_t r = 0; r < shape.rows; ++r)
      fill_weights(info().dtype, kind, blocks, random_, weights.data() + r * row_bytes);
    return weights;
  }

  Bytes make_activations(Shape shape, Placement placement, ActivationKind kind) {
    const size_t row_bytes = activation_layout(info().activation, shape.cols).row_bytes;
    const size_t stride = row_bytes + placement.stride_gap;
    const size_t rows = placement.scattered ? 2 * shape.tokens + 1 : shape.tokens;
    Bytes activations(rows * stride);
    std::memset(activations.data(), 0xff, activations.size());
    for (size_t r = 0; r < rows; ++r)
      fill_activation(info().activation, kind, shape.cols, random_,
                      activations.data() + r * stride);
    return activations;
  }

  void compare(Shape shape, Placement placement, WeightKind weight_kind = WeightKind::random,
               ActivationKind activation_kind = ActivationKind::random) {
    SCOPED_TRACE(testing::Message()
                 << shape.rows << " rows, " << shape.cols << " cols, " << shape.tokens
                 << " tokens; " << name_of(weight_kind) << " weights, " << name_of(activation_kind)
                 << " activations; weights + " << placement.weight_offset << " bytes, row gap "
                 << placement.row_gap << (placement.scattered ? ", scattered" : ""));
    const Bytes weights = make_weights(shape, placement, weight_kind);
    const Bytes activations = make_activations(shape, placement, activation_kind);
    std::vector<int32_t> token_rows;
    for (size_t t = 0; t < shape.tokens; ++t)
      token_rows.push_back(static_cast<int32_t>((t * 7 + 3) / 2 % (2 * shape.tokens + 1)));
    const ActivationLayout layout = activation_layout(info().activation, shape.cols);
    MatmulArgs args = {
        .weights = weights.data(),
        .row_bytes = shape.cols / info().block_elements * info().block_bytes + placement.row_gap,
        .row_count = shape.rows,
        .cols = shape.cols,
        .activations = activations.data(),
        .activation_stride = layout.row_bytes + placement.stride_gap,
        .token_rows = placement.scattered ? token_rows.data() : nullptr,
        .token_count = shape.tokens,
        .out = nullptr,
        .out_stride = shape.rows + placement.out_gap,
    };
    Output got(args.out_stride * shape.tokens, shape.rows % 16);
    Output wanted(args.out_stride * shape.tokens, shape.rows % 16);
    const auto [isa, entry, dtype] = GetParam();
    args.out = got.data();
    entry_of(kernel_table(isa), entry, dtype)(args);
    args.out = wanted.data();
    entry_of(kernel_table(Isa::ref), entry, dtype)(args);
    expect_same(got, wanted);
  }

  std::vector<size_t> some_cols() const {
    if (info().activation == ActivationFormat::q8_256) return {256, 512, 768, 1024, 2816};
    if (info().activation == ActivationFormat::q8_32) {
      const size_t block = info().block_elements;
      return {block, 2 * block, 3 * block, 5 * block, 8 * block, 11 * block, 1024, 2816};
    }
    return {1, 15, 16, 17, 32, 33, 100, 256, 1000, 2816};
  }

  Random random_{11};
};

TEST_P(Matmul, ShapesOddAndEven) {
  size_t turn = 0;
  for (const size_t rows : {1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33, 40}) {
    for (const size_t tokens : {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64}) {
      for (const size_t cols : some_cols()) {
        if (cols > 1024 && rows * tokens > 300) continue;
        if (!takes_turn(++turn, 13)) continue;
        compare({rows, cols, tokens}, {.weight_offset = turn % 64,
                                       .row_gap = turn % 3 == 0 ? turn % 5 : 0,
                                       .stride_gap = turn % 4 * 64,
                                       .out_gap = turn % 5 * 3,
                                       .scattered = turn % 2 == 1});
        if (HasFailure()) return;
      }
    }
  }
}

/// More tokens and rows than a kernel is likely to hold at once.
TEST_P(Matmul, BeyondEveryTile) {
  for (const size_t tokens : {63, 65, 127, 128, 129, 200}) {
    compare({35, 512, tokens}, {.weight_offset = 2, .out_gap = 1, .scattered = tokens % 2 == 0});
    if (HasFailure()) return;
  }
  compare({300, 768, 1}, {});
  compare({97, 4096, 2}, {.row_gap = 3});
}

TEST_P(Matmul, EveryMisalignmentOfTheWeights) {
  for (size_t offset = 0; offset < 64; ++offset) {
    compare({17, 512, 1}, {.weight_offset = offset});
    compare({9, 512, 5}, {.weight_offset = offset});
    if (HasFailure()) return;
  }
}

TEST_P(Matmul, ExtremesOfWeightsAndActivations) {
  size_t turn = 0;
  for (const WeightKind weights : kWeightKinds) {
    for (const ActivationKind activations : kActivationKinds) {
      for (const size_t tokens : {1, 3, 17, 40}) {
        if (!takes_turn(++turn, 5)) continue;
        compare({19, 512, tokens}, {}, weights, activations);
        compare({16, 1024, tokens}, {}, weights, activations);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(Matmul, NothingToDo) {
  compare({1, 256, 0}, {});
  MatmulArgs args = {};
  args.cols = 256;
  args.token_count = 1;
  entry_of(kernel_table(GetParam().isa), GetParam().entry, GetParam().dtype)(args);
}

std::vector<MatmulCase> cases() {
  std::vector<MatmulCase> list;
  for (const Isa isa : kComparedIsas) {
    for (const Entry entry : {Entry::matvec, Entry::matmul}) {
      for (uint32_t id = 0; id < kDtypeIdCount; ++id) {
        const KernelTable& reference = kernel_table(Isa::ref);
        if (reference.matvec[id] != nullptr) list.push_back({isa, entry, static_cast<Dtype>(id)});
      }
    }
  }
  return list;
}

std::string case_name(const testing::TestParamInfo<MatmulCase>& row) {
  const auto& [isa, entry, dtype] = row.param;
  return std::string(isa_name(isa)) + (entry == Entry::matvec ? "_matvec_" : "_matmul_") +
         std::string(dtype_info(dtype).name);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Matmul, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace sluice::kernels::check
