// How far and how wide to look ahead: set by the user, turned down and up by the governor while the
// model runs, so every call is told anew.
#pragma once

#include <cstdint>

namespace sluice {

/// No layer is predicted from further away than this.
inline constexpr uint32_t kDistanceMax = 3;

struct Reach {
  uint32_t distance = 0;  ///< layers ahead, at most kDistanceMax; 0: nothing is predicted
  uint32_t width = 0;     ///< experts named for each layer; 0: as many as the model uses

  friend bool operator==(const Reach&, const Reach&) = default;
};

}  // namespace sluice
