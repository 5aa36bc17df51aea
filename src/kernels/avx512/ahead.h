// Reading ahead for rows of weights that are read four at a time.
//
// Rows side by side are more streams than the hardware's prefetcher follows: two already halve its
// rate, and prefetch instructions alone reach 20 GB/s from RAM on one core. What keeps up is to
// load one byte of every line of the next four rows, in the order in which they lie: a single
// stream, which the prefetcher runs ahead of, into a first-level cache that four rows fit. 29 GB/s
// with Q4_K where a plain pass over memory reads 32 (EPYC Genoa, 2026).
//
// Private to the file that includes it.
#pragma once

#include <cstddef>

#include "kernels/avx512/intrinsics.h"

namespace sluice::kernels::avx512 {
namespace {

/// Walks through the weights ahead of their use and loads one byte of every line. The prefetcher
/// follows as long as the loads come one after the other: the cursor's clamping, a chain of three
/// instructions, sees to that. Unrolled without it they are issued in any order (Q6_K: 12 GB/s in
/// place of 29), and spread evenly between the rows' arithmetic they gave 24.
class Ahead {
 public:
  Ahead(const std::byte* first, size_t bytes) : next_(first), last_(first + bytes - 1) {}

  /// Everything before `goal` is to be on its way.
  inline void reach(const std::byte* goal) {
    const std::byte* stop = goal < last_ ? goal : last_;
    for (; next_ < stop; next_ += 64) touch();
    if (next_ > last_) next_ = last_;  // advance touches without asking
  }

  /// The next kLines: where their number is the same every time, 8 % faster than a loop.
  template <size_t kLines>
  inline void advance() {
    for (size_t line = 0; line < kLines; ++line) {
      touch();
      next_ = next_ + 64 < last_ ? next_ + 64 : last_;
    }
  }

 private:
  inline void touch() { asm volatile("" ::"r"(*reinterpret_cast<const char*>(next_))); }

  const std::byte* next_;
  const std::byte* last_;
};

}  // namespace
}  // namespace sluice::kernels::avx512
