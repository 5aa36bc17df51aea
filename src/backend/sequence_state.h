// What one sequence of tokens leaves behind in the layers for those that follow.
//
//   Keys and values of every position, laid out for the attention kernel (kernels/kernels.h): keys
//   in tiles of 16 positions with the positions adjacent, values row by row, with q8_0 both in
//   tiles that end with their scales. A layer that sees only a window keeps no more than that: its
//   positions lie in a ring, position p in place of p − ring_positions().
//   The running state of layers that carry one instead: floats that each token changes.
//
// Going back to an earlier position is free where nothing that matters there has been overwritten
// since. Where it has, a snapshot brings it back: the running states, and of each ring the window
// before that position. The rest is never overwritten. A snapshot is taken while a step passes its
// position, layer by layer, so that no step has to end there.
//
// A window whose ring and snapshots would take more than the whole context has no ring.
//
// One thread at a time writes; the attention stage's threads read.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ledger.h"
#include "base/result.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "os/arena.h"

namespace sluice {

using kernels::KvType;

class SequenceState {
 public:
  struct Limits {
    size_t context_token_max;
    size_t ubatch_token_max;  ///< tokens that are stored before any of them looks back
    KvType type;
  };
  /// Snapshots that are kept; the earliest goes when there would be more. Two, so that there is one
  /// while the next is being taken.
  static constexpr size_t kSnapshotsMax = 2;

  /// Memory for the whole context, entered in the ledger; its pages are touched as the context
  /// fills. A refusal is ErrorKind::memory.
  static Result<SequenceState> allocate(const ModelConfig& config, const Limits& limits,
                                        Ledger& ledger);
  /// What allocate() takes: the context is rounded up to whole attention blocks. A longer context
  /// never takes less.
  static uint64_t bytes_for(const ModelConfig& config, const Limits& limits);
  /// The same for a long context, as a sum: so much for each token, and so much however long it is,
  /// for windows, running states and their snapshots.
  static uint64_t bytes_per_token(const ModelConfig& config, KvType type);
  static uint64_t fixed_bytes(const ModelConfig& config, size_t ubatch_token_max, KvType type);

  SequenceState(SequenceState&& other) noexcept;
  SequenceState& operator=(SequenceState&&) = delete;
  SequenceState(const SequenceState&) = delete;
  ~SequenceState();

  KvType type() const { return limits_.type; }
  size_t context_token_max() const { return limits_.context_token_max; }

  /// Of one head, from the first place of its ring on.
  std::byte* keys(size_t layer, size_t kv_head) const {
    const Layer& place = layers_[layer];
    return arena_.begin() + place.offset + kv_head * (place.key_bytes + place.value_bytes);
  }
  std::byte* values(size_t layer, size_t kv_head) const {
    return keys(layer, kv_head) + layers_[layer].key_bytes;
  }
  /// In elements.
  size_t value_stride(size_t layer) const { return layers_[layer].value_stride; }
  /// A multiple of kernels::kAttentionBlock.
  size_t ring_positions(size_t layer) const { return layers_[layer].ring_positions; }
  /// [LayerConfig::state_floats]; zeros before the first token.
  float* running(size_t layer) const { return arena_.as<float>(layers_[layer].running_offset); }

  /// Tokens that have passed all layers.
  size_t position() const { return position_; }
  /// A step over so many tokens: until it ends, layers stand at different positions.
  void begin_step(size_t token_count);
  void end_step();

  /// Goes back to the last position at or before this one that can be had, 0 at worst, and returns
  /// it. This is also how a step that failed is undone.
  size_t rewind(size_t position);

  /// Wants a snapshot at a position that the next steps pass, or where the state stands: rewind()
  /// will be able to come back there. A snapshot wanted before and not taken yet is forgotten.
  /// Costs nothing where nothing is overwritten. REQUIRES: no step is under way.
  void plan_snapshot(size_t position);
  /// How many of `token_count` tokens at `first` … a layer may take at once: none beyond the place
  /// of a snapshot.
  size_t piece_before_snapshot(size_t first, size_t token_count) const;
  /// A layer has taken all tokens before this position, and none further.
  void end_piece(size_t layer, size_t position);

 private:
  /// Where a layer's part lies.
  struct Layer {
    uint64_t offset = 0;       ///< of keys and values
    uint64_t key_bytes = 0;    ///< of one head
    uint64_t value_bytes = 0;  ///< of one head, behind its keys
    size_t value_stride = 0;
    size_t kv_head_count = 0;
    size_t ring_positions = 0;
    size_t window = 0;             ///< 0: nothing is ever overwritten
    uint64_t running_offset = 0;   ///< of the running state
    uint64_t running_bytes = 0;    ///< 0: none
    uint64_t snapshot_offset = 0;  ///< in a snapshot
  };
  struct Snapshot {
    size_t position = 0;  ///< 0: none
    size_t slot = 0;      ///< its memory
  };
  enum class CopyWay : uint8_t { keep, bring_back };
  SequenceState(const ModelConfig& config, const Limits& limits);

  void place_layer(const LayerConfig& config, Layer& layer);
  size_t free_slot() const;
  bool can_step_back(size_t position) const;
  void copy_layer(size_t index, const Snapshot& snapshot, CopyWay way);
  void restore(const Snapshot& snapshot);
  void clear();

  os::Arena arena_;  ///< [layer], then [snapshot][layer]
  Ledger* ledger_ = nullptr;
  Limits limits_;
  std::vector<Layer> layers_;
  bool has_running_ = false;
  uint64_t layers_bytes_ = 0;
  uint64_t snapshot_bytes_ = 0;  ///< of one
  size_t position_ = 0;
  size_t step_end_ = 0;  ///< where the step at hand leads
  bool in_step_ = false;
  /// Of the rings, since they were last empty or brought back: behind the last position that was
  /// stored, and the first position at which all that is looked back at has been there.
  size_t written_end_ = 0;
  size_t whole_from_ = 0;
  std::vector<Snapshot> snapshots_;  ///< by position
  Snapshot planned_;
};

}  // namespace sluice
