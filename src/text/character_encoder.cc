#include "text/character_encoder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr char32_t kSpaceSymbol = 0x2581;
constexpr std::string_view kSpaceText = "\u2581";
constexpr char32_t kNoCharacter = 0x110000;

/// How many bytes the first byte of a character says it has. The reference believes it even where
/// that is not true, and what it takes for one character then is all written as bytes.
constexpr size_t claimed_length(uint8_t lead) {
  if (lead < 0xc0) return 1;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}

std::string with_space_symbols(std::string_view plain, bool space_prefix) {
  std::string text;
  text.reserve(plain.size() + plain.size() / 2);
  if (space_prefix) text = kSpaceText;
  for (size_t at = 0; at < plain.size();) {
    const size_t space = std::min(plain.find(' ', at), plain.size());
    text.append(plain, at, space - at);
    if (space < plain.size()) text += kSpaceText;
    at = space + 1;
  }
  return text;
}

bool is_utf8(std::string_view text) {
  std::string storage;
  return repair_utf8(text, storage).data() == text.data();
}

/// Whether text may merge into it: control tokens are never made from text.
bool is_text(const Vocabulary& vocabulary, size_t token) {
  const TokenType type = vocabulary.types[token];
  return (type == TokenType::normal || type == TokenType::user_defined) &&
         !vocabulary.tokens[token].empty() && is_utf8(vocabulary.tokens[token]);
}

bool has_space_after_other(std::string_view token) {
  while (token.starts_with(kSpaceText)) token.remove_prefix(kSpaceText.size());
  return token.find(kSpaceText) != token.npos;
}

/// [token]: its place in the order of scores, 0 for the highest.
std::vector<Rank> ranks_of(std::span<const double> scores) {
  std::vector<double> order(scores.begin(), scores.end());
  std::ranges::sort(order, std::greater{});
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<Rank> ranks;
  ranks.reserve(scores.size());
  for (const double score : scores) {
    const auto place = std::ranges::lower_bound(order, score, std::greater{});
    ranks.push_back(static_cast<Rank>(place - order.begin()));
  }
  return ranks;
}

}  // namespace

Result<CharacterEncoder> CharacterEncoder::make(Vocabulary& vocabulary) {
  CharacterEncoder encoder;
  encoder.scored_ = vocabulary.model == "llama";
  if (auto status = encoder.index(vocabulary); !status) return status.error();
  if (encoder.scored_) {
    // SentencePiece's own places for these, which files take for granted.
    const auto settle = [&](TokenId& token, TokenId usual) {
      if (token == kNoToken && usual < encoder.token_count_) token = usual;
    };
    settle(vocabulary.bos, 1);
    settle(vocabulary.eos, 2);
    if (!vocabulary.add_bos) vocabulary.add_bos = true;
    if (!vocabulary.add_space_prefix) vocabulary.add_space_prefix = true;
  } else {
    vocabulary.add_bos = true;  // files were written that deny it, and the model fails without
    if (!vocabulary.add_space_prefix) vocabulary.add_space_prefix = false;
  }
  if (!vocabulary.add_eos) vocabulary.add_eos = false;
  encoder.space_prefix_ = *vocabulary.add_space_prefix;
  return encoder;
}

Status CharacterEncoder::index(const Vocabulary& vocabulary) {
  token_count_ = static_cast<TokenId>(vocabulary.tokens.size());
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    if (vocabulary.types[i] == TokenType::unknown) unknown_ = token;
    const int byte = byte_of_token(vocabulary.tokens[i]);
    if (vocabulary.types[i] == TokenType::byte && byte >= 0)
      bytes_[static_cast<size_t>(byte)] = token;
  }
  const TokenIndex symbols = index_symbols(vocabulary);
  if (scored_) return add_scored_merges(vocabulary, symbols);
  index_newlines(symbols);
  merges_ = MergeTable(vocabulary.merges.size());
  return add_merges(vocabulary.merges, symbols, merges_);
}

/// Gives every character in a token its symbol, and returns the ids of all symbols by their texts.
TokenIndex CharacterEncoder::index_symbols(const Vocabulary& vocabulary) {
  TokenIndex symbols;
  symbols.reserve(vocabulary.tokens.size());
  words_start_at_spaces_ = true;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (!is_text(vocabulary, i)) continue;
    symbols.emplace(vocabulary.tokens[i], static_cast<TokenId>(i));
    if (has_space_after_other(vocabulary.tokens[i])) words_start_at_spaces_ = false;
  }
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (!is_text(vocabulary, i)) continue;
    const std::string_view text = vocabulary.tokens[i];
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = decode_utf8(text, at);
      if (symbol_of(c.code) == kNoToken) {
        if (c.code >= symbols_.size()) symbols_.resize(c.code + 1, kNoToken);
        const auto next = token_count_ + static_cast<TokenId>(lone_characters_.size());
        const auto [symbol, added] = symbols.emplace(text.substr(at, c.bytes), next);
        if (added) lone_characters_.push_back(c.code);
        symbols_[c.code] = symbol->second;
      }
      at += c.bytes;
    }
  }
  return symbols;
}

Status CharacterEncoder::add_scored_merges(const Vocabulary& vocabulary,
                                           const TokenIndex& symbols) {
  if (vocabulary.scores.size() != vocabulary.tokens.size())
    return make_error(ErrorKind::corrupt,
                      "the vocabulary has {} tokens, but {} scores (tokenizer.ggml.scores)",
                      vocabulary.tokens.size(), vocabulary.scores.size());
  if (std::ranges::any_of(vocabulary.scores, [](double score) { return std::isnan(score); }))
    return make_error(ErrorKind::corrupt, "tokenizer.ggml.scores holds what is no number");
  const std::vector<Rank> ranks = ranks_of(vocabulary.scores);

  struct Entry {
    TokenId left, right;
    MergeTable::Merge merge;
  };
  std::vector<Entry> entries;
  for (const auto& [text, token] : symbols) {
    if (token >= token_count_) continue;
    for (size_t at = decode_utf8(text, 0).bytes; at < text.size();
         at += decode_utf8(text, at).bytes) {
      const TokenId left = find_token(symbols, text.substr(0, at));
      if (left == kNoToken) continue;
      const TokenId right = find_token(symbols, text.substr(at));
      if (right == kNoToken) continue;
      entries.push_back({left, right, {ranks[static_cast<size_t>(token)], token}});
    }
  }
  merges_ = MergeTable(entries.size());
  for (const Entry& entry : entries) merges_.add(entry.left, entry.right, entry.merge);
  return {};
}

void CharacterEncoder::index_newlines(const TokenIndex& symbols) {
  newlines_.push_back(kNoToken);
  size_t longest = 1;
  for (const auto& [text, token] : symbols)
    if (text.find_first_not_of('\n') == text.npos) longest = std::max(longest, text.size());
  for (size_t count = 1; count <= longest; ++count)
    newlines_.push_back(find_token(symbols, std::string(count, '\n')));
}

void CharacterEncoder::append_tokens(std::string_view plain, WordMerger& merger,
                                     std::vector<TokenId>& out) const {
  if (plain.empty()) return;
  std::string repaired;
  const std::string text =
      with_space_symbols(scored_ ? plain : repair_utf8(plain, repaired), space_prefix_);
  bool after_space = true;
  for (size_t at = 0; at < text.size();) {
    if (!scored_ && text[at] == '\n') {
      at = append_newlines(text, at, merger, out);
      continue;
    }
    const size_t bytes = std::min(claimed_length(static_cast<uint8_t>(text[at])), text.size() - at);
    const Utf8Char c = decode_utf8(text, at);
    const bool space = c.code == kSpaceSymbol;
    if ((space && !after_space && words_start_at_spaces_) || merger.is_full())
      end_word(merger, out);
    after_space = space;
    const char32_t code = c.bytes == bytes && c.valid() ? c.code : kNoCharacter;
    add_character(code, std::string_view(text).substr(at, bytes), merger);
    at += bytes;
  }
  end_word(merger, out);
}

/// A run of newlines is a word of its own, and one token where the vocabulary has that.
size_t CharacterEncoder::append_newlines(std::string_view text, size_t at, WordMerger& merger,
                                         std::vector<TokenId>& out) const {
  end_word(merger, out);
  const size_t end = std::min(text.find_first_not_of('\n', at), text.size());
  const size_t count = end - at;
  if (count < newlines_.size() && newlines_[count] != kNoToken) {
    out.push_back(newlines_[count]);
    return end;
  }
  for (; at < end; ++at) {
    if (merger.is_full()) end_word(merger, out);
    add_character('\n', "\n", merger);
  }
  end_word(merger, out);
  return end;
}

/// Tokens of bytes are in no merge, so they may stand in a word.
template <typename Add>
void CharacterEncoder::add_bytes(std::string_view bytes, Add&& add) const {
  for (const char byte : bytes) {
    const TokenId token = bytes_[static_cast<uint8_t>(byte)];
    if (token != kNoToken) {
      add(token);
    } else if (unknown_ != kNoToken) {
      add(unknown_);
    }
  }
}

void CharacterEncoder::add_character(char32_t code, std::string_view bytes,
                                     WordMerger& merger) const {
  const TokenId symbol = symbol_of(code);
  if (symbol != kNoToken) return merger.add(symbol);
  add_bytes(bytes, [&](TokenId token) { merger.add(token); });
}

void CharacterEncoder::end_word(WordMerger& merger, std::vector<TokenId>& out) const {
  const auto begin = static_cast<ptrdiff_t>(out.size());
  merger.end_word(out);
  const auto is_lone = [this](TokenId symbol) { return symbol >= token_count_; };
  const auto first = std::find_if(out.begin() + begin, out.end(), is_lone);
  if (first == out.end()) return;
  const std::vector<TokenId> rest(first, out.end());
  out.erase(first, out.end());
  for (const TokenId symbol : rest) {
    if (!is_lone(symbol)) {
      out.push_back(symbol);
      continue;
    }
    std::string bytes;
    append_utf8(lone_characters_[static_cast<size_t>(symbol - token_count_)], bytes);
    add_bytes(bytes, [&](TokenId token) { out.push_back(token); });
  }
}

void CharacterEncoder::append_piece(std::string_view token, TokenType type, std::string& bytes) {
  if (const int byte = byte_of_token(token); type == TokenType::byte && byte >= 0) {
    bytes += static_cast<char>(byte);
    return;
  }
  for (size_t at = 0; at < token.size();) {
    const size_t space = std::min(token.find(kSpaceText, at), token.size());
    bytes.append(token.substr(at, space - at));
    if (space < token.size()) bytes += ' ';
    at = space + kSpaceText.size();
  }
}

int CharacterEncoder::byte_of_token(std::string_view token) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const size_t high = kDigits.find(token[3]);
  const size_t low = kDigits.find(token[4]);
  if (high == kDigits.npos || low == kDigits.npos) return -1;
  return static_cast<int>(high * 16 + low);
}

}  // namespace sluice::text
