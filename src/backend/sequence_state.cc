#include "backend/sequence_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/units.h"

namespace sluice {
namespace {

constexpr uint64_t kAlignment = 64;

size_t value_stride_of(const LayerConfig& layer) {
  return round_up(layer.value_dim, kernels::kKeyTile);
}

/// Keys and values of a tile of positions, all heads.
uint64_t tile_bytes(const LayerConfig& layer, KvType type) {
  return layer.kv_head_count * (kernels::kv_tile_bytes(type, layer.key_dim) +
                                kernels::kv_tile_bytes(type, value_stride_of(layer)));
}

/// A token that looks back sees the window's first position, after the last of its ubatch is
/// stored.
size_t ring_for(const LayerConfig& layer, size_t ubatch_token_max) {
  return round_up(layer.window + ubatch_token_max, kernels::kAttentionBlock);
}

}  // namespace

SequenceState::SequenceState(const ModelConfig& config, const Limits& limits) : limits_(limits) {
  const size_t context = round_up(limits.context_token_max, kernels::kAttentionBlock);
  layers_.resize(config.layer_count());
  // What later tokens overwrite lies together, so that a snapshot is one copy.
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerConfig& shape = config.layers[i];
    const size_t ring = ring_for(shape, limits.ubatch_token_max);
    const bool is_ring = shape.window > 0 && ring < context;
    layers_[i].window = is_ring ? shape.window : 0;
    layers_[i].ring_positions = is_ring ? ring : context;
    if (is_ring) place_keys(shape, layers_[i]);
    layers_[i].running_offset = bytes_;
    bytes_ += round_up(shape.state_floats * sizeof(float), kAlignment);
    has_running_ |= shape.state_floats > 0;
  }
  bounded_bytes_ = bytes_;
  bytes_ += kSnapshotsMax * bounded_bytes_;
  for (size_t i = 0; i < layers_.size(); ++i)
    if (layers_[i].window == 0) place_keys(config.layers[i], layers_[i]);
}

void SequenceState::place_keys(const LayerConfig& config, Layer& layer) {
  const uint64_t tiles = layer.ring_positions / kernels::kKeyTile;
  const auto bytes = [&](size_t row_elements) {
    return round_up(tiles * kernels::kv_tile_bytes(limits_.type, row_elements), kAlignment);
  };
  layer.offset = bytes_;
  layer.value_stride = value_stride_of(config);
  layer.key_bytes = bytes(config.key_dim);
  layer.head_bytes = layer.key_bytes + bytes(layer.value_stride);
  bytes_ += config.kv_head_count * layer.head_bytes;
}

Result<SequenceState> SequenceState::allocate(const ModelConfig& config, const Limits& limits,
                                              Ledger& ledger) {
  SequenceState state(config, limits);
  auto arena = os::Arena::allocate(state.bytes_, "the KV cache");
  if (!arena) return arena.error();
  state.arena_ = std::move(*arena);
  state.ledger_ = &ledger;
  ledger.add(MemoryUse::kv, state.arena_.bytes());
  return state;
}

SequenceState::SequenceState(SequenceState&& other) noexcept
    : arena_(std::move(other.arena_)),
      ledger_(std::exchange(other.ledger_, nullptr)),
      limits_(other.limits_),
      layers_(std::move(other.layers_)),
      has_running_(other.has_running_),
      bounded_bytes_(other.bounded_bytes_),
      bytes_(other.bytes_),
      position_(other.position_),
      step_end_(other.step_end_),
      written_end_(other.written_end_),
      in_step_(other.in_step_),
      snapshots_(std::move(other.snapshots_)) {}

SequenceState::~SequenceState() {
  if (ledger_ != nullptr) ledger_->remove(MemoryUse::kv, arena_.bytes());
}

uint64_t SequenceState::bytes_for(const ModelConfig& config, const Limits& limits) {
  return SequenceState(config, limits).bytes_;
}

uint64_t SequenceState::bytes_per_token(const ModelConfig& config, KvType type) {
  uint64_t bytes = 0;
  for (const LayerConfig& layer : config.layers)
    if (layer.window == 0) bytes += tile_bytes(layer, type);
  return bytes / kernels::kKeyTile;
}

uint64_t SequenceState::fixed_bytes(const ModelConfig& config, size_t ubatch_token_max,
                                    KvType type) {
  uint64_t bytes = 0;
  for (const LayerConfig& layer : config.layers) {
    if (layer.window > 0)
      bytes += ring_for(layer, ubatch_token_max) / kernels::kKeyTile * tile_bytes(layer, type);
    bytes += round_up(layer.state_floats * sizeof(float), kAlignment);
  }
  return bytes * (1 + kSnapshotsMax);
}

void SequenceState::begin_step(size_t token_count) {
  CHECK(!in_step_ && token_count <= limits_.context_token_max - position_);
  in_step_ = true;
  written_end_ = std::max(written_end_, position_ + token_count);
  step_end_ = position_ + token_count;
}

void SequenceState::end_step() {
  CHECK(in_step_);
  in_step_ = false;
  position_ = step_end_;
}

size_t SequenceState::rewind(size_t position) {
  position = std::min(position, position_);
  std::erase_if(snapshots_, [&](const Snapshot& some) { return some.position > position; });
  if (can_step_back(position)) {
    position_ = position;
    in_step_ = false;
  } else if (!snapshots_.empty()) {
    restore(snapshots_.back());
  } else {
    clear();
  }
  return position_;
}

/// Whether all that a token at this position looks back at is still there.
bool SequenceState::can_step_back(size_t position) const {
  if (position == position_ && !in_step_) return true;
  if (has_running_) return false;
  return std::ranges::all_of(layers_, [&](const Layer& layer) {
    return position == 0 || layer.window == 0 ||
           position + layer.ring_positions + 1 >= written_end_ + layer.window;
  });
}

void SequenceState::take_snapshot() {
  CHECK(!in_step_);
  if (bounded_bytes_ == 0 || position_ == 0) return;
  if (!snapshots_.empty() && snapshots_.back().position == position_) return;
  if (snapshots_.size() == kSnapshotsMax) snapshots_.erase(snapshots_.begin());
  const size_t slot = free_slot();
  std::memcpy(snapshot_memory(slot), arena_.begin(), bounded_bytes_);
  snapshots_.push_back({position_, written_end_, slot});
}

size_t SequenceState::free_slot() const {
  size_t slot = 0;
  while (std::ranges::find(snapshots_, slot, &Snapshot::slot) != snapshots_.end()) ++slot;
  return slot;
}

void SequenceState::restore(const Snapshot& snapshot) {
  std::memcpy(arena_.begin(), snapshot_memory(snapshot.slot), bounded_bytes_);
  position_ = snapshot.position;
  written_end_ = snapshot.written_end;
  in_step_ = false;
}

void SequenceState::clear() {
  if (has_running_) std::memset(arena_.begin(), 0, bounded_bytes_);
  position_ = written_end_ = 0;
  in_step_ = false;
}

}  // namespace sluice
