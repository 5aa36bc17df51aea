#include "text/utf8.h"

#include <cstring>

namespace sluice::text {

Utf8Char decode_utf8(std::string_view text, size_t at) {
  constexpr Utf8Char kInvalid{kReplacement, 1};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const uint32_t length = utf8_length(lead);
  if (length == 0 || length > text.size() - at) return kInvalid;
  if (!utf8_second_fits(lead, byte(1))) return kInvalid;
  // The lead byte of a character of n bytes carries 7 − n bits, each further byte six.
  char32_t code = ((lead & (0x7fu >> length)) << 6) | (byte(1) & 0x3fu);
  for (uint32_t i = 2; i < length; ++i) {
    if (!utf8_continues(byte(i))) return kInvalid;
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  return {code, length};
}

void append_utf8(char32_t code, std::string& text) {
  const auto continuation = [&](int shift) {
    text.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3f)));
  };
  if (code < 0x80) {
    text.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    text.push_back(static_cast<char>(0xc0 | (code >> 6)));
    continuation(0);
  } else if (code < 0x10000) {
    text.push_back(static_cast<char>(0xe0 | (code >> 12)));
    continuation(6);
    continuation(0);
  } else {
    text.push_back(static_cast<char>(0xf0 | (code >> 18)));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

size_t ascii_end(std::string_view text, size_t at) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  for (uint64_t eight; at + sizeof eight <= text.size(); at += sizeof eight) {
    std::memcpy(&eight, text.data() + at, sizeof eight);
    if ((eight & kHighBits) != 0) break;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

namespace {

size_t first_invalid_byte(std::string_view text, size_t at) {
  while (true) {
    at = ascii_end(text, at);
    if (at == text.size()) return at;
    const Utf8Char next = decode_utf8(text, at);
    if (!next.valid()) return at;
    at += next.bytes;
  }
}

}  // namespace

std::string_view repair_utf8(std::string_view text, std::string& storage) {
  size_t bad = first_invalid_byte(text, 0);
  if (bad == text.size()) return text;
  storage.clear();
  size_t copied = 0;
  while (bad < text.size()) {
    storage.append(text, copied, bad - copied);
    append_utf8(kReplacement, storage);
    copied = bad + 1;
    bad = first_invalid_byte(text, copied);
  }
  storage.append(text, copied);
  return storage;
}

}  // namespace sluice::text
