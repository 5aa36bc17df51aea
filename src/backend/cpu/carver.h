// Cuts a block of memory into the arrays of someone's scratch memory. Laying out over no memory at
// all only counts, so that the size and the places come from the same lines. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace sluice {

/// Hands out 64-byte aligned pieces of a block of memory, or only counts them. A copy goes on from
/// where the original stood: what is needed at different times may lie in the same place.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  std::byte* take(uint64_t bytes) {
    std::byte* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(bytes, 64);
    return piece;
  }
  float* floats(uint64_t count) { return reinterpret_cast<float*>(take(count * sizeof(float))); }
  uint64_t used() const { return used_; }

 private:
  std::byte* memory_;
  uint64_t used_ = 0;
};

}  // namespace sluice
