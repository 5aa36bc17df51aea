#include "text/split_deepseek_llm.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// The published rule lists the cased letters of all alphabets. The reference's answers show only
// those of ASCII taken, so this follows them; é stays with the pieces of the later passes.
constexpr CodeRange kCased[] = {{'A', 'Z'}, {'a', 'z'}};
constexpr CodeRange kSigns[] = {{0x21, 0x2f},     {0x3a, 0x7e},     {0x2018, 0x201f},
                                {0x3000, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
// Far more than ideographs: everything from Samaritan to the first ideograph, white space too.
constexpr CodeRange kIdeographs[] = {{0x800, 0x9fa5}, {0xac00, 0xd7ff}};

/// Which pass takes a character; the last two are what is left for the later passes and for none.
enum class Kind : uint8_t { newline, cased, sign, ideograph, number, other };

Kind kind_of(char32_t code) {
  if (is_newline(code)) return Kind::newline;
  if (is_in(code, kCased)) return Kind::cased;
  if (is_in(code, kSigns)) return Kind::sign;
  if (is_in(code, kIdeographs)) return Kind::ideograph;
  return is_number(category(code)) ? Kind::number : Kind::other;
}

struct Character {
  char32_t code;
  Kind kind;
  size_t end;

  /// Taken by one of the first three passes.
  bool early() const { return kind <= Kind::sign; }
};

Character character_at(std::string_view text, size_t at) {
  const Utf8Char c = decode_utf8(text, at);
  return {c.code, kind_of(c.code), at + c.bytes};
}

bool is_at(std::string_view text, size_t at, Kind kind) {
  return at < text.size() && character_at(text, at).kind == kind;
}

/// Whether a character goes with the letters or signs after it. U+3000 is a sign itself.
bool leads(std::string_view text, const Character& c) {
  if (!is_space(c.code) || c.kind == Kind::newline) return false;
  return is_at(text, c.end, Kind::cased) ||
         (c.kind != Kind::sign && is_at(text, c.end, Kind::sign));
}

size_t cased_end(std::string_view text, size_t at) {
  while (is_at(text, at, Kind::cased)) at = character_at(text, at).end;
  return at;
}

size_t signs_end(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != Kind::sign || leads(text, next)) break;
    at = next.end;
  }
  return at;
}

/// Whether what the first three passes leave in one piece ends here.
bool piece_ends(std::string_view text, size_t at) {
  if (at == text.size()) return true;
  const Character next = character_at(text, at);
  return next.early() || leads(text, next);
}

/// Where the white space of a piece ends.
size_t white_end(std::string_view text, size_t at) {
  while (!piece_ends(text, at)) {
    const Character next = character_at(text, at);
    if (!is_space(next.code)) break;
    at = next.end;
  }
  return at;
}

/// A word of the last three passes, or between them. White space at the end of the piece is one.
size_t piece_word_end(std::string_view text, size_t begin, Kind kind) {
  bool after_white = false;
  for (size_t at = begin;;) {
    if (piece_ends(text, at)) return at;
    const Character next = character_at(text, at);
    const bool white = is_space(next.code);
    if (white && !after_white)
      if (const size_t end = white_end(text, at); piece_ends(text, end))
        return at == begin ? end : at;
    if (next.kind != kind) return at;
    after_white = white;
    at = next.end;
  }
}

}  // namespace

size_t deepseek_llm_word_end(std::string_view text, size_t begin) {
  const Character first = character_at(text, begin);
  if (first.kind == Kind::newline) return first.end;
  if (first.kind == Kind::cased) return cased_end(text, begin);
  if (leads(text, first)) {
    const size_t end = cased_end(text, first.end);
    return end != first.end ? end : signs_end(text, first.end);
  }
  if (first.kind == Kind::sign) return signs_end(text, begin);
  return piece_word_end(text, begin, first.kind);
}

}  // namespace sluice::text
