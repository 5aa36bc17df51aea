#include "text/byte_encoder.h"

#include <algorithm>
#include <string>

#include "text/byte_symbols.h"
#include "text/merge_list.h"
#include "text/nfc.h"
#include "text/utf8.h"

namespace sluice::text {

Result<ByteEncoder> ByteEncoder::make(Vocabulary& vocabulary) {
  const SplitRule* rule = find_split_rule(vocabulary.pre);
  if (rule == nullptr)
    return make_error(ErrorKind::unsupported,
                      "tokenizer.ggml.pre '{}' names a split rule that is not supported; "
                      "supported: {}",
                      vocabulary.pre, split_rule_names());
  ByteEncoder encoder(*rule, vocabulary.merges.size());
  if (auto status = encoder.index(vocabulary); !status) return status.error();
  if (!vocabulary.add_bos) vocabulary.add_bos = rule->adds_bos;
  if (!vocabulary.add_eos) vocabulary.add_eos = false;
  vocabulary.add_space_prefix = false;
  return encoder;
}

Status ByteEncoder::index(const Vocabulary& vocabulary) {
  TokenIndex ids;
  ids.reserve(vocabulary.tokens.size());
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i)
    ids.emplace(vocabulary.tokens[i], static_cast<TokenId>(i));
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    const char raw = static_cast<char>(byte);
    byte_tokens_[byte] = find_token(ids, symbols_of_bytes({&raw, 1}));
  }
  if (rule_->whole_tokens) {
    for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
      if (vocabulary.types[i] != TokenType::normal) continue;
      std::string bytes;
      append_piece(vocabulary.tokens[i], bytes);
      whole_tokens_.emplace(std::move(bytes), static_cast<TokenId>(i));
    }
  }
  return add_merges(vocabulary.merges, ids, merges_);
}

void ByteEncoder::append_tokens(std::string_view text, WordMerger& merger,
                                std::vector<TokenId>& out) const {
  std::string repaired;
  std::string normalized;
  text = repair_utf8(text, repaired);
  if (rule_->normalization == Normalization::nfc) text = to_nfc(text, normalized);
  for (size_t at = 0; at < text.size();) {
    const size_t end = word_end(*rule_, text, at);
    append_word(text.substr(at, end - at), merger, out);
    at = end;
  }
}

void ByteEncoder::append_word(std::string_view word, WordMerger& merger,
                              std::vector<TokenId>& out) const {
  if (const auto whole = whole_tokens_.find(word); whole != whole_tokens_.end()) {
    out.push_back(whole->second);
    return;
  }
  for (const char byte : word) {
    // A byte without a token of its own gives none, as in the reference.
    const TokenId token = byte_tokens_[static_cast<uint8_t>(byte)];
    if (token == kNoToken) continue;
    if (merger.is_full()) merger.end_word(out);
    merger.add(token);
  }
  merger.end_word(out);
}

void ByteEncoder::append_piece(std::string_view token, std::string& bytes) {
  append_bytes_of_symbols(token, bytes);
}

}  // namespace sluice::text
