#include "text/splitter.h"

#include <array>

#include "text/unicode.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr CodeRange kIdeographsAndKana[] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}};

/// REQUIRES: beyond ASCII
CharSet kind_of(char32_t code) {
  if (is_space(code)) return kBlank;
  const Category c = category(code);
  if (c == Category::lowercase_letter) return kLower;
  if (c == Category::uppercase_letter || c == Category::titlecase_letter) return kUpper;
  if (is_letter(c)) return kUncased;
  if (is_mark(c)) return kMark;
  if (is_number(c)) return kNumber;
  return is_punctuation(c) || is_symbol(c) ? kSign : kUnnamed;
}

constexpr bool is_ascii_letter(char32_t code) {
  return 'a' <= (code | 0x20) && (code | 0x20) <= 'z';
}

constexpr CharSet kind_of_ascii(char32_t code) {
  if (is_newline(code)) return kNewline;
  if (is_space(code)) return code == ' ' ? kSpace : kBlank;
  if (code < 0x20 || code == 0x7f) return kUnnamed;
  if (is_ascii_letter(code)) return (code & 0x20) != 0 ? kLower : kUpper;
  if ('0' <= code && code <= '9') return kNumber;
  return code == '/' ? kSlash : kSign;
}

constexpr auto kAsciiKinds = [] {
  std::array<CharSet, 128> kinds{};
  for (char32_t code = 0; code < kinds.size(); ++code) kinds[code] = kind_of_ascii(code);
  return kinds;
}();

CharSet kind_of(char32_t code, Script script) {
  const CharSet kind = kind_of(code);
  switch (script) {
    case Script::none:
      return kind;
    case Script::ideographs_and_kana:
      return is_in(code, kIdeographsAndKana) ? kScript : kind;
    case Script::han:  // its signs and numbers may also be part of others' runs
      if (!is_han(code)) return kind;
      return static_cast<CharSet>(kScript | (kind & ~kLetters));
  }
  return kind;
}

struct Character {
  char32_t code;
  CharSet kind;
  size_t end;  ///< where the next one starts

  bool is(CharSet set) const { return (kind & set) != 0; }
};

/// Lower case as `(?i:)` compares: of the letters in question only s has a third form, ſ.
constexpr char32_t fold(char32_t code) {
  if (code == 0x17f) return 's';
  return 'A' <= code && code <= 'Z' ? code | 0x20 : code;
}

/// One word of a text. Each member is a part of the expression, tried at a place: where it ends, or
/// that place itself when it does not match there.
class WordScan {
 public:
  WordScan(const SplitRule& rule, std::string_view text) : rule_(rule), text_(text) {}

  size_t word_end(size_t begin) const;

 private:
  /// REQUIRES: at < text.size()
  Character character_at(size_t at) const {
    const auto lead = static_cast<uint8_t>(text_[at]);
    if (lead < 128) return {lead, kAsciiKinds[lead], at + 1};
    const Utf8Char c = decode_utf8(text_, at);
    return {c.code, kind_of(c.code, rule_.script), at + c.bytes};
  }
  bool is_at(size_t at, CharSet set) const { return at < text_.size() && character_at(at).is(set); }

  size_t run_end(size_t at, CharSet set) const;
  size_t number_end(size_t at) const;
  size_t contraction_end(size_t at) const;
  size_t letters_end(size_t begin, const Character& first) const;
  size_t cased_end(size_t at) const;
  size_t sign_word_end(size_t begin, const Character& first) const;
  size_t signs_end(size_t begin, const Character& first) const;
  size_t white_end(size_t begin) const;
  size_t unmatched_end(size_t at) const;

  const SplitRule& rule_;
  std::string_view text_;
};

size_t WordScan::run_end(size_t at, CharSet set) const {
  while (at < text_.size()) {
    const Character next = character_at(at);
    if (!next.is(set)) break;
    at = next.end;
  }
  return at;
}

/// \p{N}{1,digits_max}
size_t WordScan::number_end(size_t at) const {
  if (rule_.digits_max == 0) return run_end(at, kNumber);
  for (uint32_t digits = 0; digits < rule_.digits_max && at < text_.size(); ++digits) {
    const Character next = character_at(at);
    if (!next.is(kNumber)) break;
    at = next.end;
  }
  return at;
}

/// '(s|t|re|ve|m|ll|d)
size_t WordScan::contraction_end(size_t at) const {
  const bool any_case = rule_.contractions != Contractions::lower_case_words;
  const auto letter_at = [&](size_t place) -> char32_t {
    if (place >= text_.size()) return 0;
    const char32_t code = character_at(place).code;
    return any_case ? fold(code) : code;
  };
  if (at >= text_.size() || text_[at] != '\'') return at;
  const char32_t first = letter_at(at + 1);
  const size_t first_end = first == 0 ? at : character_at(at + 1).end;
  switch (first) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return first_end;
    case 'r':
    case 'v':
      return letter_at(first_end) == 'e' ? first_end + 1 : at;
    case 'l':
      return letter_at(first_end) == 'l' ? first_end + 1 : at;
    default:
      return at;
  }
}

/// upper* lower+, or else upper+. Greedy, so `upper` takes all it can and gives back no more than
/// `lower` needs: to the last character of its run that is in both, if none of `lower` follows.
/// What it gives back to is all that is looked at again, and only by the next word.
size_t WordScan::cased_end(size_t at) const {
  size_t end = at;
  size_t shared_end = at;
  while (end < text_.size()) {
    const Character next = character_at(end);
    if (!next.is(rule_.upper)) break;
    end = next.end;
    if (next.is(rule_.lower)) shared_end = end;
  }
  const size_t lower_end = run_end(end, rule_.lower);
  return lower_end != end ? lower_end : shared_end;
}

/// prefix? upper* lower+ | prefix? upper+ lower*, and an ending. As an expression tries them: with
/// the prefix first, but upper case alone only when neither form has a lower case.
size_t WordScan::letters_end(size_t begin, const Character& first) const {
  const bool in_word = first.is(rule_.upper | rule_.lower);
  const bool is_prefix = first.is(rule_.prefix);
  const auto attempt = [&](auto&& part) {
    if (is_prefix)
      if (const size_t end = part(first.end); end != first.end) return end;
    return in_word ? part(begin) : begin;
  };
  size_t end = attempt([this](size_t at) { return cased_end(at); });
  if (end == begin && rule_.upper != rule_.lower)
    end = attempt([this](size_t at) { return run_end(at, rule_.upper); });
  if (end == begin || rule_.contractions != Contractions::endings) return end;
  return contraction_end(end);
}

/// [!-/:-@[-`{-~][A-Za-z]+
size_t WordScan::sign_word_end(size_t begin, const Character& first) const {
  if (first.code >= 128 || !first.is(kSigns)) return begin;
  size_t end = first.end;
  while (end < text_.size() && is_ascii_letter(static_cast<uint8_t>(text_[end]))) ++end;
  return end == first.end ? begin : end;
}

/// " "? signs+ tail*
size_t WordScan::signs_end(size_t begin, const Character& first) const {
  const size_t at = first.is(kSpace) ? first.end : begin;
  const size_t end = run_end(at, rule_.signs);
  return end == at ? begin : run_end(end, rule_.sign_tail);
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+` at white space: up to the last newline of the run; without one, all
/// of the run but the character before a word (a space goes with its word), at least one.
size_t WordScan::white_end(size_t begin) const {
  size_t end = begin;
  size_t last = begin;  // where the last character of the run starts
  size_t newline_end = begin;
  while (end < text_.size()) {
    const Character next = character_at(end);
    if (!next.is(kWhite)) break;
    last = end;
    end = next.end;
    if (next.is(kNewline)) newline_end = end;
  }
  if (rule_.lines_end && newline_end != begin) return newline_end;
  const bool nothing_follows = end == text_.size() || is_at(end, rule_.cut);
  return nothing_follows || last == begin ? end : last;
}

/// What no part of the rule matches stays together, up to where one does.
size_t WordScan::unmatched_end(size_t at) const {
  while (at < text_.size()) {
    const Character next = character_at(at);
    if (!next.is(kUnnamed) || is_at(next.end, rule_.upper | rule_.lower)) break;
    at = next.end;
  }
  return at;
}

size_t WordScan::word_end(size_t begin) const {
  const Character first = character_at(begin);
  if (first.is(kScript)) return run_end(begin, kScript);
  if (first.code == '\'' && rule_.contractions != Contractions::endings &&
      rule_.contractions != Contractions::none)
    if (const size_t end = contraction_end(begin); end != begin) return end;
  if (rule_.sign_words)
    if (const size_t end = sign_word_end(begin, first); end != begin) return end;
  if (const size_t end = letters_end(begin, first); end != begin) return end;
  if (first.is(kNumber)) return number_end(begin);
  if (first.is(rule_.number_prefix))
    if (const size_t end = number_end(first.end); end != first.end) return end;
  if (const size_t end = signs_end(begin, first); end != begin) return end;
  return first.is(kWhite) ? white_end(begin) : unmatched_end(first.end);
}

}  // namespace

size_t word_end(const SplitRule& rule, std::string_view text, size_t begin) {
  return rule.scan != nullptr ? rule.scan(text, begin) : WordScan(rule, text).word_end(begin);
}

}  // namespace sluice::text
