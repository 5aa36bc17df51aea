#include "text/split_deepseek_llm.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// Letters that have a case, as the rule spells them out: an older Unicode's, and not all of them.
constexpr CodeRange kCased[] = {
    {0x41, 0x5a},       {0x61, 0x7a},       {0xb5, 0xb5},       {0xc0, 0xd6},
    {0xd8, 0xf6},       {0xf8, 0x1ba},      {0x1bc, 0x1bf},     {0x1c4, 0x293},
    {0x295, 0x2af},     {0x370, 0x373},     {0x376, 0x377},     {0x37b, 0x37d},
    {0x37f, 0x37f},     {0x386, 0x386},     {0x388, 0x38a},     {0x38c, 0x38c},
    {0x38e, 0x3a1},     {0x3a3, 0x3f5},     {0x3f7, 0x481},     {0x48a, 0x52f},
    {0x531, 0x556},     {0x10a0, 0x10c5},   {0x13a0, 0x13f5},   {0x13f8, 0x13fd},
    {0x1c90, 0x1cba},   {0x1cbd, 0x1cbf},   {0x1d00, 0x1d2b},   {0x1d6b, 0x1d77},
    {0x1d79, 0x1d9a},   {0x1e00, 0x1f15},   {0x1f18, 0x1f1d},   {0x1f20, 0x1f45},
    {0x1f48, 0x1f4d},   {0x1f50, 0x1f57},   {0x1f59, 0x1f59},   {0x1f5b, 0x1f5b},
    {0x1f5d, 0x1f5d},   {0x1f5f, 0x1f7d},   {0x1f80, 0x1fb4},   {0x1fb6, 0x1fbc},
    {0x1fbe, 0x1fbe},   {0x1fc2, 0x1fc4},   {0x1fc6, 0x1fcc},   {0x1fd0, 0x1fd3},
    {0x1fd6, 0x1fdb},   {0x1fe0, 0x1fec},   {0x1ff2, 0x1ff4},   {0x1ff6, 0x1ffc},
    {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210a, 0x2113},   {0x2115, 0x2115},
    {0x2119, 0x211d},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
    {0x212a, 0x212d},   {0x212f, 0x2134},   {0x2139, 0x2139},   {0x213c, 0x213f},
    {0x2145, 0x2149},   {0x214e, 0x214e},   {0x2183, 0x2184},   {0x2c00, 0x2c7b},
    {0x2c7e, 0x2ce4},   {0x2ceb, 0x2cee},   {0x2cf2, 0x2cf3},   {0xa640, 0xa66d},
    {0xa680, 0xa69b},   {0xa722, 0xa76f},   {0xa771, 0xa787},   {0xa78b, 0xa78e},
    {0xab70, 0xabbf},   {0xfb00, 0xfb06},   {0xfb13, 0xfb17},   {0xff21, 0xff3a},
    {0xff41, 0xff5a},   {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb},
    {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943}};
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
