// A contest between orders of eviction. No single order is best: use rates win where a topic lasts,
// and lose, by far, to plain recency where it has just changed. So each order keeps a shadow of the
// expert cache, a list of the experts that it would hold, and whichever shadow has missed least of
// late leads: the cache evicts by its order. The contest is never much worse than recency, which is
// LRU, because recency takes part and losses are bounded.
//
//   shadows   per layer and order, as many slots as the layer has in the cache (a ring's slots are
//             dealt out evenly); no bytes, no reads
//   misses    of each order, added over all layers, halved about every 700 tokens
//   leader    changes when a challenger is ahead by more than chance explains: by the square root
//             of the leader's misses, for recency a quarter of that, for it is the safe choice
//   purse     a change of the lead costs misses that no order's shadow counts, since the cache
//             holds what the last leader wanted. So one more shadow follows the lead as the cache
//             does; while it has missed more than recency, by 1/512 since the start, recency leads
//
// Prompts teach but do not count: their experts come all at once, which says nothing of decoding.
// Costs about a microsecond a layer and token. Same calls, same decisions, on any machine. One
// thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "experts/leave_key.h"
#include "experts/use_forecast.h"
#include "model/expert_id.h"

namespace sluice {

class EvictionContest {
 public:
  using Order = UseForecast::Order;

  struct Layer {
    uint32_t expert_count = 0;  ///< 0: nothing streams
    uint32_t slot_count = 0;    ///< experts that may be here at once
  };
  EvictionContest(const std::vector<Layer>& layers, uint32_t used_count);

  /// A decode step begins: the misses of the last one are settled.
  void begin_token();
  /// The router of a layer chose these for the one token of the step, the strongest first. Comes
  /// before anything leaves for them.
  void on_routing(uint32_t layer, std::span<const uint16_t> chosen);
  /// The same for a batch of a prompt, [token][used], without the tokens at its front that are not
  /// looked at: use rates would forget them.
  void on_prompt_routing(uint32_t layer, uint32_t skipped_tokens, std::span<const uint16_t> chosen);
  static size_t tokens_not_looked_at(size_t batch_tokens) {
    return batch_tokens > kPromptTokensMax ? batch_tokens - kPromptTokensMax : 0;
  }
  static constexpr size_t kPromptTokensMax = 128;

  /// Whether the layer's experts can be compared: not where all of them have slots.
  bool takes_place(uint32_t layer) const;

  /// What the leading order thinks of the layer's experts, [expert]; good until the layer's next
  /// routing or another order leads. Where layers compete, worth is compared as it is and age in
  /// tokens; of equals that leaves whose layer's turn is farthest. REQUIRES: takes_place().
  void write_keys(uint32_t layer, std::span<LeaveKey> keys) const;

  Order leader() const { return leader_; }
  static std::string_view order_name(Order order);

  /// What it takes for a model.
  static uint64_t bytes_for(const std::vector<Layer>& layers);

 private:
  static constexpr size_t kOrderCount = UseForecast::kOrderCount;
  /// One for each order, and one that follows the leader as the cache does.
  static constexpr size_t kShadowCount = kOrderCount + 1;
  static constexpr size_t kLedShadow = kOrderCount;
  using Misses = std::array<uint64_t, kOrderCount>;

  struct Shadows {
    UseForecast forecast;
    uint32_t slot_count;
    uint64_t ran_at = 0;                                        ///< the step of its last routing
    std::vector<uint8_t> holders;                               ///< [expert], a bit for each shadow
    std::array<std::vector<uint16_t>, kShadowCount> residents;  ///< [shadow][slot]
  };

  Order order_of(size_t shadow) const {
    return shadow == kLedShadow ? leader_ : static_cast<Order>(shadow);
  }
  uint64_t count_misses(Shadows& shadows, size_t shadow, std::span<const uint16_t> chosen) const;
  void admit(Shadows& shadows, size_t shadow, uint16_t expert) const;
  void choose_leader();

  std::vector<uint32_t> shadows_of_;  ///< [layer]; kNone where all experts stay or nothing streams
  std::vector<Shadows> shadows_;
  uint32_t used_count_;
  uint64_t clock_ = 0;  ///< routings seen
  Order leader_ = Order::recency;
  Misses misses_{};  ///< in units of 2^-kMissShift
  std::array<uint64_t, kShadowCount> step_misses_{};
  uint64_t recency_total_ = 0, led_total_ = 0;  ///< misses since the start
};

}  // namespace sluice
