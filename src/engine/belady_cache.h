// Perfect hindsight (Belady 1966): of a pool's experts that leaves which is not wanted for longest.
// No policy misses less, so its misses are what is possible. One thread at a time.
#pragma once

#include <vector>

#include "engine/replay_cache.h"

namespace sluice {

class BeladyCache final : public ReplayCache {
 public:
  BeladyCache(const ReplayPool& pool, const RoutingHistory& history);

  void play(const RoutingTurn& turn, std::span<uint8_t> hits) override;

 private:
  /// When an expert is wanted next. The highest leaves first.
  struct Need {
    uint64_t next_turn = 0;
    uint64_t lookup = 0;  ///< at which that was learnt; distinct, so that ties are settled

    friend auto operator<=>(const Need&, const Need&) = default;
  };
  struct Entry {
    Need need;
    uint32_t expert;

    friend bool operator<(const Entry& a, const Entry& b) { return a.need < b.need; }
  };
  /// Experts that share slots: a layer's, or all. The heap holds an entry for each that is here,
  /// and outdated ones, which are dropped when they come up.
  struct Room {
    std::vector<Entry> heap;
    uint32_t here_count = 0;
  };

  bool is_current(const Entry& entry) const {
    return is_here_[entry.expert] != 0 && entry.need == needs_[entry.expert];
  }
  void push(Room& room, uint32_t expert);
  static Entry pop(Room& room);
  void evict(Room& room, bool waves);

  const ReplayPool pool_;
  std::vector<uint32_t> first_expert_;  ///< [layer], counting experts over all layers; the total
  std::vector<uint64_t> next_turn_;     ///< [lookup]: the turn in which its expert is wanted again
  std::vector<Need> needs_;             ///< [expert]
  std::vector<uint8_t> is_here_;        ///< [expert]
  std::vector<uint64_t> used_in_;       ///< [expert], the turn
  std::vector<Room> rooms_;
  std::vector<uint32_t> missing_;
  std::vector<Entry> kept_;
  uint64_t turn_ = 0;
  uint64_t lookup_ = 0;
};

}  // namespace sluice
