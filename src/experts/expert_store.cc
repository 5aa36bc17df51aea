#include "experts/expert_store.h"

#include <algorithm>

#include "io/window.h"
#include "os/clock.h"

namespace sluice {
namespace {

std::vector<uint32_t> expert_counts(std::span<const ExpertLayout> layouts) {
  std::vector<uint32_t> counts;
  for (const ExpertLayout& layout : layouts) counts.push_back(layout.expert_count());
  return counts;
}

/// A read's tag names the slot and the part it fills.
constexpr uint64_t tag_of(SlotIndex slot, size_t part) {
  return uint64_t{slot} << 8 | part;
}

/// What preload keeps in the queue: enough for any drive, little to wait for when it is stopped.
constexpr size_t kPreloadRequestsMax = 256;

}  // namespace

ExpertStore::ExpertStore(SlotPool& pool, std::span<const ExpertLayout> layouts,
                         io::ReadQueue& queue, std::unique_ptr<EvictionPolicy> policy)
    : pool_(pool),
      layouts_(layouts),
      queue_(queue),
      cache_(pool, expert_counts(layouts), std::move(policy)) {
  for (uint32_t layer = 0; layer < pool.layer_count(); ++layer)
    layer_of_.insert(layer_of_.end(), pool.slot_count(layer), layer);
  failed_.reserve(pool.slot_total());
}

ExpertStore::~ExpertStore() {
  queue_.drain();
}

bool ExpertStore::is_resident(ExpertId id) const {
  const SlotIndex slot = cache_.find(id);
  return slot != kNoSlot && pool_.state(slot).phase() == SlotPhase::resident;
}

ExpertLease ExpertStore::acquire(ExpertId id) {
  if (error_) return {};
  SlotIndex slot = cache_.find(id);
  if (slot != kNoSlot) {
    cache_.touch(slot);
    const bool resident = pool_.state(slot).phase() == SlotPhase::resident;
    ++(resident ? stats_.hit_count : stats_.join_count);
  } else {
    if (!queue_.has_room(kExpertPartCountMax)) return {};
    slot = cache_.bind(id);
    if (slot == kNoSlot) return {};
    ++stats_.miss_count;
    read_parts(id, slot, io::ReadClass::demand);
  }
  ++stats_.lookup_count;
  stats_.distinct_count += cache_.first_since_mark(id);
  return ExpertLease(pool_.state(slot), slot, id);
}

void ExpertStore::read_parts(ExpertId id, SlotIndex slot, io::ReadClass read_class) {
  const auto parts = layouts_[id.layer].parts();
  pool_.state(slot).begin_read();
  for (size_t part = 0; part < parts.size(); ++part) {
    queue_.push({.wanted = parts[part].extent(id.index),
                 .buffer = pool_.part_window(id.layer, slot, part),
                 .read_class = read_class,
                 .tag = tag_of(slot, part),
                 .sink = {on_part_read, this}});
    if (read_class != io::ReadClass::demand) continue;
    ++stats_.demand_read_count;
    stats_.demand_bytes += parts[part].first_expert.bytes;
  }
}

void ExpertStore::on_part_read(void* context, uint64_t tag, const Error* error) {
  auto& store = *static_cast<ExpertStore*>(context);
  const auto slot = static_cast<SlotIndex>(tag >> 8);
  SlotState& state = store.pool_.state(slot);
  if (error == nullptr) {
    const PartMask all = store.layouts_[store.layer_of_[slot]].all_parts();
    return state.part_ready(PartMask{1} << (tag & 0xff), all);
  }
  if (state.phase() != SlotPhase::failed) store.failed_.push_back(slot);
  state.fail();
  if (!store.error_) store.error_ = *error;
}

ExpertView ExpertStore::view(const ExpertLease& lease) const {
  const ExpertId id = lease.id_;
  const ExpertLayout& layout = layouts_[id.layer];
  std::array<const std::byte*, kExpertPartCountMax> part_data{};
  for (size_t part = 0; part < layout.parts().size(); ++part) {
    const FileExtent extent = layout.parts()[part].extent(id.index);
    const uint64_t head = io::window_of(extent, queue_.alignment(extent.file)).head;
    part_data[part] = pool_.part_window(id.layer, lease.slot_, part) + head;
  }
  return layout.view(part_data);
}

void ExpertStore::wait() {
  const uint64_t start = os::now_ns();
  queue_.wait();
  stats_.stall_ns += os::now_ns() - start;
}

void ExpertStore::give_up() {
  queue_.give_up_waiting();
  settle();
}

void ExpertStore::settle() {
  queue_.drain();
  for (const SlotIndex slot : failed_) cache_.discard(slot);
  failed_.clear();
  error_.reset();
}

Status ExpertStore::preload(const std::atomic<bool>* stop) {
  const auto stopped = [&] { return stop != nullptr && stop->load(std::memory_order_relaxed); };
  const auto has_room = [&] {
    return queue_.has_room(kExpertPartCountMax) && queue_.request_count() < kPreloadRequestsMax;
  };
  for (uint32_t layer = 0; layer < layouts_.size(); ++layer) {
    for (uint32_t index = 0; index < layouts_[layer].expert_count(); ++index) {
      while (!has_room()) queue_.wait();
      if (error_ || stopped()) {
        const Error error =
            error_.value_or(make_error(ErrorKind::interrupted, "interrupted while loading"));
        give_up();
        return error;
      }
      const SlotIndex slot = cache_.bind({layer, index});
      CHECK(slot != kNoSlot);
      read_parts({layer, index}, slot, io::ReadClass::load);
    }
  }
  queue_.drain();
  const std::optional<Error> error = error_;
  settle();
  return error ? Status(*error) : Status();
}

ExpertStats ExpertStore::stats() const {
  ExpertStats stats = stats_;
  stats.eviction_count = cache_.eviction_count();
  return stats;
}

}  // namespace sluice
