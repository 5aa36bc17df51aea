// Cuts text into the words within which BPE merges. The rules are published as regular expressions;
// here each is a small hand-written scanner, because a backtracking engine needs a stack as deep as
// a long line and time that grows with its square. A rule is one function: where does the word that
// starts here end? Every one looks at each character a bounded number of times.
//
// To add a rule: write its function in splitter.cc and give it a row, with the names under which
// `tokenizer.ggml.pre` knows it. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::text {

enum class Normalization { none, nfc };

struct SplitRule {
  std::string_view name;  ///< a value of `tokenizer.ggml.pre`
  /// Where the word that starts at `begin` ends, past `begin`. REQUIRES: begin < text.size()
  size_t (*word_end)(std::string_view text, size_t begin);
  Normalization normalization;  ///< what the model's tokenizer does to the text before
};

/// nullptr for a name that has no rule yet.
const SplitRule* find_split_rule(std::string_view name);

/// "qwen2, …": the names there are, for messages.
std::string split_rule_names();

}  // namespace sluice::text
