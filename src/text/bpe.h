// Byte pair encoding of one word: its bytes start as one token each, and the adjacent pair with the
// lowest rank is merged, the leftmost of equals first, until no pair has a rank.
//
// The pairs wait in a heap ordered by (rank, position) and the tokens of the word form a linked
// list, so a word of n bytes costs n log n; a megabyte of one letter is an ordinary word here. An
// entry of the heap is not removed when its pair goes away: it is recognised as stale when it comes
// up, because the pair that now starts at its position has another rank, or none.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace sluice::text {

using Rank = uint32_t;
inline constexpr Rank kNoRank = std::numeric_limits<Rank>::max();

/// Which pairs of tokens merge, in which order, into what: a hash table with open addressing, about
/// half full. Immutable once filled; any thread may look things up.
class MergeTable {
 public:
  struct Merge {
    Rank rank = kNoRank;
    TokenId token = kNoToken;  ///< what the pair becomes
  };

  /// `count`: how many merges may be added. REQUIRES: count < 2^30
  explicit MergeTable(size_t count);

  /// A pair that is there already keeps its first, lower rank. REQUIRES: left, right ≥ 0
  void add(TokenId left, TokenId right, Merge merge);

  Merge find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = std::numeric_limits<uint64_t>::max();

  /// The slot of the pair, or the free one where it would go.
  size_t slot_of(uint64_t pair) const;

  std::vector<Slot> slots_;  ///< a power of two of them
  int hash_shift_;           ///< keeps the highest bits of a 64-bit hash
};

/// Token of each single byte; kNoToken where the vocabulary has none.
using ByteTokens = std::array<TokenId, 256>;

/// The working memory for merging words, reused from word to word. One thread at a time.
class WordMerger {
 public:
  /// Both outlive this object.
  WordMerger(const ByteTokens& byte_tokens, const MergeTable& merges)
      : byte_tokens_(byte_tokens), merges_(merges) {}

  /// Appends the tokens of a word. A byte without a token of its own gives none, as in the
  /// reference. The memory kept is some 40 bytes a byte of the longest word.
  /// REQUIRES: word.size() < 2^32 − 1
  void append_tokens(std::string_view word, std::vector<TokenId>& out);

 private:
  using Index = uint32_t;
  static constexpr Index kNone = std::numeric_limits<Index>::max();

  struct Symbol {
    TokenId token;
    Index previous, next;       ///< neighbours in the list, kNone at the ends
    MergeTable::Merge merge{};  ///< of this symbol with the next one
  };

  /// Looks up the pair that starts at `left` and queues it when it merges.
  void look_at_pair(Index left);
  /// Replaces the pair that starts at `left` by its merged token.
  void merge_pair(Index left);

  const ByteTokens& byte_tokens_;
  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> heap_;  ///< rank << 32 | index of the left symbol, lowest on top
};

}  // namespace sluice::text
