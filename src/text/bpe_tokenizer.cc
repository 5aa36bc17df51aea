#include "text/bpe_tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "text/byte_symbols.h"
#include "text/end_of_generation.h"
#include "text/nfc.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

/// Longer words are cut, so that the memory for merging is bounded (about 600 MB). No vocabulary
/// has a token that long, so a cut shows, if at all, in the tokens on both sides of it.
constexpr size_t kWordBytesMax = size_t{16} << 20;

/// "left right": the parts are written without spaces, but a lone space may be the left one.
struct MergeParts {
  std::string_view left, right;
};
MergeParts split_merge(std::string_view merge) {
  const size_t space = std::min(merge.find(' ', 1), merge.size());
  return {merge.substr(0, space), merge.substr(std::min(space + 1, merge.size()))};
}

}  // namespace

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, const SplitRule& rule)
    : vocabulary_(std::move(vocabulary)), rule_(rule), merges_(vocabulary_.merges.size()) {}

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::make(Vocabulary vocabulary) {
  const SplitRule* rule = find_split_rule(vocabulary.pre);
  if (rule == nullptr)
    return make_error(ErrorKind::unsupported,
                      "tokenizer.ggml.pre '{}' names a split rule that is not supported; "
                      "supported: {}",
                      vocabulary.pre, split_rule_names());
  auto tokenizer = std::unique_ptr<BpeTokenizer>(new BpeTokenizer(std::move(vocabulary), *rule));
  if (auto status = tokenizer->index_tokens_and_merges(); !status) return status.error();
  tokenizer->decode_pieces();
  tokenizer->collect_special_tokens();
  tokenizer->ends_generation_ = ends_of_generation(tokenizer->vocabulary_);
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

Status BpeTokenizer::index_tokens_and_merges() {
  std::unordered_map<std::string_view, TokenId> ids;
  ids.reserve(token_count());
  for (size_t i = 0; i < token_count(); ++i)
    ids.emplace(vocabulary_.tokens[i], static_cast<TokenId>(i));
  const auto id_of = [&](std::string_view text) {
    const auto found = ids.find(text);
    return found == ids.end() ? kNoToken : found->second;
  };

  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    const char raw = static_cast<char>(byte);
    byte_tokens_[byte] = id_of(symbols_of_bytes({&raw, 1}));
  }
  for (size_t rank = 0; rank < vocabulary_.merges.size(); ++rank) {
    const auto [left, right] = split_merge(vocabulary_.merges[rank]);
    const TokenId left_id = id_of(left);
    const TokenId right_id = id_of(right);
    if (left_id == kNoToken || right_id == kNoToken)
      return make_error(ErrorKind::corrupt, "merge {} of the vocabulary ('{}'): '{}' is no token",
                        rank, vocabulary_.merges[rank], left_id == kNoToken ? left : right);
    // A merge into something that has no id could not be written down; vocabularies cut short for
    // tests have such.
    const TokenId merged = id_of(std::string(left) + std::string(right));
    if (merged != kNoToken) merges_.add(left_id, right_id, {static_cast<Rank>(rank), merged});
  }
  std::vector<std::string>().swap(vocabulary_.merges);
  return {};
}

void BpeTokenizer::decode_pieces() {
  piece_begins_.reserve(token_count() + 1);
  for (size_t i = 0; i < token_count(); ++i) {
    piece_begins_.push_back(pieces_.size());
    switch (vocabulary_.types[i]) {
      case TokenType::unused:  // the name of a gap in the ids, not text
        break;
      case TokenType::normal:
      case TokenType::byte:
        append_bytes_of_symbols(vocabulary_.tokens[i], pieces_);
        break;
      default:  // special tokens are written as they are
        pieces_ += vocabulary_.tokens[i];
    }
  }
  piece_begins_.push_back(pieces_.size());
  pieces_.shrink_to_fit();
}

void BpeTokenizer::collect_special_tokens() {
  std::vector<SpecialTokens::Entry> always;
  std::vector<SpecialTokens::Entry> with_control;
  for (TokenId token = 0; has(token); ++token) {
    const std::string_view text = vocabulary_.tokens[static_cast<size_t>(token)];
    const bool user_defined = type(token) == TokenType::user_defined;
    const bool control = type(token) == TokenType::control || type(token) == TokenType::unknown;
    if (text.empty() || !(user_defined || control)) continue;
    if (user_defined) always.push_back({text, token});
    with_control.push_back({text, token});
  }
  always_ = SpecialTokens(std::move(always));
  with_control_ = SpecialTokens(std::move(with_control));
}

std::vector<TokenId> BpeTokenizer::tokenize(std::string_view text,
                                            const TokenizeOptions& options) const {
  const SpecialTokens& special = options.parse_special ? with_control_ : always_;
  WordMerger merger(byte_tokens_, merges_);
  std::vector<TokenId> out;
  out.reserve(text.size() / 4 + 2);
  for (size_t at = 0; at < text.size();) {
    const SpecialTokens::Match match = special.find(text, at);
    append_words(text.substr(at, match.begin - at), merger, out);
    if (match.token != kNoToken) out.push_back(match.token);
    at = match.end;
  }
  if (!options.add_special) return out;
  const TokenId bos = vocabulary_.add_bos ? vocabulary_.bos : kNoToken;
  const TokenId eos = vocabulary_.add_eos ? vocabulary_.eos : kNoToken;
  if (bos != kNoToken && (out.empty() || out.front() != bos)) out.insert(out.begin(), bos);
  if (eos != kNoToken && (out.empty() || out.back() != eos)) out.push_back(eos);
  return out;
}

void BpeTokenizer::append_words(std::string_view text, WordMerger& merger,
                                std::vector<TokenId>& out) const {
  std::string repaired;
  std::string normalized;
  text = repair_utf8(text, repaired);
  if (rule_.normalization == Normalization::nfc) text = to_nfc(text, normalized);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(word_end(rule_, text, at), at + kWordBytesMax);
    merger.append_tokens(text.substr(at, end - at), out);
    at = end;
  }
}

std::string_view BpeTokenizer::piece(TokenId token) const {
  if (!has(token)) return {};
  const size_t begin = piece_begins_[static_cast<size_t>(token)];
  const size_t end = piece_begins_[static_cast<size_t>(token) + 1];
  return std::string_view(pieces_).substr(begin, end - begin);
}

bool BpeTokenizer::is_control(TokenId token) const {
  return has(token) && type(token) == TokenType::control;
}

bool BpeTokenizer::is_end_of_generation(TokenId token) const {
  return has(token) && ends_generation_[static_cast<size_t>(token)];
}

}  // namespace sluice::text
