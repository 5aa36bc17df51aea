#include "text/splitter.h"

#include <array>

#include "text/unicode.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

/// What the rules ask about a character. Newlines are spaces too, but the rules tell them apart.
enum class Kind : uint8_t { letter, number, newline, space, other };

Kind classify(char32_t code) {
  if (is_newline(code)) return Kind::newline;
  if (is_space(code)) return Kind::space;
  const Category c = category(code);
  if (is_letter(c)) return Kind::letter;
  return is_number(c) ? Kind::number : Kind::other;
}

constexpr Kind classify_ascii(char32_t code) {
  if (is_newline(code)) return Kind::newline;
  if (is_space(code)) return Kind::space;
  if ('0' <= code && code <= '9') return Kind::number;
  const char32_t lower = code | 0x20;
  return 'a' <= lower && lower <= 'z' ? Kind::letter : Kind::other;
}

constexpr auto kAsciiKinds = [] {
  std::array<Kind, 128> kinds{};
  for (char32_t code = 0; code < kinds.size(); ++code) kinds[code] = classify_ascii(code);
  return kinds;
}();

struct Character {
  char32_t code;
  Kind kind;
  size_t end;  ///< where the next one starts
};

/// REQUIRES: at < text.size()
Character character_at(std::string_view text, size_t at) {
  const Utf8Char c = decode_utf8(text, at);
  return {c.code, c.code < 128 ? kAsciiKinds[c.code] : classify(c.code), at + c.bytes};
}

/// Where the run of one kind that starts at `at` ends; `at` itself when there is none.
size_t run_end(std::string_view text, size_t at, Kind kind) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at = next.end;
  }
  return at;
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+` at white space: up to the last newline of the run; without one, all
/// of the run but the character before a word (a space goes with its word), at least one.
size_t space_end(std::string_view text, size_t begin) {
  size_t end = begin;
  size_t last = begin;  // where the last character of the run starts
  size_t newline_end = begin;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != Kind::space && next.kind != Kind::newline) break;
    last = end;
    end = next.end;
    if (next.kind == Kind::newline) newline_end = end;
  }
  if (newline_end != begin) return newline_end;
  return end == text.size() || last == begin ? end : last;
}

/// Lower case as `(?i:)` compares: of the letters in question only s has a third form, ſ.
constexpr char32_t fold(char32_t code) {
  if (code == 0x17f) return 's';
  return 'A' <= code && code <= 'Z' ? code | 0x20 : code;
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)` after the apostrophe; `at` itself when it is none of them.
size_t contraction_end(std::string_view text, size_t at) {
  if (at == text.size()) return at;
  const Character first = character_at(text, at);
  switch (fold(first.code)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return first.end;
    case 'r':
    case 'v':
    case 'l':
      break;
    default:
      return at;
  }
  if (first.end == text.size()) return at;
  const char32_t wanted = fold(first.code) == 'l' ? 'l' : 'e';
  const Character second = character_at(text, first.end);
  return fold(second.code) == wanted ? second.end : at;
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*
/// |\s*[\r\n]+|\s+(?!\S)|\s+
size_t qwen2_word_end(std::string_view text, size_t begin) {
  const Character first = character_at(text, begin);
  if (first.kind == Kind::letter) return run_end(text, first.end, Kind::letter);
  if (first.kind == Kind::number) return first.end;
  if (first.kind == Kind::newline) return space_end(text, begin);
  if (first.code == '\'') {
    const size_t end = contraction_end(text, first.end);
    if (end != first.end) return end;
  }
  if (const size_t end = run_end(text, first.end, Kind::letter); end != first.end) return end;
  const size_t signs = first.code == ' ' ? first.end : begin;
  const size_t signs_end = run_end(text, signs, Kind::other);
  if (signs_end != signs) return run_end(text, signs_end, Kind::newline);
  return space_end(text, begin);
}

constexpr SplitRule kRules[] = {
    {"qwen2", qwen2_word_end, Normalization::nfc},
    {"deepseek-r1-qwen", qwen2_word_end, Normalization::nfc},
    {"hunyuan", qwen2_word_end, Normalization::none},
};

}  // namespace

const SplitRule* find_split_rule(std::string_view name) {
  for (const SplitRule& rule : kRules)
    if (rule.name == name) return &rule;
  return nullptr;
}

std::string split_rule_names() {
  std::string names;
  for (const SplitRule& rule : kRules) {
    if (!names.empty()) names += ", ";
    names += rule.name;
  }
  return names;
}

}  // namespace sluice::text
