// Routing with a structure that is known, for judging eviction: 8 of 128 experts for each token and
// layer. The kinds are what caches meet: no structure at all (uniform), lasting likes (zipf), likes
// that change (topic, drift), what was just used (recency, stack), cycles (loop), and routers over
// token embeddings that share a topic with their neighbours (embedding). Tests and benchmarks only;
// any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice {

struct MadeRouting {
  static constexpr uint32_t kExpertCount = 128;
  static constexpr uint32_t kUsedCount = 8;

  enum class Kind : uint8_t { zipf, topic, drift, recency, stack, loop, embedding };

  std::string_view name;
  Kind kind;
  /// Of zipf's likes, rank^-skew, which most kinds start from; 0: none.
  double skew = 0;
  /// How much topics, wandering likes or recent use weigh; the topic's share of an embedding.
  double strength = 0;
  /// Tokens that a topic lasts; mean depth of the stack.
  double length = 0;

  /// Bare ids, [token][layer][used], the strongest first.
  std::vector<uint8_t> make(uint32_t token_count, uint32_t layer_count, uint64_t seed) const;
};

/// What docs/eviction.md shows.
std::span<const MadeRouting> made_routings();

}  // namespace sluice
