// Bytes to Unicode code points and back. Text comes from users and files, so any bytes may come: a
// byte that is part of no character reads as U+FFFD, one for each such byte. Surrogates in three
// bytes (CESU-8, WTF-8) are let through as the reference does, so that they survive a round trip.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::text {

inline constexpr char32_t kReplacement = 0xfffd;

struct Utf8Char {
  char32_t code;
  uint32_t bytes;  ///< a kReplacement of one byte stands for a byte that is not UTF-8

  bool valid() const { return code != kReplacement || bytes != 1; }
};

/// How many bytes a character takes that starts with this byte; 0: none starts with it.
constexpr uint32_t utf8_length(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;  // a continuation, or an overlong form of ASCII
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

/// Whether `second` may follow `lead`: a continuation byte, and neither overlong nor beyond
/// U+10FFFF. REQUIRES: utf8_length(lead) > 1
constexpr bool utf8_second_fits(uint8_t lead, uint8_t second) {
  const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xf4 ? 0x8f : 0xbf;
  return low <= second && second <= high;
}

constexpr bool utf8_continues(uint8_t byte) {
  return (byte & 0xc0) == 0x80;
}

/// The character at `at`. REQUIRES: at < text.size()
Utf8Char decode_utf8(std::string_view text, size_t at);

/// REQUIRES: code ≤ U+10FFFF
void append_utf8(char32_t code, std::string& text);

/// Where the run of ASCII that starts at `at` ends.
size_t ascii_end(std::string_view text, size_t at);

/// The text with U+FFFD for each byte that is not UTF-8: `text` itself when there is none,
/// otherwise a copy that lives in `storage`.
std::string_view repair_utf8(std::string_view text, std::string& storage);

}  // namespace sluice::text
