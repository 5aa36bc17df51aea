#include "experts/slot_pool.h"

#include <algorithm>

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

SlotPool::SlotPool(SlotPlan plan, std::vector<SlotLayout> layouts, Ledger& ledger)
    : table_(std::move(plan)), layouts_(std::move(layouts)), ledger_(ledger) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < table_.plan().classes.size(); ++i) {
    uint64_t alignment = 1;
    for (size_t layer = 0; layer < layouts_.size(); ++layer) {
      if (table_.class_of(static_cast<uint32_t>(layer)) != i) continue;
      CHECK(layouts_[layer].slot_bytes <= table_.plan().classes[i].slot_bytes);
      alignment = std::max(alignment, layouts_[layer].alignment);
    }
    bytes = round_up(bytes, alignment);  // that of the class before may be smaller
    first_byte_.push_back(bytes);
    bytes += table_.plan().classes[i].slot_count * table_.plan().classes[i].slot_bytes;
    CHECK(table_.plan().classes[i].slot_bytes % alignment == 0);
  }
  first_byte_.push_back(bytes);
}

Result<std::unique_ptr<SlotPool>> SlotPool::allocate(SlotPlan plan, std::vector<SlotLayout> layouts,
                                                     Ledger& ledger) {
  std::unique_ptr<SlotPool> pool(new SlotPool(std::move(plan), std::move(layouts), ledger));
  auto arena = os::Arena::allocate(pool->first_byte_.back(), "the expert cache");
  if (!arena) return arena.error();
  pool->arena_ = std::move(*arena);
  pool->ledger_bytes_ = pool->arena_.bytes();
  ledger.add(MemoryUse::cache, pool->ledger_bytes_);
  return pool;
}

std::vector<std::span<const std::byte>> SlotPool::resident_pieces() const {
  std::vector<std::span<const std::byte>> pieces;
  for (SlotIndex slot = 0; slot < table_.slot_total(); ++slot)
    if (state(slot).phase() == SlotPhase::resident)
      pieces.emplace_back(slot_begin(slot), slot_bytes(slot));
  return pieces;
}

/// The pages that belong to a slot alone: those it shares with its neighbours stay as they are.
SlotPool::PageRange SlotPool::own_pages(SlotIndex slot) const {
  const uint64_t page = os::page_bytes();
  const auto begin = static_cast<uint64_t>(slot_begin(slot) - arena_.begin());
  const uint64_t first = round_up(begin, page);
  const uint64_t end = round_down(begin + slot_bytes(slot), page);
  return {first, end - std::min(first, end)};
}

void SlotPool::release(SlotIndex slot) {
  CHECK(state(slot).phase() == SlotPhase::empty);
  const PageRange pages = own_pages(slot);
  arena_.release_pages(pages.offset, pages.bytes);
  ledger_.remove(MemoryUse::cache, slot_bytes(slot));
  ledger_bytes_ -= slot_bytes(slot);
}

void SlotPool::restore(SlotIndex slot) {
  const PageRange pages = own_pages(slot);
  arena_.reuse_pages(pages.offset, pages.bytes);
  ledger_.add(MemoryUse::cache, slot_bytes(slot));
  ledger_bytes_ += slot_bytes(slot);
}

SlotPool::~SlotPool() {
  if (ledger_bytes_ > 0) ledger_.remove(MemoryUse::cache, ledger_bytes_);
}

}  // namespace sluice
