// Cuts text into the words within which BPE merges. The rules are published as regular expressions;
// a backtracking engine needs a stack as deep as a long line and time that grows with its square.
// But the rules differ in little more than which characters belong to what: so here each is a row
// of sets of characters, and one scanner, which looks at each character a bounded number of times,
// serves them all. The one rule that is built otherwise has a scanner of its own.
//
// To add a rule: a row in split_rules.cc, with the names under which `tokenizer.ggml.pre` knows it.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::text {

enum class Normalization : uint8_t { none, nfc };

/// A set of characters, by what the rules ask about them: one bit for each kind. A character has
/// one kind, but with Script::han it may have kScript beside another.
using CharSet = uint16_t;
inline constexpr CharSet kUpper = 1 << 0;     ///< \p{Lu}\p{Lt}
inline constexpr CharSet kLower = 1 << 1;     ///< \p{Ll}
inline constexpr CharSet kUncased = 1 << 2;   ///< \p{Lm}\p{Lo}
inline constexpr CharSet kMark = 1 << 3;      ///< \p{M}
inline constexpr CharSet kNumber = 1 << 4;    ///< \p{N}
inline constexpr CharSet kNewline = 1 << 5;   ///< [\r\n]
inline constexpr CharSet kSpace = 1 << 6;     ///< U+0020
inline constexpr CharSet kBlank = 1 << 7;     ///< the rest of \s
inline constexpr CharSet kSlash = 1 << 8;     ///< /
inline constexpr CharSet kSign = 1 << 9;      ///< the rest of [\p{P}\p{S}]
inline constexpr CharSet kUnnamed = 1 << 10;  ///< none of these: controls, formats, unassigned
inline constexpr CharSet kScript = 1 << 11;   ///< a letter of SplitRule::script

inline constexpr CharSet kLetters = kUpper | kLower | kUncased;
inline constexpr CharSet kWhite = kNewline | kSpace | kBlank;
inline constexpr CharSet kSigns = kSlash | kSign;

/// 's 't 're 've 'm 'll 'd
enum class Contractions : uint8_t {
  none,
  words,             ///< are words, in any case
  lower_case_words,  ///< are words where they are lower case
  endings,           ///< belong to the word before them, in any case
};

/// Letters of these are kScript instead, and their runs are words.
enum class Script : uint8_t { none, han, ideographs_and_kana };

struct SplitRule {
  std::string_view name;  ///< a value of `tokenizer.ggml.pre`
  /// What the model's tokenizer does to the text before.
  Normalization normalization = Normalization::none;
  bool adds_bos = false;  ///< where the file does not say
  /// A word that is a token as a whole is that token, whether or not the merges lead there.
  bool whole_tokens = false;
  Contractions contractions = Contractions::words;
  Script script = Script::none;
  /// What is cut out before the rest of the rule sees the text: numbers, scripts. The rest of the
  /// rule takes it for the end of the text.
  CharSet cut = 0;
  /// A word is one of `prefix` or nothing, then upper* lower+ or else upper+ lower*. Where the two
  /// sets are the same, it is a run of them.
  CharSet prefix = static_cast<CharSet>(~(kLetters | kNumber | kNewline | kScript));
  CharSet upper = kLetters;
  CharSet lower = kLetters;
  CharSet number_prefix = 0;  ///< one of these may precede a number
  uint32_t digits_max = 1;    ///< a number is at most so many characters; 0: any number of them
  /// Signs stand together, with a space before them or not, and take a tail of others with them.
  CharSet signs = kSigns | kMark | kUnnamed;
  CharSet sign_tail = kNewline;
  /// White space up to the last newline in it is a word.
  bool lines_end = true;
  /// A sign of ASCII and the ASCII letters after it are a word.
  bool sign_words = false;
  /// The whole rule, where the above cannot say it.
  size_t (*scan)(std::string_view text, size_t begin) = nullptr;
};

/// nullptr for a name that has no rule.
const SplitRule* find_split_rule(std::string_view name);

/// "qwen2, …": the names there are, for messages.
std::string split_rule_names();

/// Where the word that starts at `begin` ends, past `begin`. REQUIRES: begin < text.size(), and a
/// word starts there.
size_t word_end(const SplitRule& rule, std::string_view text, size_t begin);

}  // namespace sluice::text
