#include "text/special_tokens.h"

#include <algorithm>

namespace sluice::text {

SpecialTokens::SpecialTokens(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::ranges::stable_sort(entries_, {}, &Entry::text);
  for (const Entry& entry : entries_) starts_entry_[static_cast<uint8_t>(entry.text[0])] = true;
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, size_t from) const {
  return find(text, from, [](const Match&) { return true; });
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, size_t from,
                                         const Filter& may_be) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (!starts_entry_[static_cast<uint8_t>(text[at])]) continue;
    const Match match = longest_at(text, at, may_be);
    if (match.token != kNoToken) return match;
  }
  return {text.size(), text.size(), kNoToken};
}

SpecialTokens::Match SpecialTokens::longest_at(std::string_view text, size_t at,
                                               const Filter& may_be) const {
  Match longest{at, at, kNoToken};
  auto low = entries_.begin();
  auto high = entries_.end();
  for (size_t depth = 0; at + depth < text.size(); ++depth) {
    // All in [low, high) share `depth` bytes with the text. A text of just that length sorts first.
    const auto byte = static_cast<uint8_t>(text[at + depth]);
    const auto byte_of = [&](const Entry& entry) {
      return static_cast<uint8_t>(entry.text[depth]);
    };
    low = std::partition_point(low, high, [&](const Entry& entry) {
      return entry.text.size() == depth || byte_of(entry) < byte;
    });
    high = std::partition_point(low, high, [&](const Entry& e) { return byte_of(e) == byte; });
    if (low == high) break;
    const Match match{at, at + depth + 1, low->token};
    if (low->text.size() == depth + 1 && may_be(match)) longest = match;
  }
  return longest;
}

}  // namespace sluice::text
