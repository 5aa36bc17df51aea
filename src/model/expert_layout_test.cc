#include "model/expert_layout.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice {
namespace {

Matrix shape(size_t rows, size_t cols) {
  return {.dtype = Dtype::f32,
          .rows = rows,
          .cols = cols,
          .row_bytes = cols * sizeof(float),
          .data = nullptr};
}

const std::byte* at(uintptr_t address) {
  return reinterpret_cast<const std::byte*>(address);
}

TEST(ExpertLayout, ThreePartsInReadingOrder) {
  const std::array<ExpertPart, 3> parts{
      ExpertPart{ExpertPartKind::gate, shape(6, 8), {0, 1000, 192}},
      ExpertPart{ExpertPartKind::up, shape(6, 8), {1, 50, 192}},
      ExpertPart{ExpertPartKind::down, shape(8, 6), {0, 9000, 192}}};
  const ExpertLayout layout(5, parts);
  EXPECT_EQ(layout.expert_count(), 5u);
  EXPECT_EQ(layout.expert_bytes(), 576u);
  EXPECT_EQ(layout.all_parts(), 0b111u);
  EXPECT_EQ(layout.gate_up_parts(), 0b011u);
  EXPECT_EQ(layout.down_parts(), 0b100u);
  EXPECT_EQ(layout.parts()[1].extent(4), (FileExtent{1, 50 + 4 * 192, 192}));

  const std::array<const std::byte*, 3> places{at(4096), at(8192), at(12288)};
  const ExpertView view = layout.view(places);
  EXPECT_EQ(view.gate.data, at(4096));
  EXPECT_EQ(view.up.data, at(8192));
  EXPECT_EQ(view.down.data, at(12288));
  EXPECT_EQ(view.up.rows, 6u);
  EXPECT_EQ(view.down.rows, 8u);
  EXPECT_EQ(view.down.cols, 6u);
}

TEST(ExpertLayout, MergedGateAndUp) {
  const std::array<ExpertPart, 2> parts{
      ExpertPart{ExpertPartKind::gate_up, shape(12, 8), {0, 64, 384}},
      ExpertPart{ExpertPartKind::down, shape(8, 6), {0, 8000, 192}}};
  const ExpertLayout layout(3, parts);
  EXPECT_EQ(layout.all_parts(), 0b11u);
  EXPECT_EQ(layout.gate_up_parts(), 0b01u);
  EXPECT_EQ(layout.down_parts(), 0b10u);
  const std::array<const std::byte*, 2> places{at(4096), at(8192)};
  const ExpertView view = layout.view(places);
  EXPECT_EQ(view.gate.data, at(4096)) << "the first half of the rows";
  EXPECT_EQ(view.gate.rows, 6u);
  EXPECT_EQ(view.up.data, at(4096 + 6 * 32));
  EXPECT_EQ(view.up.rows, 6u);
  EXPECT_EQ(view.up.cols, 8u);
}

TEST(ExpertLayout, OffsetsBeyondFourGigabytes) {
  const ExpertPart part{ExpertPartKind::down, shape(8, 6), {0, uint64_t{7} << 30, 200u << 20}};
  EXPECT_EQ(part.extent(255).offset, (uint64_t{7} << 30) + uint64_t{255} * (200u << 20));
}

TEST(ExpertLayout, ADenseLayerHasNone) {
  const ExpertLayout layout;
  EXPECT_EQ(layout.expert_count(), 0u);
  EXPECT_TRUE(layout.parts().empty());
  EXPECT_EQ(layout.expert_bytes(), 0u);
}

TEST(ExpertLayoutDeathTest, DownComesLast) {
  const std::array<ExpertPart, 2> parts{ExpertPart{ExpertPartKind::down, shape(8, 6), {0, 0, 192}},
                                        ExpertPart{ExpertPartKind::gate_up, shape(12, 8), {}}};
  EXPECT_DEATH(ExpertLayout(3, parts), "check failed");
  EXPECT_DEATH(ExpertLayout(3, {}), "check failed");
}

}  // namespace
}  // namespace sluice
