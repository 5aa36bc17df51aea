// Byte pair encoding of one word: its symbols (bytes or characters) start as one token each, and
// the adjacent pair with the lowest rank is merged, the leftmost of equals first, until no pair has
// a rank.
//
// The pairs wait in a heap ordered by (rank, position) and the tokens of the word form a linked
// list, so a word of n symbols costs n log n; a megabyte of one letter is an ordinary word here. An
// entry of the heap is not removed when its pair goes away: it is recognised as stale when it comes
// up, because the pair that now starts at its position has another rank, or none.
#pragma once

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

/// The working memory for merging words, reused from word to word; some 40 bytes for each symbol of
/// the longest. One thread at a time.
class WordMerger {
 public:
  /// REQUIRES: merges outlives this object.
  explicit WordMerger(const MergeTable& merges) : merges_(merges) {}

  /// Another symbol of the word.
  void add(TokenId symbol);
  bool is_full() const { return symbols_.size() >= kSymbolsMax; }

  /// Merges the symbols since the last call and appends the tokens. Callers also end a word that
  /// is full, so that the memory is bounded: no vocabulary has a token that long, so the cut
  /// shows, if at all, in the tokens on both sides of it.
  void end_word(std::vector<TokenId>& out);

 private:
  using Index = uint32_t;
  static constexpr Index kNone = std::numeric_limits<Index>::max();
  static constexpr size_t kSymbolsMax = size_t{16} << 20;  // 640 MB

  struct Symbol {
    TokenId token;
    Index previous, next;       ///< neighbours in the list, kNone at the ends
    MergeTable::Merge merge{};  ///< of this symbol with the next one
  };

  /// Looks up the pair that starts at `left` and queues it when it merges.
  void look_at_pair(Index left);
  /// Replaces the pair that starts at `left` by its merged token.
  void merge_pair(Index left);

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> heap_;  ///< rank << 32 | index of the left symbol, lowest on top
};

}  // namespace sluice::text
