// Tokens by expert: turns a routing (for each token its experts) around into groups (for each expert
// its tokens), so that an expert's weights are read and unpacked once for all of them. Also numbers
// the (token, expert) pairs so that those of one group are adjacent: that is where outputs go.
// Allocates at construction only. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

struct ExpertGroup {
  uint32_t expert = 0;
  uint32_t first_pair = 0;
  uint32_t token_count = 0;
};

class Grouping {
 public:
  Grouping(size_t token_count_max, size_t used_count, size_t expert_count_max);

  /// `experts` is [token][used]. Groups come in ascending expert id, the tokens of each ascending.
  void group(std::span<const int32_t> experts, size_t expert_count);

  std::span<const ExpertGroup> groups() const { return groups_; }
  /// [pair]: the token it belongs to; a group's are at its first_pair.
  const int32_t* token_of_pair() const { return token_of_pair_.data(); }
  /// [token][used]: the pair's number.
  const int32_t* pair_of() const { return pair_of_.data(); }

 private:
  const size_t used_count_;
  std::vector<uint32_t> next_pair_;  ///< [expert], while grouping
  std::vector<ExpertGroup> groups_;
  std::vector<int32_t> token_of_pair_;
  std::vector<int32_t> pair_of_;
};

}  // namespace sluice
