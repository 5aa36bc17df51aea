#include "model/transposed_weights.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

TEST(TransposedWeights, TurnsTheFirstRowsOfEachBlock) {
  // Two blocks of three rows of two columns, of which the first two rows are wanted.
  const float from_data[] = {1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0};
  const Matrix from{Dtype::f32, 6, 2, 2 * sizeof(float),
                    reinterpret_cast<const std::byte*>(from_data)};
  Matrix to;
  const TransposedWeights weights{
      .from = &from, .block_count = 2, .block_step = 3, .row_count = 2, .to = &to};
  to = weights.shape();
  EXPECT_EQ(to.rows, 4u);
  EXPECT_EQ(to.cols, 2u);
  std::vector<float> memory(to.bytes() / sizeof(float));
  transpose(weights, reinterpret_cast<std::byte*>(memory.data()));
  EXPECT_EQ(memory, (std::vector<float>{1, 3, 2, 4, 5, 7, 6, 8}));
  EXPECT_EQ(to.data, reinterpret_cast<const std::byte*>(memory.data()));
}

TEST(TransposedWeights, WidensWhatIsNotFloat) {
  const uint16_t halves[] = {0x3c00, 0xc000};  // 1, -2
  const Matrix from{Dtype::f16, 2, 1, 2, reinterpret_cast<const std::byte*>(halves)};
  Matrix to;
  const TransposedWeights weights{
      .from = &from, .block_count = 1, .block_step = 2, .row_count = 2, .to = &to};
  to = weights.shape();
  std::vector<float> memory(2);
  transpose(weights, reinterpret_cast<std::byte*>(memory.data()));
  EXPECT_EQ(memory, (std::vector<float>{1, -2}));
}

}  // namespace
}  // namespace sluice
