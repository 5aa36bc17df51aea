// The name of a routed expert.
#pragma once

#include <cstdint>

namespace sluice {

struct ExpertId {
  uint32_t layer = 0;  ///< transformer layer, from 0
  uint32_t index = 0;  ///< expert within the layer, from 0

  friend bool operator==(const ExpertId&, const ExpertId&) = default;
};

}  // namespace sluice
