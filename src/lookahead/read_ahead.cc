#include "lookahead/read_ahead.h"

#include <algorithm>

namespace sluice {
namespace {

/// What layers keep of their slots while others borrow: the reply starts with these.
constexpr double kKeptShare = 0.5;

}  // namespace

ReadAhead::ReadAhead(ExpertStore& store, UsageCensus* census, Options options)
    : store_(store), census_(census), options_(std::move(options)) {
  shares_.reserve(options_.layers + 1);
}

void ReadAhead::begin_step(size_t token_count) {
  token_count_ = token_count;
}

void ReadAhead::begin_layer(uint32_t layer) {
  const auto layer_count = static_cast<uint32_t>(options_.expert_counts.size());
  const bool several_batches = token_count_ > options_.batch_token_max;
  const uint32_t ahead = token_count_ >= kTokensMin ? options_.layers : 0;
  if (!several_batches && ahead == 0) return;
  shares_.clear();
  for (uint32_t i = layer; i < std::min(layer + 1 + ahead, layer_count); ++i)
    if (options_.expert_counts[i] > 0) shares_.push_back({i, options_.expert_counts[i]});
  store_.lend(shares_, kKeptShare);
  // Reading the layer's experts anew for each batch would cost far more than others lose.
  if (several_batches && store_.cache().quota(layer) < options_.expert_counts[layer])
    store_.lend(shares_, 0);
  for (const ExpertCache::Share& share : shares_)
    if (share.layer > layer) guess_layer(share.layer, share.layer - layer);
}

/// As many of the layer's experts as it may hold: those of the census, then the others.
void ReadAhead::guess_layer(uint32_t layer, uint32_t distance) {
  const uint32_t room = std::min(store_.cache().quota(layer), options_.expert_counts[layer]);
  uint32_t rank = 0;
  if (census_ != nullptr)
    for (const ExpertId id : census_->most_used(layer))
      if (rank < room) store_.guess({.id = id, .distance = distance, .rank = rank++});
  for (uint32_t expert = 0; expert < options_.expert_counts[layer] && rank < room; ++expert)
    store_.guess({.id = {layer, expert}, .distance = distance, .rank = rank++});
}

void ReadAhead::end_step() {
  if (token_count_ > 1) store_.end_lending();
}

}  // namespace sluice
