#include "experts/expert_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/random.h"
#include "testing/fake_drive.h"
#include "testing/random_bytes.h"

namespace sluice {
namespace {

constexpr uint32_t kExperts = 9;

/// A layer's experts one after the other, parts as a GGUF file stores them: all gates, all ups, …
ExpertLayout layer_at(uint32_t file, uint64_t offset, std::vector<ExpertPartKind> kinds,
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

/// Three layers in two files (gate and up apart, merged, apart) on a fake drive.
class Streamed {
 public:
  explicit Streamed(FakeDriveOptions options = {}, std::vector<uint32_t> slots = {4, 4, 2},
                    io::ReadQueueOptions queue_options = {})
      : drive_(std::move(options), files_),
        queue_(drive_, {{"a.gguf"}, {"b.gguf"}}, queue_options) {
    std::vector<SlotPool::Layer> pool_layers;
    for (size_t i = 0; i < layouts_.size(); ++i)
      pool_layers.push_back({SlotLayout::of(layouts_[i], 4096), slots[i]});
    auto pool = SlotPool::allocate(std::move(pool_layers), ledger_);
    CHECK(pool.ok());
    pool_ = std::move(*pool);
    store_ = std::make_unique<ExpertStore>(*pool_, layouts_, queue_,
                                           std::make_unique<LruPolicy>(pool_->slot_total()));
  }

  ExpertStore& store() { return *store_; }
  FakeDrive& drive() { return drive_; }
  void destroy_store() { store_.reset(); }
  const ExpertLayout& layout(uint32_t layer) const { return layouts_[layer]; }

  /// Acquires and waits until all of it is there.
  ExpertLease load(ExpertId id) {
    ExpertLease lease = store_->acquire(id);
    while (lease && !lease.ready(layouts_[id.layer].all_parts()) && !store_->error())
      store_->wait();
    return lease;
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

  /// The sums of expert_stats.h, when all reads have ended.
  void check_sums(bool failed = false) {
    queue_.drain();
    const ExpertStats stats = store_->stats();
    EXPECT_EQ(stats.lookup_count, stats.hit_count + stats.join_count + stats.miss_count);
    EXPECT_EQ(drive_.misaligned_count() + drive_.touched_count(), 0u);
    const auto& reads = queue_.stats().of(io::ReadClass::demand);
    EXPECT_EQ(stats.demand_read_count, reads.started_count);
    if (!failed) {
      EXPECT_EQ(stats.demand_bytes, reads.wanted_bytes);
    }
  }

 private:
  const std::vector<std::vector<std::byte>> files_{random_bytes(260'000, 1),
                                                   random_bytes(200'000, 2)};
  const std::vector<ExpertLayout> layouts_{
      layer_at(0, 1056, {ExpertPartKind::gate, ExpertPartKind::up, ExpertPartKind::down},
               {31, 31, 43}),
      layer_at(1, 32, {ExpertPartKind::gate_up, ExpertPartKind::down}, {70, 43}),
      layer_at(0, 120'000, {ExpertPartKind::gate, ExpertPartKind::up, ExpertPartKind::down},
               {50, 50, 51})};
  Ledger ledger_;
  FakeDrive drive_;
  io::ReadQueue queue_;
  std::unique_ptr<SlotPool> pool_;
  std::unique_ptr<ExpertStore> store_;
};

TEST(ExpertStore, MissThenJoinThenHit) {
  Streamed test;
  ExpertStore& store = test.store();
  const ExpertLease miss = store.acquire({0, 3});
  ASSERT_TRUE(miss);
  EXPECT_FALSE(store.is_resident({0, 3}));
  EXPECT_TRUE(test.drive().log().empty()) << "reads start with the next pump";
  const ExpertLease join = store.acquire({0, 3});
  ASSERT_TRUE(join);
  const ExpertLease lease = test.load({0, 3});
  EXPECT_TRUE(store.is_resident({0, 3}));
  EXPECT_TRUE(test.has_bytes(lease, {0, 3}));
  EXPECT_TRUE(store.acquire({0, 3}));
  EXPECT_EQ(test.drive().log().size(), 3u) << "a read for each part, once";
  const ExpertStats stats = store.stats();
  EXPECT_EQ(stats.lookup_count, 4u);
  EXPECT_EQ(stats.miss_count, 1u);
  EXPECT_EQ(stats.join_count, 2u);
  EXPECT_EQ(stats.hit_count, 1u);
  EXPECT_EQ(stats.demand_read_count, 3u);
  EXPECT_EQ(stats.demand_bytes, 96u * (31 + 31 + 43));
  test.check_sums();
}

TEST(ExpertStore, EveryExpertHasItsBytes) {
  Streamed test;
  for (uint32_t layer = 0; layer < 3; ++layer)
    for (uint32_t index = 0; index < kExperts; ++index) {
      const ExpertLease lease = test.load({layer, index});
      EXPECT_TRUE(test.has_bytes(lease, {layer, index})) << layer << ' ' << index;
    }
  EXPECT_EQ(test.store().stats().miss_count, 3u * kExperts);
  EXPECT_EQ(test.store().stats().eviction_count, 3u * kExperts - (4 + 4 + 2));
  EXPECT_EQ(test.store().stats().demand_read_count, kExperts * (3u + 2 + 3));
  test.check_sums();
}

TEST(ExpertStore, GateAndUpAreReadyBeforeDown) {
  Streamed test({.planned = {{2, FakeFault::delayed}}});
  const ExpertLease lease = test.store().acquire({0, 0});
  const ExpertLayout& layout = test.layout(0);
  while (!lease.ready(layout.gate_up_parts())) test.store().wait();
  EXPECT_FALSE(lease.ready(layout.down_parts()));
  EXPECT_FALSE(test.store().is_resident({0, 0}));
  test.store().wait();
  EXPECT_TRUE(lease.ready(layout.all_parts()));
}

TEST(ExpertStore, WithoutASlotThereIsNoLease) {
  Streamed test;
  ExpertStore& store = test.store();
  ExpertLease first = test.load({2, 0});
  const ExpertLease second = test.load({2, 1});
  EXPECT_FALSE(store.acquire({2, 5}));
  EXPECT_EQ(store.stats().lookup_count, 2u) << "a lookup counts when it succeeds";
  first = {};
  const ExpertLease third = test.load({2, 5});
  ASSERT_TRUE(third);
  EXPECT_TRUE(test.has_bytes(second, {2, 1}));
  EXPECT_TRUE(test.has_bytes(third, {2, 5}));
  EXPECT_FALSE(store.is_resident({2, 0}));
  test.check_sums();
}

TEST(ExpertStore, WithoutRoomForRequestsThereIsNoLeaseEither) {
  Streamed test({}, {4, 4, 2}, {.request_count_max = 5});
  const ExpertLease first = test.store().acquire({0, 0});
  EXPECT_TRUE(first);
  EXPECT_FALSE(test.store().acquire({0, 1}));
  test.store().wait();
  EXPECT_TRUE(test.store().acquire({0, 1}));
  test.check_sums();
}

TEST(ExpertLease, MovesAndIsDroppedOnce) {
  Streamed test;
  ExpertLease a = test.load({2, 0});
  ExpertLease b = std::move(a);
  EXPECT_TRUE(b);
  ExpertLease c = test.load({2, 1});
  EXPECT_FALSE(test.store().acquire({2, 2}));
  c = std::move(b);  // drops the lease on {2, 1}
  EXPECT_TRUE(test.has_bytes(c, {2, 0}));
  EXPECT_TRUE(test.store().acquire({2, 2}));
  EXPECT_FALSE(test.store().is_resident({2, 1}));
  c = {};
  EXPECT_TRUE(test.store().acquire({2, 3}));
}

TEST(ExpertStore, AFailedPartIsNeverResidentAndSettleRecovers) {
  for (uint64_t part = 0; part < 3; ++part) {
    SCOPED_TRACE(part);
    Streamed test({.planned = {{part, FakeFault::broken}}});
    ExpertStore& store = test.store();
    ExpertLease bad = store.acquire({0, 7});
    ExpertLease good = store.acquire({0, 8});
    while (!store.error()) store.wait();
    EXPECT_EQ(store.error()->kind, ErrorKind::io);
    EXPECT_FALSE(bad.ready(test.layout(0).all_parts()));
    EXPECT_FALSE(store.is_resident({0, 7}));
    bad = {};
    good = {};
    store.settle();
    EXPECT_FALSE(store.error().has_value());
    EXPECT_FALSE(store.is_resident({0, 7}));
    EXPECT_TRUE(store.is_resident({0, 8})) << "its reads were awaited";
    EXPECT_TRUE(test.has_bytes(store.acquire({0, 8}), {0, 8}));
    EXPECT_EQ(store.stats().hit_count, 1u);

    bad = test.load({0, 7});
    EXPECT_TRUE(test.has_bytes(bad, {0, 7})) << "trying again gives the right bytes";
    test.check_sums(true);
  }
}

TEST(ExpertStore, AllPartsMayFail) {
  Streamed test;
  for (int round = 0; round < 3; ++round) {
    test.drive().break_range({0, 0, 260'000});
    for (uint32_t index = 0; index < 4; ++index) EXPECT_TRUE(test.store().acquire({0, index}));
    while (!test.store().error()) test.store().wait();
    test.store().settle();
  }
  EXPECT_EQ(test.store().stats().miss_count, 12u) << "slots of failed reads are used again";
  EXPECT_TRUE(test.has_bytes(test.load({1, 0}), {1, 0})) << "the other file is well";
}

TEST(ExpertStore, DestructionWaitsForItsReads) {
  Streamed test;
  for (uint32_t index = 0; index < 4; ++index) test.store().acquire({1, index});
  test.store().pump();
  EXPECT_GT(test.drive().in_flight_count(), 0u);
  test.destroy_store();
  EXPECT_EQ(test.drive().in_flight_count(), 0u);
}

TEST(ExpertStore, PreloadReadsEverything) {
  Streamed test({.seed = 3, .shares = {.short_unaligned = 0.2, .delayed = 0.2}, .reorder = true},
                {kExperts, kExperts, kExperts}, {.request_count_max = 7});
  ASSERT_TRUE(test.store().preload().ok());
  for (uint32_t layer = 0; layer < 3; ++layer)
    for (uint32_t index = 0; index < kExperts; ++index)
      EXPECT_TRUE(test.has_bytes(test.store().acquire({layer, index}), {layer, index}));
  const ExpertStats stats = test.store().stats();
  EXPECT_EQ(stats.hit_count, 3u * kExperts);
  EXPECT_EQ(stats.demand_read_count + stats.eviction_count, 0u);
  test.check_sums();
}

TEST(ExpertStore, AFailedPreloadSaysWhy) {
  Streamed test({.planned = {{20, FakeFault::broken}}}, {kExperts, kExperts, kExperts});
  const Status loaded = test.store().preload();
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("a.gguf: reading"), std::string::npos);
  EXPECT_FALSE(test.store().error().has_value());
}

TEST(ExpertStore, GivingUpDropsWhatHasNotStarted) {
  Streamed test({.depth_max = 2});
  for (uint32_t index = 0; index < 3; ++index) EXPECT_TRUE(test.store().acquire({0, index}));
  test.store().pump();
  test.store().give_up();
  EXPECT_EQ(test.drive().log().size(), 2u) << "of nine reads";
  EXPECT_FALSE(test.store().error().has_value());
  for (uint32_t index = 0; index < 3; ++index) {
    EXPECT_FALSE(test.store().is_resident({0, index}));
    EXPECT_TRUE(test.has_bytes(test.load({0, index}), {0, index}));
  }
}

TEST(ExpertStore, AfterAnErrorThereIsNoLeaseBeforeSettling) {
  Streamed test({.planned = {{0, FakeFault::broken}}});
  test.load({1, 0});
  ASSERT_TRUE(test.store().error().has_value());
  EXPECT_FALSE(test.store().acquire({1, 0}));
  EXPECT_FALSE(test.store().acquire({1, 1}));
  test.store().settle();
  EXPECT_TRUE(test.store().acquire({1, 0}));
}

TEST(ExpertStore, DistinctExpertsAreCountedFromAMark) {
  Streamed test;
  for (const uint32_t index : {0, 1, 0, 1, 2}) test.load({0, index});
  test.load({1, 0});
  EXPECT_EQ(test.store().stats().distinct_count, 4u);
  test.store().mark();
  for (const uint32_t index : {2, 3, 2}) test.load({0, index});
  EXPECT_EQ(test.store().stats().distinct_count, 6u);
}

TEST(ExpertStore, ForgettingEmptiesEverySlot) {
  Streamed test;
  for (uint32_t index = 0; index < 4; ++index) test.load({0, index});
  test.store().forget_all();
  for (uint32_t index = 0; index < 4; ++index) EXPECT_FALSE(test.store().is_resident({0, index}));
  EXPECT_TRUE(test.has_bytes(test.load({0, 0}), {0, 0}));
  EXPECT_EQ(test.store().stats().miss_count, 5u);
  EXPECT_EQ(test.store().stats().eviction_count, 0u);
}

TEST(ExpertStore, AStoppedPreloadSaysSo) {
  Streamed test({}, {kExperts, kExperts, kExperts});
  const std::atomic<bool> stop{true};
  const Status loaded = test.store().preload(&stop);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(test.drive().in_flight_count(), 0u);
}

/// Leases taken and dropped in random order while the drive misbehaves. A lease that says ready
/// holds the file's bytes, always.
void run_random_traffic(uint64_t seed, bool with_errors) {
  Random random(seed);
  Streamed test({.seed = seed,
                 .depth_max = 1 + random.below(12),
                 .shares = {.short_aligned = 0.1,
                            .short_unaligned = 0.1,
                            .interrupted = 0.1,
                            .busy = 0.1,
                            .broken = with_errors ? 0.02 : 0,
                            .delayed = 0.1},
                 .reorder = true});
  ExpertStore& store = test.store();
  std::vector<std::pair<ExpertId, ExpertLease>> held;
  uint64_t lookups = 0;
  for (int step = 0; step < 150; ++step) {
    const uint64_t what = random.below(10);
    if (what < 5) {
      const ExpertId id{static_cast<uint32_t>(random.below(3)),
                        static_cast<uint32_t>(random.below(kExperts))};
      const bool here = store.is_resident(id);
      const uint64_t hits = store.stats().hit_count;
      ExpertLease lease = store.acquire(id);
      EXPECT_EQ(store.stats().hit_count - hits, here ? 1u : 0u);
      if (lease) held.emplace_back(id, std::move(lease)), ++lookups;
    } else if (what < 7 && !held.empty()) {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(random.below(held.size())));
    } else if (what < 9) {
      store.pump();
    } else if (std::ranges::any_of(held, [&](const auto& one) {
                 return !one.second.ready(test.layout(one.first.layer).all_parts());
               })) {
      if (!store.error()) store.wait();
    }
    if (store.error() || (with_errors && random.below(20) == 0)) {
      ASSERT_TRUE(with_errors) << store.error()->message;
      held.clear();
      store.settle();
    }
    for (const auto& [id, lease] : held)
      if (lease.ready(test.layout(id.layer).all_parts())) {
        ASSERT_TRUE(test.has_bytes(lease, id));
      }
  }
  EXPECT_EQ(store.stats().lookup_count, lookups);
  held.clear();
  test.check_sums(with_errors);
}

TEST(ExpertStoreRandom, ReadyMeansTheRightBytes) {
  for (uint64_t seed = 1; seed <= 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    run_random_traffic(seed, false);
  }
}

TEST(ExpertStoreRandom, AlsoWhenReadsFail) {
  for (uint64_t seed = 1; seed <= 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    run_random_traffic(seed, true);
  }
}

}  // namespace
}  // namespace sluice
