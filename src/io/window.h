// The arithmetic of direct reads. A direct read must begin and end on multiples of the alignment A
// and land in memory that is aligned alike; the bytes we want do neither. So we read the *window*:
// the wanted extent widened to alignment on both sides, into a buffer with room for the widening,
// and use what lies inside it.
//
//   file     …|----4096----|----4096----|----4096----|…        A = 4096
//   wanted            [5000 … 9000)                             4000 bytes at 5000
//   window            [4096 … 12288)                            8192 bytes at 4096
//   in memory  buffer + 904 is the first wanted byte            head = 904
//
// A slot for such an extent needs at most round_up(A − 1 + bytes, A) bytes, whatever its offset.
// Pure functions; any thread.
#pragma once

#include <cstdint>

#include "base/extent.h"
#include "base/units.h"

namespace sluice::io {

struct AlignedWindow {
  uint64_t offset;  ///< in the file, a multiple of the alignment
  uint64_t bytes;   ///< a multiple of the alignment; may reach past the end of the file
  uint64_t head;    ///< bytes of the window before the first wanted byte
};

/// REQUIRES: alignment is a power of two; extent.bytes > 0.
constexpr AlignedWindow window_of(const FileExtent& extent, uint64_t alignment) {
  const uint64_t begin = round_down(extent.offset, alignment);
  return {begin, round_up(extent.end(), alignment) - begin, extent.offset - begin};
}

/// Room for the window of any extent of `bytes` bytes that starts at a multiple of
/// `offset_granularity` (a power of two; GGUF tensors start at multiples of 32, and so do their
/// experts when the slices are whole multiples of it).
constexpr uint64_t window_bytes_max(uint64_t bytes, uint64_t alignment,
                                    uint64_t offset_granularity = 1) {
  const uint64_t head_max = offset_granularity < alignment ? alignment - offset_granularity : 0;
  return round_up(head_max + bytes, alignment);
}

}  // namespace sluice::io
