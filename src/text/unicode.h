// What kind of character a code point is, as Unicode's general category says (the version is named
// in text/unicode_tables.cc). Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::text {

/// The order is that of scripts/make_unicode_tables.py.
enum class Category : uint8_t {
  uppercase_letter,       ///< Lu
  lowercase_letter,       ///< Ll
  titlecase_letter,       ///< Lt
  modifier_letter,        ///< Lm
  other_letter,           ///< Lo
  nonspacing_mark,        ///< Mn
  spacing_mark,           ///< Mc
  enclosing_mark,         ///< Me
  decimal_number,         ///< Nd
  letter_number,          ///< Nl
  other_number,           ///< No
  connector_punctuation,  ///< Pc
  dash_punctuation,       ///< Pd
  open_punctuation,       ///< Ps
  close_punctuation,      ///< Pe
  initial_punctuation,    ///< Pi
  final_punctuation,      ///< Pf
  other_punctuation,      ///< Po
  math_symbol,            ///< Sm
  currency_symbol,        ///< Sc
  modifier_symbol,        ///< Sk
  other_symbol,           ///< So
  space_separator,        ///< Zs
  line_separator,         ///< Zl
  paragraph_separator,    ///< Zp
  control,                ///< Cc
  format,                 ///< Cf
  surrogate,              ///< Cs
  private_use,            ///< Co
  unassigned,             ///< Cn
};

Category category(char32_t code);

/// A set of characters that no category describes: sorted, from first to last.
struct CodeRange {
  char32_t first, last;
};
bool is_in(char32_t code, std::span<const CodeRange> ranges);

/// \p{Han}, the script: ideographs, their radicals, and marks of repetition and counting.
bool is_han(char32_t code);

/// \p{L}
constexpr bool is_letter(Category c) {
  return c <= Category::other_letter;
}
/// \p{M}
constexpr bool is_mark(Category c) {
  return Category::nonspacing_mark <= c && c <= Category::enclosing_mark;
}
/// \p{N}
constexpr bool is_number(Category c) {
  return Category::decimal_number <= c && c <= Category::other_number;
}
/// \p{P}
constexpr bool is_punctuation(Category c) {
  return Category::connector_punctuation <= c && c <= Category::other_punctuation;
}
/// \p{S}
constexpr bool is_symbol(Category c) {
  return Category::math_symbol <= c && c <= Category::other_symbol;
}

/// \s, the property White_Space: not quite a set of categories.
constexpr bool is_space(char32_t code) {
  return (0x09 <= code && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (0x2000 <= code && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

/// [\r\n]
constexpr bool is_newline(char32_t code) {
  return code == '\r' || code == '\n';
}

}  // namespace sluice::text
