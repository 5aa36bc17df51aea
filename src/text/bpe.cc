#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"

namespace sluice::text {
namespace {

uint64_t pair_key(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(size_t count) {
  CHECK(count < size_t{1} << 30);
  const size_t capacity = std::bit_ceil(count + count / 2 + 2);
  slots_.resize(capacity);
  hash_shift_ = 64 - std::countr_zero(capacity);
}

size_t MergeTable::slot_of(uint64_t pair) const {
  // Fibonacci hashing: the multiplier is 2^64 over the golden ratio.
  size_t slot = (pair * 0x9e3779b97f4a7c15u) >> hash_shift_;
  while (slots_[slot].pair != pair && slots_[slot].pair != kEmpty)
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  const uint64_t pair = pair_key(left, right);
  Slot& slot = slots_[slot_of(pair)];
  if (slot.pair == kEmpty) slot = {pair, merge};
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const {
  return slots_[slot_of(pair_key(left, right))].merge;
}

void WordMerger::look_at_pair(Index left) {
  Symbol& symbol = symbols_[left];
  symbol.merge = symbol.next == kNone ? MergeTable::Merge{}
                                      : merges_.find(symbol.token, symbols_[symbol.next].token);
  if (symbol.merge.rank == kNoRank) return;
  heap_.push_back(uint64_t{symbol.merge.rank} << 32 | left);
  std::push_heap(heap_.begin(), heap_.end(), std::greater{});
}

void WordMerger::merge_pair(Index left) {
  Symbol& symbol = symbols_[left];
  Symbol& absorbed = symbols_[symbol.next];
  absorbed.merge = {};
  symbol.token = symbol.merge.token;
  symbol.next = absorbed.next;
  if (symbol.next != kNone) symbols_[symbol.next].previous = left;
  look_at_pair(left);
  if (symbol.previous != kNone) look_at_pair(symbol.previous);
}

void WordMerger::add(TokenId symbol) {
  CHECK(symbols_.size() < kNone);
  const auto index = static_cast<Index>(symbols_.size());
  symbols_.push_back({symbol, index - 1, index + 1});  // index − 1 of the first is kNone
}

void WordMerger::end_word(std::vector<TokenId>& out) {
  if (symbols_.empty()) return;
  symbols_.back().next = kNone;
  for (Index left = 0; left + 1 < symbols_.size(); ++left) look_at_pair(left);

  while (!heap_.empty()) {
    const auto left = static_cast<Index>(heap_.front());
    const auto rank = static_cast<Rank>(heap_.front() >> 32);
    std::pop_heap(heap_.begin(), heap_.end(), std::greater{});
    heap_.pop_back();
    if (symbols_[left].merge.rank == rank) merge_pair(left);
  }
  for (Index at = 0; at != kNone; at = symbols_[at].next) out.push_back(symbols_[at].token);
  symbols_.clear();
}

}  // namespace sluice::text
