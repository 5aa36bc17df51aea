#include "text/tokenizer.h"

#include <utility>

#include "text/vocabulary_tokenizer.h"

namespace sluice::text {
namespace {

Status check_token(const Vocabulary& vocabulary, std::string_view name, TokenId token) {
  if (token == kNoToken) return {};
  if (0 <= token && static_cast<size_t>(token) < vocabulary.tokens.size()) return {};
  return make_error(ErrorKind::corrupt, "the vocabulary has {} tokens, but its {} token is {}",
                    vocabulary.tokens.size(), name, token);
}

Status check_vocabulary(const Vocabulary& vocabulary) {
  constexpr size_t kTokensMax = size_t{1} << 30;
  const size_t count = vocabulary.tokens.size();
  if (count > kTokensMax || vocabulary.merges.size() > kTokensMax)
    return make_error(ErrorKind::corrupt, "the vocabulary has {} tokens and {} merges, at most {}",
                      count, vocabulary.merges.size(), kTokensMax);
  if (vocabulary.types.size() != count)
    return make_error(ErrorKind::corrupt, "the vocabulary has {} tokens, but {} token types", count,
                      vocabulary.types.size());
  if (auto status = check_token(vocabulary, "BOS", vocabulary.bos); !status) return status;
  if (auto status = check_token(vocabulary, "EOS", vocabulary.eos); !status) return status;
  return check_token(vocabulary, "EOT", vocabulary.eot);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::make(Vocabulary vocabulary) {
  if (vocabulary.types.empty())
    vocabulary.types.resize(vocabulary.tokens.size(), TokenType::normal);
  if (auto status = check_vocabulary(vocabulary); !status) return status.error();
  return VocabularyTokenizer::make(std::move(vocabulary));
}

std::string Tokenizer::detokenize(std::span<const TokenId> tokens) const {
  std::string text;
  for (const TokenId token : tokens) text += piece(token);
  return text;
}

}  // namespace sluice::text
