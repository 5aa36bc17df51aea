#include "backend/cpu/unit_ranges.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace sluice {
namespace {

using Piece = std::tuple<size_t, size_t, size_t>;  // item, first, last
using Pieces = std::vector<Piece>;

/// What a range of the units of items is, where item i has items[i] units.
Pieces pieces_of(const std::vector<size_t>& items, size_t begin, size_t end) {
  Pieces pieces;
  const auto units_of = [](const size_t& item) { return item; };
  for_units(items, begin, end, units_of, [&](const size_t& item, size_t first, size_t last) {
    pieces.emplace_back(static_cast<size_t>(&item - items.data()), first, last);
  });
  return pieces;
}

TEST(UnitRanges, ARangeWithinAnItemIsOnePiece) {
  EXPECT_EQ(pieces_of({5, 3}, 1, 4), (Pieces{{0, 1, 4}}));
  EXPECT_EQ(pieces_of({5, 3}, 0, 5), (Pieces{{0, 0, 5}}));
  EXPECT_EQ(pieces_of({5, 3}, 5, 7), (Pieces{{1, 0, 2}})) << "the units are the item's own";
}

TEST(UnitRanges, ARangeOverItemsIsCutAtTheirEnds) {
  EXPECT_EQ(pieces_of({2, 1, 4}, 1, 5), (Pieces{{0, 1, 2}, {1, 0, 1}, {2, 0, 2}}));
}

TEST(UnitRanges, ItemsWithoutUnitsAreLeftOut) {
  EXPECT_EQ(pieces_of({0, 2, 0, 0, 2}, 1, 3), (Pieces{{1, 1, 2}, {4, 0, 1}}));
}

TEST(UnitRanges, TheLastUnitOfAllIsTheLastItems) {
  EXPECT_EQ(pieces_of({3, 3}, 5, 6), (Pieces{{1, 2, 3}}));
}

}  // namespace
}  // namespace sluice
