// Damages files on purpose: tests take bytes that a writer made and change the few that matter.
// Tests only; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/check.h"

namespace sluice {

/// The little-endian bytes of a number.
template <typename T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

/// `bytes` with the first `old_part` replaced. REQUIRES: it is there.
inline std::string replaced(std::string bytes, std::string_view old_part,
                            std::string_view new_part) {
  const size_t place = bytes.find(old_part);
  CHECK(place != std::string::npos);
  return bytes.replace(place, old_part.size(), new_part);
}

/// `bytes` with what lies `distance` bytes behind the end of the first `mark` overwritten.
/// REQUIRES: both are there.
inline std::string patched_after(std::string bytes, std::string_view mark, size_t distance,
                                 std::string_view patch) {
  const size_t place = bytes.find(mark);
  CHECK(place != std::string::npos);
  CHECK(place + mark.size() + distance + patch.size() <= bytes.size());
  return bytes.replace(place + mark.size() + distance, patch.size(), patch);
}

inline std::span<const std::byte> as_byte_span(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace sluice
