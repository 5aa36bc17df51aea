// How expert work is cut: a tile is some rows of one expert's matrices for some of its tokens, and
// at most so many results that they fit the cache. With one token a tile may be a whole matrix: the
// longer a thread reads on, the more memory gives it.
//
// Rows come in units. One of gate and up spans whole blocks of the activation that down will want,
// so it can be finished, activation and quantisation included, by one thread without waiting for
// another; down's are as small as balance asks and as large as starting over allows.
#pragma once

#include <algorithm>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/unit_ranges.h"
#include "base/units.h"
#include "quant/dtype.h"

namespace sluice {

inline constexpr size_t kTileTokensMax = 64;
inline constexpr size_t kTileResultsMax = 16384;
inline constexpr size_t kGateUpRowUnit = 256;
inline constexpr size_t kDownRowUnit = 64;
static_assert(kGateUpRowUnit % kSuperBlock == 0 && kGateUpRowUnit % kSmallBlock == 0);
static_assert(kTileTokensMax * kGateUpRowUnit <= kTileResultsMax);

struct ExpertTile {
  const ExpertWork* work;
  size_t first_token;  ///< of the work's
  size_t token_count;
  size_t first_row;
  size_t row_count;
};

/// The units of the works of one call, numbered work by work, in a work tokens by tokens. A unit is
/// `row_unit` rows for at most kTileTokensMax tokens. The works must outlive this.
class ExpertTiles {
 public:
  ExpertTiles(std::span<const ExpertWork> works, size_t row_count, size_t row_unit)
      : works_(works), row_count_(row_count), row_unit_(row_unit) {
    for (const ExpertWork& work : works) {
      unit_count_ += units_of(work);
      tokens_max_ = std::max(tokens_max_, tile_tokens(work));
    }
  }

  size_t unit_count() const { return unit_count_; }
  /// The most units of a tile, so that the results of the work with most tokens fit, too.
  size_t units_per_tile() const { return kTileResultsMax / (row_unit_ * tokens_max_); }

  /// Calls f(tile) for tiles that together are the units [begin, end).
  template <typename F>
  void for_tiles(size_t begin, size_t end, const F& f) const {
    const auto units = [&](const ExpertWork& work) { return units_of(work); };
    for_units(works_, begin, end, units, [&](const ExpertWork& work, size_t unit, size_t last) {
      while (unit < last) {
        const size_t rows_end = unit / row_units() * row_units() + row_units();
        const size_t count = std::min(std::min(last, rows_end) - unit, units_per_tile());
        f(tile(work, unit, count));
        unit += count;
      }
    });
  }

 private:
  /// A work's tokens are cut into parts of nearly the same size: the fewer tokens a tile has, the
  /// more the unpacking of its weights costs each.
  static size_t tile_tokens(const ExpertWork& work) {
    return ceil_div(work.token_count, ceil_div(work.token_count, kTileTokensMax));
  }
  size_t row_units() const { return ceil_div(row_count_, row_unit_); }
  size_t units_of(const ExpertWork& work) const {
    return ceil_div(work.token_count, tile_tokens(work)) * row_units();
  }

  ExpertTile tile(const ExpertWork& work, size_t unit, size_t count) const {
    const size_t tokens = tile_tokens(work);
    const size_t first_token = unit / row_units() * tokens;
    const size_t first_row = unit % row_units() * row_unit_;
    return {.work = &work,
            .first_token = first_token,
            .token_count = std::min(tokens, work.token_count - first_token),
            .first_row = first_row,
            .row_count = std::min(count * row_unit_, row_count_ - first_row)};
  }

  std::span<const ExpertWork> works_;
  size_t row_count_;
  size_t row_unit_;
  size_t unit_count_ = 0;
  size_t tokens_max_ = 1;
};

}  // namespace sluice
