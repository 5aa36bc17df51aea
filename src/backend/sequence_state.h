// What one sequence of tokens leaves behind in the layers for those that follow.
//
//   Keys and values of every position, laid out for the attention kernel (kernels/kernels.h): keys
//   in tiles of 16 positions with the positions adjacent, values row by row, with q8_0 both in
//   tiles that end with their scales. A layer that sees only a window keeps no more than that: its
//   positions lie in a ring, position p in place of p − ring_positions().
//   The running state of layers that carry one instead: floats that each token changes.
//
// Going back to an earlier position is free where nothing has been overwritten since. Where it has,
// a snapshot brings the overwritten parts back; they are small, and the rest is never overwritten.
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
  /// Snapshots that are kept; the earliest goes when there would be more.
  static constexpr size_t kSnapshotsMax = 3;

  /// Memory for the whole context, entered in the ledger; its pages are touched as the context
  /// fills. A refusal is ErrorKind::memory.
  static Result<SequenceState> allocate(const ModelConfig& config, const Limits& limits,
                                        Ledger& ledger);
  /// What allocate() takes: the context is rounded up to whole attention blocks.
  static uint64_t bytes_for(const ModelConfig& config, const Limits& limits);
  /// The same as a sum: so much for each token of the context, and so much at most however long it
  /// is, for windows, running states and their snapshots.
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
    return arena_.begin() + place.offset + kv_head * place.head_bytes;
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
  /// Remembers what later tokens will overwrite, so that rewind() can come back here. Costs nothing
  /// where they overwrite nothing.
  void take_snapshot();

 private:
  /// Where a layer's part lies.
  struct Layer {
    uint64_t offset = 0;      ///< of keys and values
    uint64_t key_bytes = 0;   ///< of one head
    uint64_t head_bytes = 0;  ///< keys and values of one head
    size_t value_stride = 0;
    size_t ring_positions = 0;
    size_t window = 0;            ///< 0: nothing is ever overwritten
    uint64_t running_offset = 0;  ///< of the running state
  };
  struct Snapshot {
    size_t position;
    size_t written_end;
    size_t slot;  ///< its memory
  };
  SequenceState(const ModelConfig& config, const Limits& limits);

  void place_keys(const LayerConfig& config, Layer& layer);
  std::byte* snapshot_memory(size_t slot) const {
    return arena_.begin() + (slot + 1) * bounded_bytes_;
  }
  size_t free_slot() const;
  bool can_step_back(size_t position) const;
  void restore(const Snapshot& snapshot);
  void clear();

  os::Arena arena_;  ///< [windows and running states][as much for each snapshot][the rest]
  Ledger* ledger_ = nullptr;
  Limits limits_;
  std::vector<Layer> layers_;
  bool has_running_ = false;
  uint64_t bounded_bytes_ = 0;  ///< windows and running states
  uint64_t bytes_ = 0;
  size_t position_ = 0;
  size_t step_end_ = 0;     ///< where the step at hand leads
  size_t written_end_ = 0;  ///< behind the last position that was ever stored in the rings
  bool in_step_ = false;
  std::vector<Snapshot> snapshots_;  ///< by position
};

}  // namespace sluice
