#include "jinja/literals.h"

#include <charconv>

#include "text/utf8.h"

namespace sluice::jinja {
namespace {

int digit_of(char c) {
  if ('0' <= c && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return 'a' <= lower && lower <= 'z' ? lower - 'a' + 10 : 99;
}

size_t digits_end(std::string_view text, size_t at, int base) {
  while (at < text.size() && (digit_of(text[at]) < base || text[at] == '_')) ++at;
  return at;
}

int base_of(char letter) {
  switch (letter | 0x20) {
    case 'x':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return 0;
  }
}

/// \xhh, \uhhhh and \Uhhhhhhhh: how many digits follow.
size_t escape_digits(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

/// The text of a coded character at `at`, the letter of its escape; false when it is not one.
bool append_coded(std::string_view literal, size_t& at, std::string& text) {
  const size_t digits = escape_digits(literal[at]);
  if (digits == 0 || literal.size() - at - 1 < digits) return false;
  const auto code = parse_integer(literal.substr(at + 1, digits), 16);
  if (!code || *code < 0 || *code > 0x10ffff) return false;
  text::append_utf8(static_cast<char32_t>(*code), text);
  at += digits;
  return true;
}

/// One to three octal digits at `at`.
void append_octal(std::string_view literal, size_t& at, std::string& text) {
  char32_t code = 0;
  const size_t end = std::min(at + 3, literal.size());
  while (at < end && '0' <= literal[at] && literal[at] <= '7')
    code = code * 8 + static_cast<char32_t>(literal[at++] - '0');
  --at;
  text::append_utf8(code, text);
}

}  // namespace

NumberShape number_shape(std::string_view text) {
  if (text.size() > 2 && text[0] == '0')
    if (const int base = base_of(text[1]); base != 0 && digit_of(text[2]) < base)
      return {digits_end(text, 2, base), false};
  size_t end = digits_end(text, 0, 10);
  bool is_real = false;
  if (end + 1 < text.size() && text[end] == '.' && digit_of(text[end + 1]) < 10) {
    end = digits_end(text, end + 1, 10);
    is_real = true;
  }
  if (end < text.size() && (text[end] | 0x20) == 'e') {
    size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '-' || text[digits] == '+')) ++digits;
    if (digits < text.size() && digit_of(text[digits]) < 10)
      return {digits_end(text, digits, 10), true};
  }
  return {end, is_real};
}

std::optional<int64_t> parse_integer(std::string_view digits, int base) {
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.size() > 2 && digits[0] == '0' && base_of(digits[1]) == base) digits.remove_prefix(2);
  if (digits.empty() || digit_of(digits[0]) >= base) return {};
  std::string signed_digits(digits);
  if (negative) signed_digits.insert(signed_digits.begin(), '-');
  int64_t number = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto parsed = std::from_chars(signed_digits.data(), end, number, base);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return number;
}

std::optional<double> parse_real(std::string_view digits) {
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return number;
}

std::string unescape(std::string_view literal) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  std::string text;
  for (size_t at = 0; at < literal.size(); ++at) {
    if (literal[at] != '\\' || at + 1 == literal.size()) {
      text += literal[at];
      continue;
    }
    const char letter = literal[++at];
    if (const size_t known = kLetters.find(letter); known != std::string_view::npos)
      text += kMeanings[known];
    else if ('0' <= letter && letter <= '7')
      append_octal(literal, at, text);
    else if (letter != '\n' && !append_coded(literal, at, text))
      (text += '\\') += letter;
  }
  return text;
}

}  // namespace sluice::jinja
