// Which expert leaves when a slot is needed. A policy only ranks: it is told what is used and how
// time passes, and keeps a key for each expert (experts/leave_key) that says which of two is worth
// less; whether an expert may leave at all (leases, predictions) is not its business. Experts are
// numbered over all layers. Policies are chosen by name (--moe-stream-evict). One thread at a time.
//
// While a prompt goes on every policy is LRU, since each of its experts is wanted once a batch and
// then not before the next. Its uses still count, so that the reply starts with what the prompt's
// end has shown.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "experts/leave_key.h"

namespace sluice {

enum class Ranking : uint8_t {
  recency,  ///< while a prompt goes on: least recently used first
  worth,    ///< while decoding and in a prompt's last batch: by what the policy thinks of it
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  /// So many tokens pass: the one to decode, or a batch of a prompt. Comes before their uses.
  virtual void on_tokens(uint32_t count) = 0;
  /// What a layer's router chose for a batch, [token][used], the strongest first. Comes before
  /// anything leaves for it.
  virtual void on_routing(uint32_t /*layer*/, std::span<const int32_t> /*chosen*/) {}
  /// The router chose the expert, once (weight 1) or, in a batch of a prompt, for tokens whose
  /// weights add up to this; those before the last weigh less.
  virtual void on_use(uint32_t expert, double weight) = 0;
  /// The keys of all experts, [expert]. Of equal keys the lower number leaves first.
  virtual std::span<const LeaveKey> keys(Ranking ranking) const = 0;

  /// Whether `a` should leave rather than `b`; a strict order.
  bool leaves_before(uint32_t a, uint32_t b, Ranking ranking) const {
    const std::span<const LeaveKey> key = keys(ranking);
    return key[a] == key[b] ? a < b : key[a] < key[b];
  }
};

/// The least recently used leaves first.
class LruPolicy final : public EvictionPolicy {
 public:
  explicit LruPolicy(uint32_t expert_total) : keys_(expert_total) {}

  void on_tokens(uint32_t) override {}
  void on_use(uint32_t expert, double) override { keys_[expert].last_use = ++clock_; }
  std::span<const LeaveKey> keys(Ranking) const override { return keys_; }

 private:
  std::vector<LeaveKey> keys_;  ///< [expert]; worth 0, a fresh number at each use
  uint64_t clock_ = 0;
};

/// Frequency with decay: an expert is worth its number of uses, each of which counts half as much
/// after `half_life` tokens. The lowest leaves first, then the least recently used.
///
/// Halving all counts with time is the same as letting new uses count more and more: a use adds
/// 2^(now / half_life), and nothing else needs to change. Before the numbers grow out of range all
/// are scaled down.
class DecayPolicy final : public EvictionPolicy {
 public:
  DecayPolicy(uint32_t expert_total, uint32_t half_life_tokens);

  void on_tokens(uint32_t count) override;
  void on_use(uint32_t expert, double weight) override;
  std::span<const LeaveKey> keys(Ranking ranking) const override {
    return ranking == Ranking::worth ? keys_ : recency_.keys(ranking);
  }

 private:
  const double half_life_tokens_;
  std::vector<LeaveKey> keys_;  ///< [expert], worth in units that shrink with time
  LruPolicy recency_;
  double tokens_ = 0;     ///< passed since the last scaling
  double use_worth_ = 1;  ///< what a use adds now
};

}  // namespace sluice
