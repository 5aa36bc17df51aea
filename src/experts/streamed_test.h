// An expert store for tests: three layers in two files on a fake drive, whose bytes can be checked.
// One thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "experts/expert_store.h"
#include "testing/fake_drive.h"
#include "testing/random_bytes.h"

namespace sluice {

inline constexpr uint32_t kExperts = 9;

/// A layer's experts one after the other, parts as a GGUF file stores them: all gates, all ups, …
inline ExpertLayout layer_at(uint32_t file, uint64_t offset, std::vector<ExpertPartKind> kinds,
                             std::vector<size_t> rows) {
  std::vector<ExpertPart> parts;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const Matrix shape{
        .dtype = Dtype::f32, .rows = rows[i], .cols = 24, .row_bytes = 96, .data = nullptr};
    parts.push_back({kinds[i], shape, {file, offset, shape.bytes()}});
    offset += kExperts * shape.bytes() + 32 * i;
  }
  return ExpertLayout(kExperts, parts);
}

struct StreamedOptions {
  FakeDriveOptions drive = {};
  std::vector<uint32_t> slots = {4, 4, 2};  ///< by layer; a single number: a ring of so many
  io::ReadQueueOptions queue = {};
  uint32_t used_count = 1;
  uint32_t half_life = 0;  ///< in tokens, of decay; 0: LRU
};

/// Three layers in two files (gate and up apart, merged, apart). The first and the last are of one
/// size class.
class Streamed {
 public:
  Streamed() : Streamed(StreamedOptions()) {}
  explicit Streamed(const StreamedOptions& options)
      : drive_(options.drive, files_), queue_(drive_, {{"a.gguf"}, {"b.gguf"}}, options.queue) {
    std::vector<SlotLayout> slot_layouts;
    std::vector<uint64_t> bytes;
    for (const ExpertLayout& layout : layouts_) {
      slot_layouts.push_back(SlotLayout::of(layout, 4096));
      bytes.push_back(slot_layouts.back().slot_bytes);
    }
    auto pool =
        SlotPool::allocate(options.slots.size() == 1 ? plan_ring_pool(bytes, options.slots[0], 4096)
                                                     : plan_layer_pool(bytes, options.slots),
                           slot_layouts, ledger_);
    CHECK(pool.ok());
    pool_ = std::move(*pool);
    std::unique_ptr<EvictionPolicy> policy = std::make_unique<LruPolicy>(3 * kExperts);
    if (options.half_life > 0)
      policy = std::make_unique<DecayPolicy>(3 * kExperts, options.half_life);
    store_ = std::make_unique<ExpertStore>(*pool_, layouts_, queue_, options.used_count,
                                           std::move(policy));
  }

  ExpertStore& store() { return *store_; }
  FakeDrive& drive() { return drive_; }
  io::ReadQueue& queue() { return queue_; }
  SlotPool& pool() { return *pool_; }
  const Ledger& ledger() const { return ledger_; }
  void destroy_store() { store_.reset(); }
  const ExpertLayout& layout(uint32_t layer) const { return layouts_[layer]; }

  /// Acquires and waits until all of it is there.
  ExpertLease load(ExpertId id) {
    ExpertLease lease = store_->acquire(id, 1);
    while (lease && !is_ready(lease, id) && !store_->error()) store_->wait();
    return lease;
  }
  bool is_ready(const ExpertLease& lease, ExpertId id) const {
    return lease.ready(layouts_[id.layer].all_parts());
  }

  /// Whether the matrices hold what the file holds.
  bool has_bytes(const ExpertLease& lease, ExpertId id) const {
    std::array<const std::byte*, kExpertPartCountMax> in_file{};
    for (size_t i = 0; i < layouts_[id.layer].parts().size(); ++i) {
      const FileExtent extent = layouts_[id.layer].parts()[i].extent(id.index);
      in_file[i] = files_[extent.file].data() + extent.offset;
    }
    const ExpertView want = layouts_[id.layer].view(in_file);
    const ExpertView have = store_->view(lease);
    const auto equal = [](const Matrix& a, const Matrix& b) {
      return a.rows == b.rows && a.cols == b.cols && std::memcmp(a.data, b.data, a.bytes()) == 0;
    };
    return equal(want.gate, have.gate) && equal(want.up, have.up) && equal(want.down, have.down);
  }

  /// The sums of expert_stats.h, at any time.
  void check_sums() const {
    const ExpertStats stats = store_->stats();
    ASSERT_EQ(stats.lookup_count, stats.hit_count + stats.join_count + stats.miss_count);
    uint64_t guessed = 0, failed = 0;
    for (uint32_t layer = 0; layer < layouts_.size(); ++layer)
      for (uint32_t index = 0; index < kExperts; ++index) {
        const ExpertId id{layer, index};
        guessed += store_->whereabouts(id) == Whereabouts::guessed;
        const SlotIndex slot = store_->cache().find(id);
        failed += slot != kNoSlot && pool_->state(slot).phase() == SlotPhase::failed;
      }
    const GuessStats guesses = stats.all_guesses();
    const uint64_t open = guesses.started_count - guesses.useful_count - guesses.wasted_count -
                          guesses.cancelled_count;
    ASSERT_GE(open, guessed);
    ASSERT_LE(open, guessed + failed) << "given up, and not all of it has landed";
    ASSERT_LE(stats.prefetch_useful_bytes, stats.prefetch_bytes);
    ASSERT_LE(stats.prefetch_promoted_count, guesses.useful_count);
    const auto& demand = queue_.stats().of(io::ReadClass::demand);
    ASSERT_EQ(stats.demand_read_count, demand.started_count);
    ASSERT_EQ(ledger_.bytes(MemoryUse::cache), pool_->bytes() - store_->given_back_bytes());
    ASSERT_EQ(drive_.misaligned_count() + drive_.touched_count(), 0u);
  }

  /// Lets all reads end and checks that every slot is empty or holds a whole expert.
  void check_at_rest() {
    queue_.drain();
    check_sums();
    uint64_t held = 0;
    for (SlotIndex slot = 0; slot < pool_->table().slot_total(); ++slot) {
      const SlotPhase phase = pool_->state(slot).phase();
      ASSERT_EQ(phase, store_->cache().is_bound(slot) ? SlotPhase::resident : SlotPhase::empty);
      held += phase == SlotPhase::resident;
    }
    uint64_t found = 0;
    for (uint32_t layer = 0; layer < layouts_.size(); ++layer)
      for (uint32_t index = 0; index < kExperts; ++index)
        found += store_->is_resident({layer, index});
    ASSERT_EQ(found, held);
  }

 private:
  const std::vector<std::vector<std::byte>> files_{random_bytes(260'000, 1),
                                                   random_bytes(200'000, 2)};
  const std::vector<ExpertLayout> layouts_{
      layer_at(0, 1056, {ExpertPartKind::gate, ExpertPartKind::up, ExpertPartKind::down},
               {31, 31, 43}),
      layer_at(1, 32, {ExpertPartKind::gate_up, ExpertPartKind::down}, {70, 43}),
      layer_at(0, 120'000, {ExpertPartKind::gate, ExpertPartKind::up, ExpertPartKind::down},
               {40, 40, 43})};
  Ledger ledger_;
  FakeDrive drive_;
  io::ReadQueue queue_;
  std::unique_ptr<SlotPool> pool_;
  std::unique_ptr<ExpertStore> store_;
};

}  // namespace sluice
