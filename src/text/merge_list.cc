#include "text/merge_list.h"

#include <algorithm>

namespace sluice::text {
namespace {

/// The parts are written without spaces, but a lone space may be the left one.
struct MergeParts {
  std::string_view left, right;
};
MergeParts split_merge(std::string_view merge) {
  const size_t space = std::min(merge.find(' ', 1), merge.size());
  return {merge.substr(0, space), merge.substr(std::min(space + 1, merge.size()))};
}

}  // namespace

TokenId find_token(const TokenIndex& ids, std::string_view text) {
  const auto found = ids.find(text);
  return found == ids.end() ? kNoToken : found->second;
}

Status add_merges(std::span<const std::string> merges, const TokenIndex& ids, MergeTable& table) {
  std::string merged;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = split_merge(merges[rank]);
    const TokenId left_id = find_token(ids, left);
    const TokenId right_id = find_token(ids, right);
    if (left_id == kNoToken || right_id == kNoToken)
      return make_error(ErrorKind::corrupt, "merge {} of the vocabulary ('{}'): '{}' is no token",
                        rank, merges[rank], left_id == kNoToken ? left : right);
    merged.assign(left).append(right);
    const TokenId merged_id = find_token(ids, merged);
    if (merged_id != kNoToken) table.add(left_id, right_id, {static_cast<Rank>(rank), merged_id});
  }
  return {};
}

}  // namespace sluice::text
