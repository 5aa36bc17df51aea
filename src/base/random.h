// Reproducible random numbers: the same seed gives the same sequence on every machine, which the
// standard library's distributions do not promise. Not for secrets. One thread at a time.
#pragma once

#include <cstdint>

namespace sluice {

/// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, period 2^64, passes BigCrush.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, bound). REQUIRES: bound > 0. (The bias is below bound / 2^64.)
  uint64_t below(uint64_t bound) { return next() % bound; }

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace sluice
