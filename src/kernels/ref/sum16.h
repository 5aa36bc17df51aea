// The sum over 16 lanes that kernels.h defines (sum16). A loop takes a Sum16, steps lane i % 16 for
// its element i, and asks for the total; a vector register does the same with all lanes at once.
#pragma once

#include <cstddef>

namespace sluice::kernels::ref {

struct Sum16 {
  float lanes[16] = {};

  float& lane(size_t i) { return lanes[i % 16]; }

  float total() const {
    float folded[16];
    for (size_t i = 0; i < 16; ++i) folded[i] = lanes[i];
    for (size_t width = 8; width > 0; width /= 2)
      for (size_t i = 0; i < width; ++i) folded[i] += folded[i + width];
    return folded[0];
  }
};

}  // namespace sluice::kernels::ref
