#include "jinja/text_operations.h"

#include <algorithm>

#include "jinja/characters.h"
#include "jinja/python_text.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

/// Whether the character at the start of `text` is one of `characters`.
bool begins_with_one_of(std::string_view text, std::string_view characters) {
  const std::string_view first = text.substr(0, text::decode_utf8(text, 0).bytes);
  for (size_t at = 0; at < characters.size();) {
    const size_t bytes = text::decode_utf8(characters, at).bytes;
    if (characters.substr(at, bytes) == first) return true;
    at += bytes;
  }
  return false;
}

size_t begin_without(std::string_view text, std::string_view characters) {
  size_t at = 0;
  while (at < text.size() && begins_with_one_of(text.substr(at), characters))
    at += text::decode_utf8(text, at).bytes;
  return at;
}

/// From the right, one character of `characters` after the other.
size_t end_without(std::string_view text, size_t begin, std::string_view characters) {
  size_t end = text.size();
  for (bool found = true; found;) {
    found = false;
    for (size_t at = 0; at < characters.size() && !found;) {
      const std::string_view one = characters.substr(at, text::decode_utf8(characters, at).bytes);
      found = end - begin >= one.size() && text.substr(0, end).ends_with(one);
      if (found) end -= one.size();
      at += one.size();
    }
  }
  return end;
}

bool ends_line(char32_t code) {
  return ('\n' <= code && code <= '\r') || (0x1c <= code && code <= 0x1e) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

/// Where the run without white space that starts at `at` ends.
size_t word_end(std::string_view text, size_t at) {
  while (at < text.size()) {
    const text::Utf8Char c = text::decode_utf8(text, at);
    if (is_white(c.code)) break;
    at += c.bytes;
  }
  return at;
}

}  // namespace

Text stripped(const Text& text, const std::optional<Text>& characters, Side side) {
  const std::string& bytes = text.bytes();
  size_t begin = 0;
  if (side != Side::right)
    begin = characters ? begin_without(bytes, characters->bytes()) : white_begin_end(bytes);
  size_t end = bytes.size();
  if (side != Side::left)
    end = characters ? end_without(bytes, begin, characters->bytes())
                     : std::max(begin, white_end_begin(bytes));
  return text.part(begin, end);
}

std::vector<Value> split_at(Run& run, const Text& text, const Text& separator, size_t count_max) {
  std::vector<Value> pieces;
  size_t begin = 0;
  run.charge(text.size());
  while (pieces.size() < count_max && run.charge_items(1)) {
    const size_t end = text.bytes().find(separator.bytes(), begin);
    if (end == std::string::npos) break;
    pieces.emplace_back(text.part(begin, end));
    begin = end + separator.size();
  }
  pieces.emplace_back(text.part(begin, text.size()));
  return pieces;
}

std::vector<Value> split_at_from_right(Run& run, const Text& text, const Text& separator,
                                       size_t count_max) {
  std::vector<Value> pieces;
  size_t end = text.size();
  run.charge(text.size());
  while (pieces.size() < count_max && end >= separator.size() && run.charge_items(1)) {
    const size_t begin = text.bytes().rfind(separator.bytes(), end - separator.size());
    if (begin == std::string::npos) break;
    pieces.emplace_back(text.part(begin + separator.size(), end));
    end = begin;
  }
  pieces.emplace_back(text.part(0, end));
  std::ranges::reverse(pieces);
  return pieces;
}

std::vector<Value> split_at_white(Run& run, const Text& text, size_t count_max) {
  std::vector<Value> pieces;
  const std::string_view bytes = text.bytes();
  size_t begin = white_begin_end(bytes);
  run.charge(text.size());
  while (begin < bytes.size() && run.charge_items(1)) {
    const bool is_rest = pieces.size() == count_max;
    const size_t end = is_rest ? bytes.size() : word_end(bytes, begin);
    pieces.emplace_back(text.part(begin, end));
    begin = end + white_begin_end(bytes.substr(end));
  }
  return pieces;
}

std::vector<Value> split_at_white_from_right(Run& run, const Text& text, size_t count_max) {
  std::vector<Value> all = split_at_white(run, text, kNoMaximum);
  if (all.size() <= count_max) return all;
  // The words that stay together end where the last of them does: walk that many words.
  const size_t together = all.size() - count_max;
  const std::string_view bytes = text.bytes();
  size_t end = 0;
  for (size_t i = 0; i < together; ++i)
    end = word_end(bytes, end + white_begin_end(bytes.substr(end)));
  // Python keeps the white space on the left of a piece that it did not cut there.
  std::vector<Value> pieces = {text.part(0, end)};
  pieces.insert(pieces.end(), all.begin() + static_cast<ptrdiff_t>(together), all.end());
  return pieces;
}

std::vector<Text> split_lines(const Text& text, bool keeps_ends) {
  std::vector<Text> lines;
  const std::string& bytes = text.bytes();
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const text::Utf8Char c = text::decode_utf8(bytes, at);
    size_t next = at + c.bytes;
    if (ends_line(c.code)) {
      if (c.code == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.push_back(text.part(begin, keeps_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.push_back(text.part(begin, bytes.size()));
  return lines;
}

Value replaced(Run& run, const Text& text, const Text& old, const Text& with, size_t count_max) {
  const std::string& bytes = text.bytes();
  Text out;
  size_t begin = 0;
  run.charge(text.size());
  for (size_t count = 0; count < count_max && run.charge(with.size()); ++count) {
    if (!run.fits(out.size() + with.size())) return {};
    size_t at = bytes.find(old.bytes(), begin + (old.empty() && count > 0 ? 1 : 0));
    if (old.empty() && count > 0 && begin < bytes.size())
      at = begin + text::decode_utf8(bytes, begin).bytes;
    if (at == std::string::npos || at > bytes.size()) break;
    out.append(text, begin, at);
    out.append(with);
    begin = at + old.size();
  }
  out.append(text, begin, text.size());
  return run.text(std::move(out));
}

Value joined(Run& run, const std::vector<Value>& items, const Text& separator) {
  Text out;
  bool first = true;
  for (const Value& item : items) {
    if (!std::exchange(first, false)) out.append(separator);
    out.append(to_text(run, item));
    if (!run.charge() || !run.fits(out.size())) return {};
  }
  return run.text(std::move(out));
}

}  // namespace sluice::jinja
