#include "jinja/characters.h"

#include <algorithm>
#include <span>

#include "jinja/case_tables.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

using text::Category;
using text::decode_utf8;

char32_t mapped(char32_t code, std::span<const CaseRange> ranges) {
  const auto next = std::ranges::upper_bound(ranges, code, {}, &CaseRange::first);
  if (next == ranges.begin()) return code;
  const CaseRange& range = next[-1];
  if (code > range.last || (code - range.first) % range.stride != 0) return code;
  return static_cast<char32_t>(static_cast<int32_t>(code) + range.distance);
}

/// Every character through `change`, which is told whether a letter came before it.
template <typename Change>
Text changed(const Text& text, const Change& change) {
  Text result;
  std::string one;
  bool after_letter = false;
  const std::string& bytes = text.bytes();
  for (size_t at = 0; at < bytes.size();) {
    const text::Utf8Char c = decode_utf8(bytes, at);
    one.clear();
    if (c.valid())
      text::append_utf8(change(c.code, at == 0, after_letter), one);
    else
      one = bytes[at];
    result.append(one, text.origin_at(at));
    after_letter = is_upper(c.code) || is_lower(c.code);
    at += c.bytes;
  }
  return result;
}

}  // namespace

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += decode_utf8(text, at).bytes;
  return count;
}

std::vector<size_t> character_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); at += decode_utf8(text, at).bytes) offsets.push_back(at);
  offsets.push_back(text.size());
  return offsets;
}

bool is_white(char32_t code) {
  return text::is_space(code) || (0x1c <= code && code <= 0x1f);
}

bool is_printable(char32_t code) {
  const Category c = text::category(code);
  return code == ' ' || c < Category::space_separator;
}

bool is_upper(char32_t code) {
  const Category c = text::category(code);
  return c == Category::uppercase_letter || c == Category::titlecase_letter;
}

bool is_lower(char32_t code) {
  return text::category(code) == Category::lowercase_letter;
}

char32_t to_upper(char32_t code) {
  if (code < 0x80) return 'a' <= code && code <= 'z' ? code - 0x20 : code;
  return mapped(code, kUpperRanges);
}

char32_t to_lower(char32_t code) {
  if (code < 0x80) return 'A' <= code && code <= 'Z' ? code + 0x20 : code;
  return mapped(code, kLowerRanges);
}

size_t white_begin_end(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const text::Utf8Char c = decode_utf8(text, at);
    if (!is_white(c.code)) break;
    at += c.bytes;
  }
  return at;
}

size_t white_end_begin(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && end - begin < 4 && text::utf8_continues(static_cast<uint8_t>(text[begin])))
      --begin;
    const text::Utf8Char c = decode_utf8(text, begin);
    if (begin + c.bytes != end || !is_white(c.code)) break;
    end = begin;
  }
  return end;
}

Text upper(const Text& text) {
  return changed(text, [](char32_t code, bool, bool) { return to_upper(code); });
}

Text lower(const Text& text) {
  return changed(text, [](char32_t code, bool, bool) { return to_lower(code); });
}

Text capitalize(const Text& text) {
  return changed(text, [](char32_t code, bool is_first, bool) {
    return is_first ? to_upper(code) : to_lower(code);
  });
}

Text title(const Text& text) {
  return changed(text, [](char32_t code, bool, bool after_letter) {
    return after_letter ? to_lower(code) : to_upper(code);
  });
}

}  // namespace sluice::jinja
