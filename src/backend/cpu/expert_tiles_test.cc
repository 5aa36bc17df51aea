#include "backend/cpu/expert_tiles.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace sluice {
namespace {

std::vector<ExpertWork> works_of(const std::vector<size_t>& token_counts) {
  std::vector<ExpertWork> works;
  for (const size_t count : token_counts) {
    ExpertWork work{};
    work.token_count = count;
    works.push_back(work);
  }
  return works;
}

using Seen = std::map<std::tuple<size_t, size_t, size_t>, int>;  // work, token, row

void count_tile(const std::vector<ExpertWork>& works, const ExpertTile& tile, Seen& seen) {
  const auto work = static_cast<size_t>(tile.work - works.data());
  for (size_t token = 0; token < tile.token_count; ++token) {
    for (size_t row = 0; row < tile.row_count; ++row)
      ++seen[{work, tile.first_token + token, tile.first_row + row}];
  }
}

// However the units are divided, each result belongs to one tile, and each tile is small enough
// and begins where a unit does.
TEST(ExpertTiles, CoverEachResultOnce) {
  const std::vector<ExpertWork> works = works_of({1, 64, 65, 3, 200});
  constexpr size_t kRows = 704;
  for (const size_t row_unit : {kGateUpRowUnit, kDownRowUnit}) {
    const ExpertTiles tiles(works, kRows, row_unit);
    for (const size_t step : {1, 2, 3, 5, 16, 1000}) {
      Seen seen;
      for (size_t begin = 0; begin < tiles.unit_count(); begin += step) {
        const size_t end = std::min(begin + step, tiles.unit_count());
        tiles.for_tiles(begin, end, [&](const ExpertTile& tile) {
          EXPECT_EQ(tile.first_row % row_unit, 0u);
          EXPECT_LE(tile.token_count, kTileTokensMax);
          EXPECT_LE(tile.token_count * tile.row_count, kTileResultsMax);
          count_tile(works, tile, seen);
        });
      }
      EXPECT_EQ(seen.size(), (1 + 64 + 65 + 3 + 200) * kRows);
      for (const auto& [place, times] : seen) ASSERT_EQ(times, 1);
    }
  }
}

// With one token a thread that takes many units reads matrices from end to end.
TEST(ExpertTiles, AreWholeMatricesForOneToken) {
  const std::vector<ExpertWork> works = works_of({1, 1, 1});
  const ExpertTiles tiles(works, 768, kGateUpRowUnit);
  ASSERT_EQ(tiles.unit_count(), 9u);
  std::vector<size_t> rows;
  tiles.for_tiles(2, 7, [&](const ExpertTile& tile) { rows.push_back(tile.row_count); });
  EXPECT_EQ(rows, (std::vector<size_t>{256, 768, 256}));
}

// 65 tokens are 33 and 32, not 64 and 1.
TEST(ExpertTiles, AreOfNearlyEqualSize) {
  const std::vector<ExpertWork> works = works_of({65});
  const ExpertTiles tiles(works, 256, kGateUpRowUnit);
  std::vector<size_t> tokens;
  tiles.for_tiles(0, 2, [&](const ExpertTile& tile) { tokens.push_back(tile.token_count); });
  EXPECT_EQ(tokens, (std::vector<size_t>{33, 32}));
}

}  // namespace
}  // namespace sluice
