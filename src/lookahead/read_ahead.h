// The read-ahead of long prompts. A prompt of thousands of tokens needs nearly every expert of
// every layer, so nothing has to be guessed: while a layer computes, the next layers' experts are
// read, the most used first. The expert cache serves as one window that moves over the layers: the
// layer at work may hold all of its experts and the next ones borrow slots too, while the others
// keep half of theirs, so that the reply does not start with an empty cache.
//
// Worth it from kTokensMin tokens; with fewer, too many of the experts read would not be needed.
// One thread at a time.
#pragma once

#include <vector>

#include "experts/census.h"
#include "experts/expert_store.h"

namespace sluice {

class ReadAhead {
 public:
  static constexpr size_t kTokensMin = 4096;

  struct Options {
    uint32_t layers = 2;                  ///< read ahead; 0: none
    size_t batch_token_max = 0;           ///< a longer step passes a layer in several batches
    std::vector<uint32_t> expert_counts;  ///< [layer]
  };
  /// Store and census must outlive it; without a census all experts are alike.
  ReadAhead(ExpertStore& store, UsageCensus* census, Options options);

  void begin_step(size_t token_count);
  void begin_layer(uint32_t layer);
  void end_step();

 private:
  void guess_layer(uint32_t layer, uint32_t distance);

  ExpertStore& store_;
  UsageCensus* const census_;
  const Options options_;
  size_t token_count_ = 0;
  std::vector<ExpertCache::Share> shares_;
};

}  // namespace sluice
