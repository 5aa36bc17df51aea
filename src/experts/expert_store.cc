#include "experts/expert_store.h"

#include <algorithm>

#include "io/window.h"

namespace sluice {
namespace {

/// What preload keeps in the queue: enough for any drive, little to wait for when it is stopped.
constexpr size_t kPreloadRequestsMax = 256;

/// Guesses that wait; beyond, the least urgent are dropped.
constexpr size_t kGuessesMax = 1024;

std::vector<uint32_t> expert_counts(std::span<const ExpertLayout> layouts) {
  std::vector<uint32_t> counts;
  for (const ExpertLayout& layout : layouts) counts.push_back(layout.expert_count());
  return counts;
}

/// A read's tag names the slot and the part it fills.
constexpr uint64_t tag_of(SlotIndex slot, size_t part) {
  return uint64_t{slot} << 8 | part;
}

}  // namespace

ExpertStore::ExpertStore(SlotPool& pool, std::span<const ExpertLayout> layouts,
                         io::ReadQueue& queue, uint32_t used_count,
                         std::unique_ptr<EvictionPolicy> policy)
    : pool_(pool),
      layouts_(layouts),
      queue_(queue),
      cache_(pool.table(), {.expert_counts = expert_counts(layouts), .used_count = used_count},
             std::move(policy)),
      guesses_(kGuessesMax),
      reads_(pool.table().slot_total()),
      guess_distance_(pool.table().slot_total()),
      is_chosen_(std::ranges::max(expert_counts(layouts))) {
  guessed_slots_.reserve(pool.table().slot_total());
  failed_.reserve(pool.table().slot_total());
}

ExpertStore::~ExpertStore() {
  queue_.drain();
}

bool ExpertStore::is_resident(ExpertId id) const {
  const SlotIndex slot = cache_.find(id);
  return slot != kNoSlot && pool_.state(slot).phase() == SlotPhase::resident;
}

Whereabouts ExpertStore::whereabouts(ExpertId id) const {
  const SlotIndex slot = cache_.find(id);
  if (slot == kNoSlot || pool_.state(slot).phase() == SlotPhase::failed) return Whereabouts::absent;
  if (guess_distance_[slot]) return Whereabouts::guessed;
  const bool resident = pool_.state(slot).phase() == SlotPhase::resident;
  return resident ? Whereabouts::resident : Whereabouts::coming;
}

void ExpertStore::begin_layer(uint32_t layer, std::span<const int32_t> chosen, Ranking ranking) {
  cache_.begin_layer(layer, ranking, chosen);
  if (guesses_.empty() && guessed_slots_.empty()) return;
  guesses_.drop_layer(layer);
  for (const int32_t expert : chosen) is_chosen_[static_cast<size_t>(expert)] = true;
  for (size_t i = guessed_slots_.size(); i-- > 0;) {
    const ExpertId id = cache_.id_of(guessed_slots_[i]);
    if (id.layer == layer && !is_chosen_[id.index]) give_up_guess(guessed_slots_[i]);
  }
  for (const int32_t expert : chosen) is_chosen_[static_cast<size_t>(expert)] = false;
}

ExpertLease ExpertStore::acquire(ExpertId id, double weight) {
  if (error_) return {};
  SlotIndex slot = cache_.find(id);
  if (slot == kNoSlot) {
    slot = start_reads(id, Reason::demand);
    if (slot == kNoSlot) return {};
    ++stats_.miss_count;
  } else {
    const SlotPhase phase = pool_.state(slot).phase();
    if (phase == SlotPhase::failed) return {};  // given up, and its last reads are still landing
    if (phase == SlotPhase::reading) join(slot);
    ++(phase == SlotPhase::resident ? stats_.hit_count : stats_.join_count);
  }
  cache_.use(slot, weight);
  if (guess_distance_[slot]) {
    ++guess_stats(slot).useful_count;
    stats_.prefetch_useful_bytes += layouts_[id.layer].expert_bytes();
    guess_distance_[slot].reset();
  }
  ++stats_.lookup_count;
  stats_.distinct_count += cache_.first_since_mark(id);
  return ExpertLease(pool_.state(slot), slot, id);
}

/// What has not started of the expert's reads becomes demand.
void ExpertStore::join(SlotIndex slot) {
  SlotReads& reads = reads_[slot];
  if (reads.reason == Reason::demand) return;
  bool promoted = false;
  for (const io::RequestHandle part : reads.parts) promoted |= queue_.promote(part);
  if (reads.reason == Reason::guess) stats_.prefetch_promoted_count += promoted;
  reads.reason = Reason::demand;
  std::erase(guessed_slots_, slot);
}

io::ReadClass ExpertStore::read_class_of(Reason reason) {
  switch (reason) {
    case Reason::demand:
      return io::ReadClass::demand;
    case Reason::load:
      return io::ReadClass::load;
    case Reason::guess:
    case Reason::idle_fill:
      break;
  }
  return io::ReadClass::prefetch;
}

/// Binds a slot and hands in the expert's reads; kNoSlot when there is no room for either.
SlotIndex ExpertStore::start_reads(ExpertId id, Reason reason) {
  if (!queue_.has_room(kExpertPartCountMax)) return kNoSlot;
  const SlotUse use = reason == Reason::guess       ? SlotUse::prefetch
                      : reason == Reason::idle_fill ? SlotUse::idle_fill
                                                    : SlotUse::demand;
  const SlotIndex slot = cache_.bind(id, use);
  if (slot == kNoSlot) return kNoSlot;
  note_gone(slot);
  const auto parts = layouts_[id.layer].parts();
  pool_.state(slot).begin_read();
  SlotReads& reads = reads_[slot];
  reads = {.parts = {}, .left_count = static_cast<uint32_t>(parts.size()), .reason = reason};
  for (size_t part = 0; part < parts.size(); ++part)
    reads.parts[part] = queue_.push({.wanted = parts[part].extent(id.index),
                                     .buffer = pool_.part_window(id.layer, slot, part),
                                     .read_class = read_class_of(reason),
                                     .tag = tag_of(slot, part),
                                     .sink = {on_part_read, this}});
  if (reason == Reason::demand) {
    stats_.demand_read_count += parts.size();
    stats_.demand_bytes += layouts_[id.layer].expert_bytes();
  } else if (reason == Reason::guess) {
    stats_.prefetch_read_count += parts.size();
    stats_.prefetch_bytes += layouts_[id.layer].expert_bytes();
  }
  if (reason == Reason::guess || reason == Reason::idle_fill) guessed_slots_.push_back(slot);
  return slot;
}

/// The expert that was in the slot has left it.
void ExpertStore::note_gone(SlotIndex slot) {
  if (guess_distance_[slot]) ++guess_stats(slot).wasted_count;
  guess_distance_[slot].reset();
}

void ExpertStore::on_part_read(void* context, uint64_t tag, const Error* error) {
  auto& store = *static_cast<ExpertStore*>(context);
  const auto slot = static_cast<SlotIndex>(tag >> 8);
  ++store.ended_part_count_;
  SlotState& state = store.pool_.state(slot);
  SlotReads& reads = store.reads_[slot];
  if (error == nullptr) {
    const PartMask all = store.layouts_[store.cache_.id_of(slot).layer].all_parts();
    state.part_ready(PartMask{1} << (tag & 0xff), all);
  } else {
    const bool wanted = reads.reason == Reason::demand || reads.reason == Reason::load;
    if (wanted && !store.error_) store.error_ = *error;
    state.fail();
  }
  if (--reads.left_count == 0) store.end_reads(slot);
}

/// The last read of a slot has ended, well or not.
void ExpertStore::end_reads(SlotIndex slot) {
  const Reason reason = reads_[slot].reason;
  const uint32_t layer = cache_.id_of(slot).layer;
  if (reason == Reason::guess || reason == Reason::idle_fill) std::erase(guessed_slots_, slot);
  const SlotState& state = pool_.state(slot);
  if (state.phase() != SlotPhase::failed) {
    stats_.idle_fill_count += reason == Reason::idle_fill;
    return;
  }
  if (reason == Reason::guess) {
    ++guess_stats(slot).cancelled_count;
    guess_distance_[slot].reset();
    stats_.prefetch_bytes -= layouts_[layer].expert_bytes();
  }
  if (state.lease_count() == 0)
    cache_.unbind(slot);
  else
    failed_.push_back(slot);
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

void ExpertStore::guess(const Guess& guess) {
  if (guess.distance != kNextToken) cache_.predict(guess.id);
  if (cache_.find(guess.id) == kNoSlot) guesses_.add(guess);
}

/// Late binding: a guess takes a slot from a resident expert only when the drive is ready for it.
void ExpertStore::bind_guesses() {
  while (!guesses_.empty() && queue_.wants_prefetch()) {
    const Guess guess = guesses_.pop();
    if (cache_.find(guess.id) != kNoSlot) continue;
    const SlotIndex slot = start_reads(guess.id, Reason::guess);
    if (slot == kNoSlot) continue;
    const bool in_token = guess.distance != kNextToken;
    guess_distance_[slot] =
        in_token ? static_cast<uint8_t>(std::min(guess.distance, kGuessDistanceMax)) : uint8_t{0};
    ++guess_stats(slot).started_count;
    queue_.pump();
  }
}

/// Nothing more of it is started, and nobody may join it; its slot is free when what is in flight
/// has landed.
void ExpertStore::give_up_guess(SlotIndex slot) {
  CHECK(pool_.state(slot).try_give_up());
  const SlotReads reads = reads_[slot];  // cancelling the last part ends the slot's reads
  for (const io::RequestHandle part : reads.parts) queue_.cancel(part);
}

void ExpertStore::drop_guesses() {
  guesses_.clear();
  for (size_t i = guessed_slots_.size(); i-- > 0;) give_up_guess(guessed_slots_[i]);
}

bool ExpertStore::fill(ExpertId id) {
  return cache_.find(id) == kNoSlot && start_reads(id, Reason::idle_fill) != kNoSlot;
}

void ExpertStore::pump() {
  queue_.pump();
  if (!guesses_.empty()) bind_guesses();
}

void ExpertStore::wait() {
  CHECK(is_reading());
  const uint64_t start = queue_.now_ns();
  const uint64_t ended = ended_part_count_;
  pump();
  if (ended_part_count_ == ended) queue_.wait();
  stats_.stall_ns += queue_.now_ns() - start;
}

void ExpertStore::give_up() {
  end_lending();
  drop_guesses();
  queue_.give_up_waiting();
  settle();
}

void ExpertStore::settle() {
  queue_.drain();
  for (const SlotIndex slot : failed_) cache_.unbind(slot);
  failed_.clear();
  error_.reset();
}

void ExpertStore::forget_all() {
  drop_guesses();
  settle();
  cache_.clear();
  for (SlotIndex slot = 0; slot < guess_distance_.size(); ++slot) note_gone(slot);
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
      CHECK(start_reads({layer, index}, Reason::load) != kNoSlot);
    }
  }
  queue_.drain();
  const std::optional<Error> error = error_;
  settle();
  return error ? Status(*error) : Status();
}

uint64_t ExpertStore::give_back(uint64_t bytes) {
  const SlotPlan& plan = pool_.table().plan();
  const auto share_in_use = [&](uint32_t i) {
    const double out = cache_.withdrawn_count(i);
    return 1.0 - out / plan.classes[i].slot_count;
  };
  std::vector<bool> is_spent(plan.classes.size());
  uint64_t given = 0;
  while (given < bytes) {
    uint32_t fullest = kNoSlotClass;
    for (uint32_t i = 0; i < plan.classes.size(); ++i)
      if (!is_spent[i] && (fullest == kNoSlotClass || share_in_use(i) > share_in_use(fullest)))
        fullest = i;
    if (fullest == kNoSlotClass) break;
    const SlotIndex slot = cache_.withdraw(fullest);
    if (slot == kNoSlot) {
      is_spent[fullest] = true;
      continue;
    }
    note_gone(slot);
    pool_.release(slot);
    given += plan.classes[fullest].slot_bytes;
  }
  given_back_bytes_ += given;
  return given;
}

uint64_t ExpertStore::take_back(uint64_t bytes) {
  const SlotPlan& plan = pool_.table().plan();
  uint64_t taken = 0;
  for (uint32_t i = 0; i < plan.classes.size(); ++i) {
    while (cache_.withdrawn_count(i) > 0 && taken + plan.classes[i].slot_bytes <= bytes) {
      pool_.restore(cache_.restore(i));
      taken += plan.classes[i].slot_bytes;
    }
  }
  given_back_bytes_ -= taken;
  return taken;
}

ExpertStats ExpertStore::stats() const {
  ExpertStats stats = stats_;
  stats.eviction_count = cache_.eviction_count();
  stats.regret_count = cache_.regret_count();
  return stats;
}

}  // namespace sluice
