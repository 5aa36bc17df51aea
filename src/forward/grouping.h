// Tokens by expert: turns a routing (for each token its experts) around into groups (for each
// expert its tokens), so that an expert's weights are read and unpacked once for all of them. Also
// numbers the (token, expert) pairs so that those of one group are adjacent: that is where outputs
// go. A group also knows how much the end of the text wants it: each token's choice counts half as
// much as one kRecencyHalfLife tokens later. Allocates at construction only. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

inline constexpr double kRecencyHalfLife = 128;  ///< tokens

struct ExpertGroup {
  uint32_t expert = 0;
  uint32_t first_pair = 0;
  uint32_t token_count = 0;
  double recency = 0;  ///< Σ over its tokens of 2^(−tokens behind it / kRecencyHalfLife)
};

class Grouping {
 public:
  Grouping(size_t token_count_max, size_t used_count, size_t expert_count_max);

  /// `experts` is [token][used]; `tokens_behind` follow the last of them in the same prompt. Groups
  /// come in ascending expert id, the tokens of each ascending.
  void group(std::span<const int32_t> experts, size_t expert_count, size_t tokens_behind = 0);

  std::span<const ExpertGroup> groups() const { return groups_; }
  /// [pair]: the token it belongs to; a group's are at its first_pair.
  const int32_t* token_of_pair() const { return token_of_pair_.data(); }
  /// [token][used]: the pair's number.
  const int32_t* pair_of() const { return pair_of_.data(); }

 private:
  const size_t used_count_;
  const double older_;               ///< what a token counts of the one behind it
  std::vector<uint32_t> next_pair_;  ///< [expert], while grouping
  std::vector<double> recency_;      ///< [expert], while grouping
  std::vector<ExpertGroup> groups_;
  std::vector<int32_t> token_of_pair_;
  std::vector<int32_t> pair_of_;
};

}  // namespace sluice
