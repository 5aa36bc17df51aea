// Which experts of a layer are likely to be used soon, guessed from which were used before. Two
// things tell: how often an expert was used of late, and what usually follows the experts that the
// current token chose. (Text has habits: after some experts others come. That alone closes a third
// of the gap between LRU and perfect hindsight on the demo model; docs/eviction.md.)
//
// All numbers are integers, so that every machine and build sees the same order: shares of 1 are
// 2^24, averages move by shifts. One token costs some thousand additions in plain loops over the
// layer's experts. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

class UseForecast {
 public:
  /// How experts may be ordered: by `recency` (worth nothing, the last use decides), or by a worth
  /// made of use rates and of what follows.
  enum class Order : uint8_t { recency, decay, brief, steady };
  static constexpr size_t kOrderCount = 4;

  UseForecast(uint32_t expert_count, uint32_t used_count);

  uint32_t expert_count() const { return expert_count_; }

  /// The router chose these for one token, the strongest first. REQUIRES: used_count of them, each
  /// below expert_count.
  void on_token(std::span<const uint16_t> chosen);
  /// Tokens pass that are not worth looking at: the front of a long prompt.
  void skip_tokens(uint32_t count) { turn_ += count; }
  /// Makes worth() right for now. It is stale after on_token(): a prompt needs no worth.
  void rank_experts();

  /// Tokens that have passed.
  uint64_t turn() const { return turn_; }
  /// Whether the newest token uses it.
  bool is_chosen(uint32_t expert) const { return used_at_[expert] > (turn_ - 1) * kRankMax; }
  /// Tokens since the last use, with the rank it had below the point: smaller is more recent.
  uint64_t age(uint32_t expert) const { return turn_ * kRankMax - used_at_[expert]; }
  uint32_t worth(Order order, uint32_t expert) const {
    return worth_[static_cast<size_t>(order)][expert];
  }
  /// Whether `a` should leave rather than `b`; a strict order.
  bool leaves_before(Order order, uint32_t a, uint32_t b) const {
    if (worth(order, a) != worth(order, b)) return worth(order, a) < worth(order, b);
    if (used_at_[a] != used_at_[b]) return used_at_[a] < used_at_[b];
    return a < b;
  }

  /// What an object for so many experts takes.
  static uint64_t bytes_for(uint32_t expert_count);

  static constexpr uint32_t kUsedCountMax = 64;

 private:
  static constexpr uint64_t kRankMax = 256;

  void learn_what_follows(std::span<const uint16_t> chosen);

  const uint32_t expert_count_;
  const uint32_t used_count_;
  uint64_t turn_ = 0;
  std::vector<uint64_t> used_at_;  ///< [expert], turn · kRankMax − rank
  /// [expert], share of tokens that used it lately
  std::vector<uint32_t> brief_rate_, decay_rate_, steady_rate_;
  std::vector<uint16_t> follows_;     ///< [before][after], share of 2^16 − 1
  std::vector<uint16_t> seen_count_;  ///< [before], until its row is an average over many
  std::vector<uint16_t> chosen_;      ///< by the newest token
  std::vector<uint32_t> follow_sum_;  ///< [expert], over chosen_
  std::array<std::vector<uint32_t>, kOrderCount> worth_;  ///< [order][expert]
};

}  // namespace sluice
