// The expert store under random traffic: everything that may be asked of it, in any order, over a
// drive that may shorten, delay, reorder and break reads. After each step the sums hold, whoever
// holds a lease that is ready has the file's bytes, and nobody is left to wait for nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "experts/streamed_test.h"

namespace sluice {
namespace {

struct Weather {
  const char* name;
  FakeFaultShares shares;
};

/// For the names of failed tests.
void PrintTo(const Weather& weather, std::ostream* out) {
  *out << weather.name;
}

const std::array kWeathers{
    Weather{"fair", {}},
    Weather{"rough",
            {.short_aligned = 0.1,
             .short_unaligned = 0.1,
             .interrupted = 0.1,
             .busy = 0.1,
             .delayed = 0.1}},
    Weather{"stormy", {.short_aligned = 0.1, .interrupted = 0.1, .broken = 0.03, .delayed = 0.1}}};

/// What the traffic has met, so that a test can say that it has met everything.
struct Met {
  ExpertStats stats;
  uint64_t error_count = 0;
  uint64_t refusal_count = 0;

  void add(const ExpertStats& more) {
    stats.hit_count += more.hit_count;
    stats.join_count += more.join_count;
    stats.miss_count += more.miss_count;
    stats.eviction_count += more.eviction_count;
    stats.prefetch_promoted_count += more.prefetch_promoted_count;
    stats.idle_fill_count += more.idle_fill_count;
    for (size_t i = 0; i < more.guesses.size(); ++i) stats.guesses[i] += more.guesses[i];
  }
};

class StoreTraffic {
 public:
  StoreTraffic(uint64_t seed, const Weather& weather, Met& met)
      : random_(seed), may_break_(weather.shares.broken > 0), met_(met), test_(draw(weather)) {}

  ~StoreTraffic() { met_.add(store_.stats()); }

  void step() {
    take_step();
    if (store_.error()) recover();
    test_.check_sums();
    check_leases();
    ASSERT_EQ(store_.stats().lookup_count, lookup_count_);
    ASSERT_EQ(store_.stats().hit_count, hit_count_);
    ASSERT_EQ(store_.stats().miss_count, miss_count_);
  }

  /// Everybody goes home.
  void end() {
    leases_.clear();
    if (random_.below(2) == 0) {
      store_.give_up();
    } else {
      test_.queue().drain();
      store_.settle();
    }
    ASSERT_FALSE(store_.error().has_value());
    test_.check_at_rest();
    store_.forget_all();
    test_.check_at_rest();
    const GuessStats guesses = store_.stats().all_guesses();
    ASSERT_EQ(guesses.started_count,
              guesses.useful_count + guesses.wasted_count + guesses.cancelled_count);
    ASSERT_EQ(test_.pool().resident_pieces().size(), 0u);
  }

 private:
  struct Held {
    ExpertId id;
    ExpertLease lease;
  };

  StreamedOptions draw(const Weather& weather) {
    StreamedOptions options;
    options.drive = {.seed = random_.next(),
                     .depth_max = 1 + random_.below(12),
                     .shares = weather.shares,
                     .reorder = random_.below(2) == 0};
    options.used_count = 1 + static_cast<uint32_t>(random_.below(2));
    const auto slots = [&] { return options.used_count + static_cast<uint32_t>(random_.below(8)); };
    options.slots =
        random_.below(2) == 0 ? std::vector{3 + slots()} : std::vector{slots(), slots(), slots()};
    options.half_life = static_cast<uint32_t>(random_.below(2) * 8);
    options.queue.prefetch_chunk_bytes = random_.below(2) == 0 ? 4096 : 512 << 10;
    options.queue.prefetch_in_service_beside_demand_max = static_cast<uint32_t>(random_.below(3));
    if (random_.below(4) == 0) options.queue.request_count_max = 7;
    return options;
  }

  void take_step() {
    switch (random_.below(20)) {
      case 0:
        return begin_layer();
      case 1:
        return store_.begin_tokens(static_cast<uint32_t>(1 + random_.below(30)));
      case 2:
      case 3:
      case 4:
        return guess();
      case 5:
      case 6:
      case 7:
        return drop_leases();
      case 8:
      case 9:
      case 10:
        return store_.pump();
      case 11:
      case 12:
        return wait();
      case 13:
        return test_.drive().advance(random_.below(300'000));
      case 14:
        store_.fill(any_expert());
        return;
      case 15:
        return rarely();
      default:
        return acquire();
    }
  }

  void rarely() {
    switch (random_.below(7)) {
      case 0:
        return store_.drop_guesses();
      case 1:
        return move_memory();
      case 2:
        return lend();
      case 3:
        return store_.end_lending();
      case 4:
        return recover();
      case 5:
        if (leases_.empty()) store_.forget_all();
        return;
      default:
        return store_.mark();
    }
  }

  ExpertId any_expert() {
    return {static_cast<uint32_t>(random_.below(3)),
            static_cast<uint32_t>(random_.below(kExperts))};
  }

  void begin_layer() {
    std::vector<int32_t> chosen;
    for (uint64_t i = random_.below(5); i > 0; --i)
      chosen.push_back(static_cast<int32_t>(random_.below(kExperts)));
    const auto layer = static_cast<uint32_t>(random_.below(3));
    std::vector<bool> was_coming(kExperts);
    for (uint32_t index = 0; index < kExperts; ++index)
      was_coming[index] = store_.whereabouts({layer, index}) != Whereabouts::absent;
    store_.begin_layer(layer, chosen, random_.below(2) == 0 ? Ranking::recency : Ranking::worth);
    for (uint32_t index = 0; index < kExperts; ++index) {
      const Whereabouts now = store_.whereabouts({layer, index});
      const bool is_chosen = std::ranges::find(chosen, static_cast<int32_t>(index)) != chosen.end();
      if (is_chosen) {
        ASSERT_EQ(now != Whereabouts::absent, was_coming[index]) << "the chosen are spared";
      } else if (now == Whereabouts::guessed) {
        ASSERT_TRUE(store_.is_resident({layer, index})) << "a wrong guess is read no further";
      }
    }
  }

  void guess() {
    for (uint64_t i = 1 + random_.below(4); i > 0; --i)
      store_.guess({.id = any_expert(),
                    .distance = random_.below(5) == 0 ? kNextToken
                                                      : static_cast<uint32_t>(1 + random_.below(5)),
                    .rank = static_cast<uint32_t>(random_.below(4))});
  }

  void acquire() {
    const ExpertId id = any_expert();
    const bool was_here = store_.is_resident(id);
    const Whereabouts before = store_.whereabouts(id);
    ExpertLease lease = store_.acquire(id, random_.uniform());
    if (!lease) {
      ++met_.refusal_count;
      ASSERT_TRUE(before == Whereabouts::absent) << "what is here or on its way can be leased";
      const bool has_lent_all = store_.cache().quota(id.layer) == 0;
      ASSERT_TRUE(has_lent_all || store_.is_reading() || !leases_.empty()) << "nothing to wait for";
      return;
    }
    ++lookup_count_;
    hit_count_ += was_here;
    miss_count_ += before == Whereabouts::absent;
    leases_.push_back({id, std::move(lease)});
  }

  void drop_leases() {
    std::erase_if(leases_, [&](const Held&) { return random_.below(2) == 0; });
  }

  void wait() {
    if (!store_.is_reading()) return;
    const uint64_t waiting = test_.queue().request_count();
    store_.wait();
    ASSERT_TRUE(test_.queue().request_count() < waiting ||
                store_.stats().all_guesses().started_count > 0);
  }

  void move_memory() {
    if (!leases_.empty()) return;
    const uint64_t out = store_.given_back_bytes();
    const uint64_t bytes = random_.below(150'000);
    if (random_.below(2) == 0) {
      const uint64_t given = store_.give_back(bytes);
      ASSERT_EQ(store_.given_back_bytes(), out + given);
    } else {
      const uint64_t taken = store_.take_back(bytes);
      ASSERT_LE(taken, bytes);
      ASSERT_EQ(store_.given_back_bytes(), out - taken);
    }
  }

  void lend() {
    const ExpertCache::Share shares[] = {
        {static_cast<uint32_t>(random_.below(3)), static_cast<uint32_t>(random_.below(kExperts))}};
    store_.lend(shares, std::array{0.0, 0.5}[random_.below(2)]);
  }

  void recover() {
    ASSERT_TRUE(may_break_ || !store_.error()) << store_.error()->message;
    met_.error_count += store_.error().has_value();
    leases_.clear();
    if (random_.below(2) == 0)
      store_.give_up();
    else
      store_.settle();
    ASSERT_FALSE(store_.error().has_value());
    ASSERT_FALSE(store_.is_reading());
  }

  void check_leases() {
    for (Held& one : leases_) {
      ASSERT_NE(store_.whereabouts(one.id), Whereabouts::guessed);
      if (random_.below(4) == 0 && test_.is_ready(one.lease, one.id)) {
        ASSERT_TRUE(test_.has_bytes(one.lease, one.id)) << one.id.layer << ' ' << one.id.index;
      }
    }
  }

  Random random_;
  const bool may_break_;
  Met& met_;
  Streamed test_;
  ExpertStore& store_ = test_.store();
  std::vector<Held> leases_;
  uint64_t lookup_count_ = 0, hit_count_ = 0, miss_count_ = 0;
};

class ExpertStoreRandom : public ::testing::TestWithParam<Weather> {};

TEST_P(ExpertStoreRandom, HoldsWhatItPromisesAtEveryStep) {
  Met met;
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    StoreTraffic traffic(seed, GetParam(), met);
    for (int step = 0; step < 400 && !HasFailure(); ++step) traffic.step();
    traffic.end();
  }
  const GuessStats guesses = met.stats.all_guesses();
  const std::pair<const char*, uint64_t> counts[] = {
      {"hits", met.stats.hit_count},
      {"joins", met.stats.join_count},
      {"misses", met.stats.miss_count},
      {"evictions", met.stats.eviction_count},
      {"promotions", met.stats.prefetch_promoted_count},
      {"fills", met.stats.idle_fill_count},
      {"useful guesses", guesses.useful_count},
      {"wasted guesses", guesses.wasted_count},
      {"cancelled guesses", guesses.cancelled_count},
      {"refusals", met.refusal_count}};
  for (const auto& [name, count] : counts) EXPECT_GT(count, 100u) << name;
  EXPECT_EQ(met.error_count > 100, GetParam().shares.broken > 0);
}

INSTANTIATE_TEST_SUITE_P(Weathers, ExpertStoreRandom, ::testing::ValuesIn(kWeathers),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sluice
