// How expert work is cut: a tile is some rows of one expert's matrices for some of its tokens. A
// tile of gate and up spans whole blocks of the activation that down will want, so it can be
// finished, activation and quantisation included, by one thread without waiting for another.
#pragma once

#include <cstddef>

#include "quant/dtype.h"

namespace sluice {

inline constexpr size_t kExpertTileTokens = 64;
inline constexpr size_t kExpertTileRows = 256;
static_assert(kExpertTileRows % kSuperBlock == 0 && kExpertTileRows % kSmallBlock == 0);

}  // namespace sluice
