// Finds the tokens that are matched as plain text before anything else, such as <|im_start|>. The
// texts are sorted, so that those which share a beginning lie side by side: the list is walked as a
// trie whose node at depth d is the range of texts that share d bytes. One pass over the text, no
// matter how many tokens there are. Immutable after construction; any thread.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "text/tokenizer.h"

namespace sluice::text {

class SpecialTokens {
 public:
  struct Entry {
    std::string_view text;  ///< not empty; outlives this object
    TokenId token;
  };
  struct Match {
    size_t begin, end;
    TokenId token;  ///< kNoToken: nothing found, begin and end are the end of the text
  };

  SpecialTokens() = default;
  explicit SpecialTokens(std::vector<Entry> entries);

  /// The leftmost match that starts at or after `from`, the longest where several start there.
  Match find(std::string_view text, size_t from) const;
  /// The same among those that may be.
  using Filter = FunctionRef<bool(const Match&)>;
  Match find(std::string_view text, size_t from, const Filter& may_be) const;

 private:
  /// A match of `begin` == `end` when there is none.
  Match longest_at(std::string_view text, size_t at, const Filter& may_be) const;

  std::vector<Entry> entries_;            ///< sorted by text
  std::array<bool, 256> starts_entry_{};  ///< [byte]: some text starts with it
};

}  // namespace sluice::text
