#include "text/vocabulary_tokenizer.h"

#include <algorithm>
#include <utility>

#include "text/end_of_generation.h"

namespace sluice::text {
namespace {

bool reaches_into(const SpecialTokens::Match& match, std::span<const ByteRange> ranges) {
  const auto ends_before = [&](const ByteRange& range) { return range.end <= match.begin; };
  const auto range = std::ranges::partition_point(ranges, ends_before);
  return range != ranges.end() && range->begin < match.end;
}

}  // namespace

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, Encoder encoder)
    : vocabulary_(std::move(vocabulary)), encoder_(std::move(encoder)) {}

Result<std::unique_ptr<Tokenizer>> VocabularyTokenizer::make(Vocabulary vocabulary) {
  const auto wrap = [&](auto encoder) -> Result<std::unique_ptr<Tokenizer>> {
    if (!encoder) return encoder.error();
    std::vector<std::string>().swap(vocabulary.merges);
    std::vector<double>().swap(vocabulary.scores);
    auto tokenizer = std::unique_ptr<VocabularyTokenizer>(
        new VocabularyTokenizer(std::move(vocabulary), *std::move(encoder)));
    tokenizer->decode_pieces();
    tokenizer->collect_special_tokens();
    tokenizer->ends_generation_ = ends_of_generation(tokenizer->vocabulary_);
    return std::unique_ptr<Tokenizer>(std::move(tokenizer));
  };
  if (vocabulary.model == "gpt2") return wrap(ByteEncoder::make(vocabulary));
  if (vocabulary.model == "llama" || vocabulary.model == "gemma4")
    return wrap(CharacterEncoder::make(vocabulary));
  return make_error(ErrorKind::unsupported,
                    "tokenizer.ggml.model '{}' is not supported; supported: gpt2 (byte-level BPE), "
                    "llama and gemma4 (SentencePiece)",
                    vocabulary.model);
}

const MergeTable& VocabularyTokenizer::merges() const {
  return std::visit([](const auto& encoder) -> const MergeTable& { return encoder.merges(); },
                    encoder_);
}

void VocabularyTokenizer::decode_pieces() {
  piece_begins_.reserve(token_count() + 1);
  for (size_t i = 0; i < token_count(); ++i) {
    piece_begins_.push_back(pieces_.size());
    switch (vocabulary_.types[i]) {
      case TokenType::unused:  // the name of a gap in the ids, not text
        break;
      case TokenType::normal:
      case TokenType::byte:
        append_piece(vocabulary_.tokens[i], vocabulary_.types[i]);
        break;
      default:  // special tokens are written as they are
        pieces_ += vocabulary_.tokens[i];
    }
  }
  piece_begins_.push_back(pieces_.size());
  pieces_.shrink_to_fit();
}

void VocabularyTokenizer::append_piece(std::string_view token, TokenType type) {
  if (std::holds_alternative<ByteEncoder>(encoder_)) {
    ByteEncoder::append_piece(token, pieces_);
  } else {
    CharacterEncoder::append_piece(token, type, pieces_);
  }
}

void VocabularyTokenizer::collect_special_tokens() {
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

std::vector<TokenId> VocabularyTokenizer::tokenize(std::string_view text,
                                                   const TokenizeOptions& options) const {
  const SpecialTokens& special = options.parse_special ? with_control_ : always_;
  // The texts of user-defined tokens are text, whoever wrote them.
  const auto may_be = [&](const SpecialTokens::Match& match) {
    return type(match.token) == TokenType::user_defined || !reaches_into(match, options.foreign);
  };
  WordMerger merger(merges());
  std::vector<TokenId> out;
  out.reserve(text.size() / 4 + 2);
  for (size_t at = 0; at < text.size();) {
    const SpecialTokens::Match match = special.find(text, at, may_be);
    append_text(text.substr(at, match.begin - at), merger, out);
    if (match.token != kNoToken) out.push_back(match.token);
    at = match.end;
  }
  if (options.add_special) add_bos_and_eos(options, out);
  return out;
}

void VocabularyTokenizer::add_bos_and_eos(const TokenizeOptions& options,
                                          std::vector<TokenId>& tokens) const {
  const bool never_doubled = options.never_doubled;
  const TokenId bos = *vocabulary_.add_bos ? vocabulary_.bos : kNoToken;
  const TokenId eos = *vocabulary_.add_eos && !options.goes_on ? vocabulary_.eos : kNoToken;
  const bool has_bos = !tokens.empty() && tokens.front() == bos;
  const bool has_eos = !tokens.empty() && tokens.back() == eos;
  if (bos != kNoToken && !(has_bos && never_doubled)) tokens.insert(tokens.begin(), bos);
  if (eos != kNoToken && !(has_eos && never_doubled)) tokens.push_back(eos);
}

void VocabularyTokenizer::append_text(std::string_view text, WordMerger& merger,
                                      std::vector<TokenId>& out) const {
  if (const auto* bytes = std::get_if<ByteEncoder>(&encoder_)) {
    bytes->append_tokens(text, merger, out);
  } else {
    std::get<CharacterEncoder>(encoder_).append_tokens(text, merger, out);
  }
}

std::string_view VocabularyTokenizer::piece(TokenId token) const {
  if (!has(token)) return {};
  const size_t begin = piece_begins_[static_cast<size_t>(token)];
  const size_t end = piece_begins_[static_cast<size_t>(token) + 1];
  return std::string_view(pieces_).substr(begin, end - begin);
}

bool VocabularyTokenizer::is_control(TokenId token) const {
  return has(token) && type(token) == TokenType::control;
}

bool VocabularyTokenizer::is_end_of_generation(TokenId token) const {
  return has(token) && ends_generation_[static_cast<size_t>(token)];
}

}  // namespace sluice::text
