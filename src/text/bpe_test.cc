#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/random.h"

namespace sluice::text {
namespace {

using Texts = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Merges written as texts, worked out both by WordMerger and by the definition.
class Merges {
 public:
  explicit Merges(const Pairs& merges) : table_(merges.size()) {
    for (int byte = 0; byte < 256; ++byte) id_of(std::string(1, static_cast<char>(byte)));
    for (const auto& [left, right] : merges) {
      const auto rank = static_cast<Rank>(ranks_.size());
      if (!ranks_.emplace(std::pair(left, right), rank).second) continue;
      table_.add(id_of(left), id_of(right), {rank, id_of(left + right)});
    }
  }

  Texts merge(std::string_view word) const {
    WordMerger merger(table_);
    std::vector<TokenId> ids;
    for (const char byte : word) merger.add(static_cast<uint8_t>(byte));
    merger.end_word(ids);
    Texts parts;
    for (const TokenId id : ids) parts.push_back(texts_[static_cast<size_t>(id)]);
    return parts;
  }

  /// The definition: over and over, merge the pair of lowest rank, the leftmost of equals.
  Texts merge_by_definition(std::string_view word) const {
    Texts parts;
    for (const char byte : word) parts.emplace_back(1, byte);
    while (true) {
      Rank lowest = kNoRank;
      size_t best = 0;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks_.find({parts[i], parts[i + 1]});
        if (found == ranks_.end() || found->second >= lowest) continue;
        lowest = found->second;
        best = i;
      }
      if (lowest == kNoRank) return parts;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
  }

 private:
  TokenId id_of(const std::string& text) {
    const auto [found, added] = ids_.emplace(text, static_cast<TokenId>(texts_.size()));
    if (added) texts_.push_back(text);
    return found->second;
  }

  std::map<std::string, TokenId> ids_;
  Texts texts_;
  std::map<std::pair<std::string, std::string>, Rank> ranks_;
  MergeTable table_;
};

TEST(WordMerger, MergesTheLowestRankFirst) {
  const Merges merges(Pairs{{"b", "c"}, {"a", "b"}});
  EXPECT_EQ(merges.merge("abc"), (Texts{"a", "bc"}));
  EXPECT_EQ(merges.merge("ab"), (Texts{"ab"}));
}

TEST(WordMerger, MergesTheLeftmostOfEqualsFirst) {
  const Merges merges(Pairs{{"a", "a"}});
  EXPECT_EQ(merges.merge("aaa"), (Texts{"aa", "a"}));
  EXPECT_EQ(merges.merge("aaaaa"), (Texts{"aa", "aa", "a"}));
}

TEST(WordMerger, DropsEntriesOfPairsThatAreGone) {
  // "bc" waits in the heap while "ab" swallows its b; so does "cd" when "abc" forms.
  const Merges merges(Pairs{{"a", "b"}, {"b", "c"}, {"ab", "c"}, {"c", "d"}});
  EXPECT_EQ(merges.merge("abcd"), (Texts{"abc", "d"}));
}

TEST(WordMerger, HandlesTheShortestWords) {
  const Merges merges(Pairs{{"a", "b"}});
  EXPECT_EQ(merges.merge(""), Texts{});
  EXPECT_EQ(merges.merge("a"), Texts{"a"});
  EXPECT_EQ(merges.merge("ba"), (Texts{"b", "a"}));
  EXPECT_EQ(merges.merge(std::string("\0\xff", 2)), (Texts{std::string(1, '\0'), "\xff"}));
}

TEST(WordMerger, TakesOneWordAfterTheOther) {
  MergeTable table(1);
  table.add(1, 2, {0, 3});
  WordMerger merger(table);
  std::vector<TokenId> ids;
  merger.end_word(ids);
  EXPECT_TRUE(ids.empty());
  for (const TokenId symbol : {1, 2, 1}) merger.add(symbol);
  merger.end_word(ids);
  merger.add(2);
  merger.end_word(ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{3, 1, 2}));
}

TEST(WordMerger, AgreesWithTheDefinition) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    // Parts are drawn from what earlier merges made, so that long chains arise.
    Texts parts{"a", "b", "c"};
    Pairs pairs;
    for (int i = 0; i < 25; ++i) {
      const std::string left = parts[random.below(parts.size())];
      const std::string right = parts[random.below(parts.size())];
      pairs.emplace_back(left, right);
      if (left.size() + right.size() < 20) parts.push_back(left + right);
    }
    const Merges merges(pairs);
    for (int i = 0; i < 20; ++i) {
      std::string word;
      for (uint64_t n = random.below(60); n > 0; --n)
        word += static_cast<char>('a' + random.below(3));
      ASSERT_EQ(merges.merge(word), merges.merge_by_definition(word)) << word;
    }
  }
}

TEST(MergeTable, FindsWhatWasAddedAndNothingElse) {
  MergeTable table(1000);
  for (TokenId i = 0; i < 1000; ++i) table.add(i, i * 7, {static_cast<Rank>(i), i + 1});
  table.add(5, 35, {0, 99});  // there already: the first one stays
  for (TokenId i = 0; i < 1000; ++i) {
    EXPECT_EQ(table.find(i, i * 7).rank, static_cast<Rank>(i));
    EXPECT_EQ(table.find(i, i * 7).token, i + 1);
    EXPECT_EQ(table.find(i, i * 7 + 1).rank, kNoRank);
  }
  EXPECT_EQ(MergeTable(0).find(0, 0).rank, kNoRank);
}

}  // namespace
}  // namespace sluice::text
