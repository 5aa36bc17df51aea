// What a model file says about conversations: its template, the names of its own tokens, and how it
// wants to be sampled. Reads the header only; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice {

struct ChatFacts {
  std::string chat_template;  ///< Jinja; empty: the file has none
  std::string bos_token;      ///< as texts; empty: none
  std::string eos_token;
  bool has_chatml = false;  ///< the vocabulary has <|im_start|> and <|im_end|>

  // The keys general.sampling.*; absent where the file does not say.
  std::optional<double> temperature;
  std::optional<uint64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repeat_penalty;
};

Result<ChatFacts> read_chat_facts(const std::string& path);

}  // namespace sluice
