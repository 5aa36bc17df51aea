// From the `tokenizer.ggml.*` keys of a file to a vocabulary.
#include "engine/model_files.h"

namespace sluice {
namespace {

/// A token id key; absent is kNoToken, one beyond the vocabulary is an error.
Status read_token(const gguf::GgufFile& file, std::string_view key, size_t token_count,
                  text::TokenId& token) {
  auto value = file.find_uint(key);
  if (!value) return value.error();
  if (!value->has_value()) return {};
  if (**value >= token_count)
    return make_error(ErrorKind::corrupt, "key '{}' is {}, but the vocabulary has {} tokens", key,
                      **value, token_count);
  token = static_cast<text::TokenId>(**value);
  return {};
}

Status read_flag(const gguf::GgufFile& file, std::string_view key, std::optional<bool>& flag) {
  auto value = file.find_bool(key);
  if (!value) return value.error();
  flag = *value;
  return {};
}

Status read_types(const gguf::GgufFile& file, std::vector<text::TokenType>& types) {
  auto values = file.find_uints("tokenizer.ggml.token_type");
  if (!values) return values.error();
  types.reserve(values->size());
  for (const uint64_t value : *values) {
    if (value < 1 || value > 6)
      return make_error(ErrorKind::corrupt, "key 'tokenizer.ggml.token_type' holds {}", value);
    types.push_back(static_cast<text::TokenType>(value));
  }
  return {};
}

Status read_text(const gguf::GgufFile& file, std::string_view key, std::string& text) {
  auto value = file.find_text(key);
  if (!value) return value.error();
  text = value->value_or("");
  return {};
}

}  // namespace

Result<text::Vocabulary> read_vocabulary(const gguf::GgufFile& file) {
  text::Vocabulary vocabulary;
  auto tokens = file.find_texts("tokenizer.ggml.tokens");
  if (!tokens) return tokens.error();
  if (*tokens == nullptr)
    return make_error(ErrorKind::corrupt, "key 'tokenizer.ggml.tokens' is missing");
  vocabulary.tokens = **tokens;
  auto merges = file.find_texts("tokenizer.ggml.merges");
  if (!merges) return merges.error();
  if (*merges != nullptr) vocabulary.merges = **merges;

  auto scores = file.find_floats("tokenizer.ggml.scores");
  if (!scores) return scores.error();
  vocabulary.scores = *std::move(scores);

  const size_t count = vocabulary.tokens.size();
  for (const Status& read :
       {read_text(file, "tokenizer.ggml.model", vocabulary.model),
        read_text(file, "tokenizer.ggml.pre", vocabulary.pre), read_types(file, vocabulary.types),
        read_token(file, "tokenizer.ggml.bos_token_id", count, vocabulary.bos),
        read_token(file, "tokenizer.ggml.eos_token_id", count, vocabulary.eos),
        read_token(file, "tokenizer.ggml.eot_token_id", count, vocabulary.eot),
        read_flag(file, "tokenizer.ggml.add_bos_token", vocabulary.add_bos),
        read_flag(file, "tokenizer.ggml.add_eos_token", vocabulary.add_eos),
        read_flag(file, "tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix)})
    if (!read) return read.error();
  return vocabulary;
}

}  // namespace sluice
