// Reads the list of merges of a vocabulary ("left right", by rank) into a MergeTable. Pure
// functions; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "text/bpe.h"

namespace sluice::text {

/// Text to id. The texts live elsewhere.
using TokenIndex = std::unordered_map<std::string_view, TokenId>;

/// kNoToken when there is none.
TokenId find_token(const TokenIndex& ids, std::string_view text);

/// A merge of parts that are no tokens is an error. A merge into what is none is left out: it could
/// not be written down; vocabularies cut short for tests have such.
Status add_merges(std::span<const std::string> merges, const TokenIndex& ids, MergeTable& table);

}  // namespace sluice::text
