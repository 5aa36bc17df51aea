// Fetching weights ahead of their use, when several rows are read side by side.
//
// Eight or sixteen rows are as many streams, too many for the hardware's prefetcher. But such
// groups of rows follow each other in memory, so a cursor that walks straight on, one group ahead,
// keeps the memory busy: Q4_K from RAM went from 5 to 26 GB/s on one core (EPYC Genoa, 2026).
// Whoever reads 256 bytes of weights moves it on by as much. In larger portions the fetches clog
// the queue of cache misses: 20 GB/s instead of 25. Fetching into the first-level cache lost half:
// it is too small to hold what lies between the cursor and its use.
//
// Private to the file that includes it.
#pragma once

#include <cstddef>

#include "kernels/avx512/intrinsics.h"

namespace sluice::kernels::avx512 {
namespace {

/// The cursor. A fetch never faults, so it may touch a few lines behind the weights.
class Prefetch {
 public:
  Prefetch(const std::byte* first, size_t bytes) : next_(first), end_(first + bytes) {}

  /// To be called before the rows that end at `rows_end` are read. Sets the cursor right if it has
  /// run ahead or fallen behind.
  void start_rows(const std::byte* rows_end) {
    const size_t left = static_cast<size_t>(end_ - rows_end);
    const std::byte* goal = left > kLeadBytes ? rows_end + kLeadBytes : end_;
    for (; next_ < goal; next_ += 64) _mm_prefetch(next_, _MM_HINT_T1);
    next_ = goal;
  }

  /// To be called with every 256 bytes that are read.
  void advance_256() {
    for (size_t line = 0; line < 4; ++line) _mm_prefetch(next_ + 64 * line, _MM_HINT_T1);
    next_ = end_ - next_ > 256 ? next_ + 256 : end_;  // behind it: another thread's
  }

 private:
  static constexpr size_t kLeadBytes = 4096;  ///< the cursor's way past the end of the group

  const std::byte* next_;
  const std::byte* end_;
};

}  // namespace
}  // namespace sluice::kernels::avx512
