#include "text/end_of_generation.h"

#include <algorithm>

namespace sluice::text {
namespace {

constexpr std::string_view kKnownEnds[] = {
    // The end of a text.
    "<|endoftext|>", "<|end_of_text|>", "</s>", "[EOS]", "<eos>", "<｜end▁of▁sentence｜>",
    // The end of a turn or a message.
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<end_of_utterance>", "<EOT>",
    "_<EOT>", "[EOT]", "[e~[", "<turn|>", "<|tool_response>", "<|end|>", "<|return|>", "<|call|>",
    "<|calls|>", "<|flush|>",
    // What lies between the pieces of training data: padding, file and repository marks.
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>",
    "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"};

bool is_known_end(std::string_view text) {
  return std::ranges::find(kKnownEnds, text) != std::end(kKnownEnds);
}

/// What is in the list, but ends nothing beside certain others.
std::vector<std::string_view> harmless_ends(const Vocabulary& vocabulary) {
  const auto has = [&](std::string_view text) {
    return std::ranges::find(vocabulary.tokens, text) != vocabulary.tokens.end();
  };
  std::vector<std::string_view> harmless;
  // gpt-oss closes each message of an answer with <|end|>, the answer with one of these.
  if (has("<|return|>") && has("<|call|>")) harmless.push_back("<|end|>");
  // Gemma 4 knows it as a tag of the text.
  if (has("<|tool_response>")) harmless.push_back("</s>");
  return harmless;
}

}  // namespace

std::vector<bool> ends_of_generation(const Vocabulary& vocabulary) {
  const std::vector<std::string_view> harmless = harmless_ends(vocabulary);
  std::vector<bool> ends(vocabulary.tokens.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    const std::string_view text = vocabulary.tokens[i];
    ends[i] = is_known_end(text) && std::ranges::find(harmless, text) == harmless.end();
  }
  for (const TokenId token : {vocabulary.eos, vocabulary.eot})
    if (token != kNoToken) ends[static_cast<size_t>(token)] = true;
  return ends;
}

}  // namespace sluice::text
