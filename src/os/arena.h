// Large anonymous memory: the home of weights, expert slots and the KV cache. Memory comes zeroed
// and page-aligned straight from the system, in huge pages where it can be had (2 MiB pages cut
// the cost of pinning buffers for direct reads and of TLB misses in kernels); never a mapping of a
// file, which the kernel could drop. Counts towards RSS only as it is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace sluice::os {

/// The smallest piece of memory that the system gives and takes.
uint64_t page_bytes();

class Arena {
 public:
  Arena() = default;
  /// Maps `bytes` (rounded up to a page; to 2 MiB and aligned so when larger). A refusal is
  /// ErrorKind::memory and names `what` and the size.
  static Result<Arena> allocate(uint64_t bytes, std::string_view what);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  std::byte* begin() const { return begin_; }
  uint64_t bytes() const { return bytes_; }

  /// Gives the pages of a range back to the system; they read as zeros afterwards, and come back
  /// one small page at a time as they are touched.
  /// REQUIRES: offset and bytes are multiples of the page size.
  void release_pages(uint64_t offset, uint64_t bytes);

  /// A released range is to be used again: it may have huge pages as before. Nothing is touched by
  /// this. REQUIRES: as release_pages.
  void reuse_pages(uint64_t offset, uint64_t bytes);

  /// How much of a range is in memory now. REQUIRES: as release_pages.
  uint64_t resident_bytes(uint64_t offset, uint64_t bytes) const;

  template <typename T>
  T* as(uint64_t offset = 0) const {
    return reinterpret_cast<T*>(begin_ + offset);
  }

 private:
  void check_range(uint64_t offset, uint64_t bytes) const;

  std::byte* begin_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace sluice::os
