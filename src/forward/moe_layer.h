// The routed experts of one layer for one batch: acquire, compute what is here, wait for the rest.
//
// Decode and prefill are the same loop. Experts that are resident are leased first and computed
// while the missing ones are read; an expert's gate and up are computed as soon as they have
// landed, its down when that has. When a layer needs more experts than it has slots they go in
// waves: a finished expert's lease is dropped, the next missing one takes its slot, and its read
// overlaps the computing of those that are here. Each expert is read at most once per batch. The
// last batch of a prompt takes those that the end of the text wants most last, so that they stay.
//
// start() asks for the experts, finish() computes them: between the two the drive has its orders
// and the caller may look ahead.
//
// The order in which experts are computed never shows: each writes its own rows, and the sum is
// taken in routing order afterwards. One thread at a time.
#pragma once

#include <atomic>
#include <vector>

#include "backend/backend.h"
#include "experts/expert_store.h"
#include "forward/grouping.h"

namespace sluice {

class MoeLayer {
 public:
  /// `group_count_max`: the most experts of a layer. `pairs_per_step` bounds what is computed
  /// before reads are looked after again.
  MoeLayer(Backend& backend, ExpertStore& store, size_t group_count_max, size_t pairs_per_step);

  /// Leases what is resident and starts reading what is not, as far as there are slots.
  void start(uint32_t layer, const Grouping& grouping, Ranking ranking);
  /// Computes the expert outputs of every pair. On a read error, or when `stop` becomes true, all
  /// leases are dropped, reads have ended, and the batch is void.
  Status finish(const Grouping& grouping, const BatchBuffers& batch, const std::atomic<bool>* stop);

 private:
  enum class Stage : uint8_t { gate_up, down };
  struct Active {
    ExpertLease lease;
    ExpertWork work;
    Stage stage = Stage::gate_up;
  };

  void order_groups(const Grouping& grouping, Ranking ranking);
  void acquire_more(const Grouping& grouping);
  bool compute_ready(Stage stage, PartMask parts, const BatchBuffers& batch);
  void advance(Stage stage);
  Status abandon(Error error);

  Backend& backend_;
  ExpertStore& store_;
  const size_t pairs_per_step_;
  uint32_t layer_ = 0;
  std::vector<ExpertGroup> order_;  ///< groups of this layer, absent ones last
  size_t next_ = 0;                 ///< in order_: the first that has no lease yet
  std::vector<Active> active_;      ///< leased and not finished
  std::vector<ExpertWork> works_;   ///< of one step
  std::vector<size_t> chosen_;      ///< in active_: whose works they are
};

}  // namespace sluice
