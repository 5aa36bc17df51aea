#include "backend/sequence_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/units.h"

namespace sluice {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr size_t kTilesOfBlock = kernels::kAttentionBlock / kernels::kKeyTile;

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

/// Blocks that the positions before a token touch as far as it sees them, wherever the first lies.
size_t snapshot_blocks(const LayerConfig& layer) {
  return 1 + (layer.window + kernels::kAttentionBlock - 3) / kernels::kAttentionBlock;
}

/// What a window takes in place of the whole context.
size_t windowed_positions(const LayerConfig& layer, size_t ubatch_token_max) {
  return ring_for(layer, ubatch_token_max) +
         SequenceState::kSnapshotsMax * snapshot_blocks(layer) * kernels::kAttentionBlock;
}

}  // namespace

SequenceState::SequenceState(const ModelConfig& config, const Limits& limits) : limits_(limits) {
  layers_.resize(config.layer_count());
  for (size_t i = 0; i < layers_.size(); ++i) place_layer(config.layers[i], layers_[i]);
}

void SequenceState::place_layer(const LayerConfig& config, Layer& layer) {
  const size_t context = round_up(limits_.context_token_max, kernels::kAttentionBlock);
  const bool is_ring =
      config.window > 0 && windowed_positions(config, limits_.ubatch_token_max) < context;
  layer.window = is_ring ? config.window : 0;
  layer.ring_positions = is_ring ? ring_for(config, limits_.ubatch_token_max) : context;

  const uint64_t tiles = layer.ring_positions / kernels::kKeyTile;
  const auto bytes = [&](size_t row_elements) {
    return round_up(tiles * kernels::kv_tile_bytes(limits_.type, row_elements), kAlignment);
  };
  layer.value_stride = value_stride_of(config);
  layer.kv_head_count = config.kv_head_count;
  layer.key_bytes = bytes(config.key_dim);
  layer.value_bytes = bytes(layer.value_stride);
  layer.offset = layers_bytes_;
  layers_bytes_ += layer.kv_head_count * (layer.key_bytes + layer.value_bytes);

  layer.running_bytes = config.state_floats * sizeof(float);
  layer.running_offset = layers_bytes_;
  layers_bytes_ += round_up(layer.running_bytes, kAlignment);
  has_running_ |= layer.running_bytes > 0;

  layer.snapshot_offset = snapshot_bytes_;
  snapshot_bytes_ += round_up(layer.running_bytes, kAlignment);
  if (is_ring)
    snapshot_bytes_ += snapshot_blocks(config) * kTilesOfBlock * tile_bytes(config, limits_.type);
}

Result<SequenceState> SequenceState::allocate(const ModelConfig& config, const Limits& limits,
                                              Ledger& ledger) {
  SequenceState state(config, limits);
  auto arena = os::Arena::allocate(bytes_for(config, limits), "the KV cache");
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
      layers_bytes_(other.layers_bytes_),
      snapshot_bytes_(other.snapshot_bytes_),
      position_(other.position_),
      step_end_(other.step_end_),
      in_step_(other.in_step_),
      written_end_(other.written_end_),
      whole_from_(other.whole_from_),
      snapshots_(std::move(other.snapshots_)),
      planned_(other.planned_) {}

SequenceState::~SequenceState() {
  if (ledger_ != nullptr) ledger_->remove(MemoryUse::kv, arena_.bytes());
}

uint64_t SequenceState::bytes_for(const ModelConfig& config, const Limits& limits) {
  const SequenceState state(config, limits);
  return state.layers_bytes_ + kSnapshotsMax * state.snapshot_bytes_;
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
      bytes +=
          windowed_positions(layer, ubatch_token_max) / kernels::kKeyTile * tile_bytes(layer, type);
    bytes += (1 + kSnapshotsMax) * round_up(layer.state_floats * sizeof(float), kAlignment);
  }
  return bytes;
}

void SequenceState::begin_step(size_t token_count) {
  CHECK(!in_step_ && token_count <= limits_.context_token_max - position_);
  in_step_ = true;
  step_end_ = position_ + token_count;
  written_end_ = std::max(written_end_, step_end_);
}

void SequenceState::end_step() {
  CHECK(in_step_);
  in_step_ = false;
  position_ = step_end_;
  if (planned_.position == 0 || planned_.position > position_) return;
  snapshots_.push_back(planned_);
  planned_ = {};
}

size_t SequenceState::rewind(size_t position) {
  position = std::min(position, position_);
  planned_ = {};
  std::erase_if(snapshots_, [&](const Snapshot& some) { return some.position > position; });
  if (can_step_back(position))
    position_ = position;
  else if (!snapshots_.empty())
    restore(snapshots_.back());
  else
    clear();
  in_step_ = false;
  return position_;
}

/// Whether all that a token at this position looks back at is still there.
bool SequenceState::can_step_back(size_t position) const {
  if (position == position_ && !in_step_) return true;
  if (has_running_ || position < whole_from_) return false;
  return std::ranges::all_of(layers_, [&](const Layer& layer) {
    return layer.window == 0 || written_end_ <= layer.ring_positions ||
           position + layer.ring_positions + 1 >= written_end_ + layer.window;
  });
}

void SequenceState::plan_snapshot(size_t position) {
  CHECK(!in_step_ && position >= position_);
  planned_ = {};
  if (snapshot_bytes_ == 0 || position == 0) return;
  if (!snapshots_.empty() && snapshots_.back().position == position) return;
  if (snapshots_.size() == kSnapshotsMax) snapshots_.erase(snapshots_.begin());
  const Snapshot snapshot{position, free_slot()};
  if (position > position_) {
    planned_ = snapshot;
    return;
  }
  for (size_t layer = 0; layer < layers_.size(); ++layer)
    copy_layer(layer, snapshot, CopyWay::keep);
  snapshots_.push_back(snapshot);
}

size_t SequenceState::free_slot() const {
  size_t slot = 0;
  while (std::ranges::find(snapshots_, slot, &Snapshot::slot) != snapshots_.end()) ++slot;
  return slot;
}

size_t SequenceState::piece_before_snapshot(size_t first, size_t token_count) const {
  if (planned_.position <= first) return token_count;
  return std::min(token_count, planned_.position - first);
}

void SequenceState::end_piece(size_t layer, size_t position) {
  CHECK(in_step_);
  if (position == planned_.position) copy_layer(layer, planned_, CopyWay::keep);
}

/// Between a layer's place and its place in a snapshot.
void SequenceState::copy_layer(size_t index, const Snapshot& snapshot, CopyWay way) {
  const Layer& layer = layers_[index];
  std::byte* kept =
      arena_.begin() + layers_bytes_ + snapshot.slot * snapshot_bytes_ + layer.snapshot_offset;
  const auto copy = [&](std::byte* live, uint64_t bytes) {
    std::memcpy(way == CopyWay::keep ? kept : live, way == CopyWay::keep ? live : kept, bytes);
    kept += bytes;
  };
  copy(arena_.begin() + layer.running_offset, round_up(layer.running_bytes, kAlignment));
  if (layer.window == 0) return;
  const size_t ring_blocks = layer.ring_positions / kernels::kAttentionBlock;
  const size_t seen = std::min(snapshot.position, layer.window - 1);
  const size_t first = (snapshot.position - seen) / kernels::kAttentionBlock;
  const size_t end = ceil_div(snapshot.position, kernels::kAttentionBlock);
  for (size_t head = 0; head < layer.kv_head_count; ++head)
    for (size_t block = first; block < end; ++block) {
      const size_t place = block % ring_blocks;
      const uint64_t key_bytes = layer.key_bytes / ring_blocks;
      const uint64_t value_bytes = layer.value_bytes / ring_blocks;
      copy(keys(index, head) + place * key_bytes, key_bytes);
      copy(values(index, head) + place * value_bytes, value_bytes);
    }
}

void SequenceState::restore(const Snapshot& snapshot) {
  for (size_t layer = 0; layer < layers_.size(); ++layer)
    copy_layer(layer, snapshot, CopyWay::bring_back);
  position_ = written_end_ = whole_from_ = snapshot.position;
}

void SequenceState::clear() {
  for (const Layer& layer : layers_)
    std::memset(arena_.begin() + layer.running_offset, 0, layer.running_bytes);
  position_ = written_end_ = whole_from_ = 0;
}

}  // namespace sluice
