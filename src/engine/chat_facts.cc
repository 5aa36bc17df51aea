#include "engine/chat_facts.h"

#include <algorithm>

#include "engine/model_files.h"

namespace sluice {
namespace {

/// What a key holds, where it is there; an error of its type otherwise.
template <typename T>
Status keep(Result<std::optional<T>> value, std::optional<T>& kept) {
  if (!value) return value.error();
  kept = *std::move(value);
  return {};
}

Status read_sampling(const gguf::GgufFile& file, ChatFacts& facts) {
  for (const Status& read :
       {keep(file.find_float("general.sampling.temp"), facts.temperature),
        keep(file.find_uint("general.sampling.top_k"), facts.top_k),
        keep(file.find_float("general.sampling.top_p"), facts.top_p),
        keep(file.find_float("general.sampling.min_p"), facts.min_p),
        keep(file.find_float("general.sampling.penalty_repeat"), facts.repeat_penalty)})
    if (!read) return read.error();
  return {};
}

}  // namespace

Result<ChatFacts> read_chat_facts(const std::string& path) {
  const auto file = gguf::GgufFile::open(path);
  if (!file) return file.error();
  ChatFacts facts;
  std::optional<std::string> chat_template;
  for (const Status& read : {keep(file->find_text("tokenizer.chat_template"), chat_template),
                             read_sampling(*file, facts)})
    if (!read) return read.error().at(path);
  facts.chat_template = chat_template.value_or("");

  const auto vocabulary = read_vocabulary(*file);
  if (!vocabulary) return vocabulary.error().at(path);
  const auto name = [&](text::TokenId token) {
    return token == text::kNoToken ? "" : vocabulary->tokens[static_cast<size_t>(token)];
  };
  facts.bos_token = name(vocabulary->bos);
  facts.eos_token = name(vocabulary->eos);
  const auto has = [&](std::string_view token) {
    return std::ranges::find(vocabulary->tokens, token) != vocabulary->tokens.end();
  };
  facts.has_chatml = has("<|im_start|>") && has("<|im_end|>");
  return facts;
}

}  // namespace sluice
