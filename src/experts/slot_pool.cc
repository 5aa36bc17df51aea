#include "experts/slot_pool.h"

#include "io/window.h"

namespace sluice {
namespace {

/// Tensors of a GGUF file begin at multiples of its alignment, which is at least this; an expert's
/// slice begins a whole number of its own sizes further on.
constexpr uint64_t kOffsetGranularity = 32;

}  // namespace

SlotLayout SlotLayout::of(const ExpertLayout& layer, uint64_t alignment) {
  SlotLayout layout;
  layout.alignment = alignment;
  const auto parts = layer.parts();
  for (size_t i = 0; i < parts.size(); ++i) {
    layout.part_offset[i] = layout.slot_bytes;
    const FileExtent& first = parts[i].first_expert;
    const bool granular =
        first.offset % kOffsetGranularity == 0 && first.bytes % kOffsetGranularity == 0;
    layout.slot_bytes +=
        io::window_bytes_max(first.bytes, alignment, granular ? kOffsetGranularity : 1);
  }
  return layout;
}

SlotPool::SlotPool(std::vector<Layer> layers, Ledger& ledger)
    : layers_(std::move(layers)), ledger_(ledger) {
  SlotIndex slots = 0;
  uint64_t bytes = 0;
  for (const Layer& layer : layers_) {
    bytes = round_up(bytes, layer.layout.alignment);  // that of the layer before may be smaller
    first_slot_.push_back(slots);
    first_byte_.push_back(bytes);
    slots += layer.slot_count;
    bytes += layer.slot_count * layer.layout.slot_bytes;
  }
  first_slot_.push_back(slots);
  first_byte_.push_back(bytes);
  states_ = std::make_unique<SlotState[]>(slots);
}

Result<std::unique_ptr<SlotPool>> SlotPool::allocate(std::vector<Layer> layers, Ledger& ledger) {
  std::unique_ptr<SlotPool> pool(new SlotPool(std::move(layers), ledger));
  auto arena = os::Arena::allocate(pool->first_byte_.back(), "the expert cache");
  if (!arena) return arena.error();
  pool->arena_ = std::move(*arena);
  ledger.add(MemoryUse::cache, pool->arena_.bytes());
  return pool;
}

std::vector<std::span<const std::byte>> SlotPool::resident_pieces() const {
  std::vector<std::span<const std::byte>> pieces;
  for (size_t layer = 0; layer < layer_count(); ++layer)
    for (SlotIndex slot = first_slot(layer); slot < first_slot_[layer + 1]; ++slot)
      if (state(slot).phase() == SlotPhase::resident)
        pieces.emplace_back(part_window(layer, slot, 0), layers_[layer].layout.slot_bytes);
  return pieces;
}

SlotPool::~SlotPool() {
  if (arena_.bytes() > 0) ledger_.remove(MemoryUse::cache, arena_.bytes());
}

}  // namespace sluice
