#include "testing/made_routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>

#include "base/random.h"

namespace sluice {
namespace {

constexpr uint32_t kExperts = MadeRouting::kExpertCount;
constexpr uint32_t kUsed = MadeRouting::kUsedCount;

using Scores = std::array<double, kExperts>;  ///< [expert]

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

/// The k highest, the highest first.
void append_top(const Scores& scores, std::vector<uint8_t>& ids) {
  std::array<uint8_t, kExperts> order;
  std::iota(order.begin(), order.end(), uint8_t{0});
  std::partial_sort(order.begin(), order.begin() + kUsed, order.end(), [&](uint8_t a, uint8_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  ids.insert(ids.end(), order.begin(), order.begin() + kUsed);
}

/// k without replacement, each with a chance in proportion to e^score (Gumbel's trick).
void append_drawn(Scores scores, Random& random, std::vector<uint8_t>& ids) {
  for (double& score : scores) score -= std::log(-std::log(1 - random.uniform() * 0.999999999));
  append_top(scores, ids);
}

/// Chooses for one layer after the other, token by token.
class Source {
 public:
  virtual ~Source() = default;
  virtual void begin_token(Random&) {}
  virtual void choose(uint32_t layer, Random& random, std::vector<uint8_t>& ids) = 0;
};

/// zipf, topic, drift, recency: scores that change in their own ways, and a draw.
class LikesSource final : public Source {
 public:
  LikesSource(const MadeRouting& made, uint32_t layer_count, Random& random)
      : made_(made), base_(layer_count), likes_(layer_count) {
    for (Scores& scores : base_) {
      for (uint32_t rank = 0; rank < kExperts; ++rank)
        scores[rank] = -made.skew * std::log(rank + 1.0);
      for (uint32_t i = kExperts; i > 1; --i) std::swap(scores[i - 1], scores[random.below(i)]);
    }
    if (made.kind == MadeRouting::Kind::topic || made.kind == MadeRouting::Kind::drift)
      draw_likes(random);
  }

  void begin_token(Random& random) override {
    if (made_.kind == MadeRouting::Kind::topic && random.uniform() * made_.length < 1)
      draw_likes(random);
    if (made_.kind != MadeRouting::Kind::drift) return;
    const double keep = 1 - 1 / made_.length;
    const double news = made_.strength * std::sqrt(1 - keep * keep);
    for (Scores& likes : likes_)
      for (double& like : likes) like = keep * like + news * normal(random);
  }

  void choose(uint32_t layer, Random& random, std::vector<uint8_t>& ids) override {
    Scores scores = base_[layer];
    for (uint32_t expert = 0; expert < kExperts; ++expert) scores[expert] += likes_[layer][expert];
    append_drawn(scores, random, ids);
    if (made_.kind != MadeRouting::Kind::recency) return;
    for (double& like : likes_[layer]) like *= 0.84;
    for (const uint8_t id : std::span(ids).last(kUsed)) likes_[layer][id] += 0.16 * made_.strength;
  }

 private:
  void draw_likes(Random& random) {
    for (Scores& likes : likes_)
      for (double& like : likes) like = made_.strength * normal(random);
  }

  const MadeRouting made_;
  std::vector<Scores> base_;   ///< [layer]
  std::vector<Scores> likes_;  ///< [layer], on top
};

/// Depths of an LRU stack, falling exponentially: LRU knows all that can be known.
class StackSource final : public Source {
 public:
  StackSource(double mean_depth, uint32_t layer_count)
      : mean_depth_(mean_depth), stacks_(layer_count, std::vector<uint8_t>(kExperts)) {
    for (auto& stack : stacks_) std::iota(stack.begin(), stack.end(), uint8_t{0});
  }

  void choose(uint32_t layer, Random& random, std::vector<uint8_t>& ids) override {
    std::vector<uint8_t>& stack = stacks_[layer];
    std::vector<uint8_t> chosen;
    while (chosen.size() < kUsed) {
      const double depth = -mean_depth_ * std::log(1 - random.uniform());
      if (depth >= kExperts) continue;
      const uint8_t id = stack[static_cast<size_t>(depth)];
      if (std::ranges::find(chosen, id) == chosen.end()) chosen.push_back(id);
    }
    std::erase_if(stack, [&](uint8_t id) { return std::ranges::count(chosen, id) > 0; });
    stack.insert(stack.begin(), chosen.begin(), chosen.end());
    ids.insert(ids.end(), chosen.begin(), chosen.end());
  }

 private:
  const double mean_depth_;
  std::vector<std::vector<uint8_t>> stacks_;  ///< [layer], the most recent in front
};

/// Half of the picks go round in a cycle, the others are drawn from the first eighth.
class LoopSource final : public Source {
 public:
  void begin_token(Random&) override { turn_ += kUsed / 2; }
  void choose(uint32_t, Random& random, std::vector<uint8_t>& ids) override {
    Scores scores{};
    for (uint32_t expert = kHot; expert < kExperts; ++expert) scores[expert] = -1e9;
    append_drawn(scores, random, ids);
    ids.resize(ids.size() - kUsed / 2);
    for (uint32_t i = 0; i < kUsed / 2; ++i)
      ids.push_back(static_cast<uint8_t>(kHot + (turn_ + i) % (kExperts - kHot)));
  }

 private:
  static constexpr uint32_t kHot = kExperts / 8;
  uint32_t turn_ = 0;
};

/// Random routers over embeddings of tokens; a layer adds to the state what a random matrix says.
class EmbeddingSource final : public Source {
 public:
  EmbeddingSource(const MadeRouting& made, uint32_t layer_count, Random& random)
      : made_(made), topics_(kClusters), own_(kClusters * kClusterTokens), layers_(layer_count) {
    for (State& topic : topics_) fill(topic, random, 1);
    for (State& own : own_) fill(own, random, 1);
    for (Layer& layer : layers_) {
      for (State& row : layer.router) fill(row, random, 1);
      for (State& row : layer.mixer) fill(row, random, 1 / std::sqrt(kStateSize));
    }
  }

  void begin_token(Random& random) override {
    if (random.uniform() * made_.length < 1) cluster_ = random.below(kClusters);
    const State& own = own_[cluster_ * kClusterTokens + random.below(kClusterTokens)];
    const double share = std::sqrt(1 - made_.strength * made_.strength);
    for (size_t i = 0; i < kStateSize; ++i)
      state_[i] = made_.strength * topics_[cluster_][i] + share * own[i];
  }

  void choose(uint32_t layer, Random&, std::vector<uint8_t>& ids) override {
    Scores scores;
    for (uint32_t expert = 0; expert < kExperts; ++expert)
      scores[expert] = dot(layers_[layer].router[expert]);
    append_top(scores, ids);
    State next = state_;
    double square = 0;
    for (size_t i = 0; i < kStateSize; ++i) {
      next[i] += std::tanh(dot(layers_[layer].mixer[i])) / std::sqrt(double(layers_.size()));
      square += next[i] * next[i];
    }
    for (size_t i = 0; i < kStateSize; ++i) state_[i] = next[i] / std::sqrt(square / kStateSize);
  }

 private:
  static constexpr size_t kStateSize = 64;
  static constexpr size_t kClusters = 128;
  static constexpr size_t kClusterTokens = 64;
  using State = std::array<double, kStateSize>;
  struct Layer {
    std::array<State, kExperts> router;
    std::array<State, kStateSize> mixer;
  };

  static void fill(State& state, Random& random, double spread) {
    for (double& value : state) value = spread * normal(random);
  }
  double dot(const State& row) const {
    return std::inner_product(row.begin(), row.end(), state_.begin(), 0.0);
  }

  const MadeRouting made_;
  std::vector<State> topics_;  ///< [cluster]
  std::vector<State> own_;     ///< [token]
  std::vector<Layer> layers_;
  State state_{};
  size_t cluster_ = 0;
};

std::unique_ptr<Source> source_of(const MadeRouting& made, uint32_t layer_count, Random& random) {
  switch (made.kind) {
    case MadeRouting::Kind::stack:
      return std::make_unique<StackSource>(made.length, layer_count);
    case MadeRouting::Kind::loop:
      return std::make_unique<LoopSource>();
    case MadeRouting::Kind::embedding:
      return std::make_unique<EmbeddingSource>(made, layer_count, random);
    default:
      return std::make_unique<LikesSource>(made, layer_count, random);
  }
}

using Kind = MadeRouting::Kind;

constexpr std::array<MadeRouting, 15> kMade = {{
    {.name = "uniform", .kind = Kind::zipf},
    {.name = "zipf 0.5", .kind = Kind::zipf, .skew = 0.5},
    {.name = "zipf 1", .kind = Kind::zipf, .skew = 1},
    {.name = "topic 500", .kind = Kind::topic, .skew = 0.5, .strength = 1.5, .length = 500},
    {.name = "topic 200", .kind = Kind::topic, .skew = 0.5, .strength = 1.5, .length = 200},
    {.name = "topic 40", .kind = Kind::topic, .skew = 0.5, .strength = 2, .length = 40},
    {.name = "drift 100", .kind = Kind::drift, .strength = 1.5, .length = 100},
    {.name = "drift 10", .kind = Kind::drift, .strength = 2, .length = 10},
    {.name = "recency", .kind = Kind::recency, .skew = 0.3, .strength = 6},
    {.name = "stack 24", .kind = Kind::stack, .length = 24},
    {.name = "stack 64", .kind = Kind::stack, .length = 64},
    {.name = "loop", .kind = Kind::loop},
    {.name = "embedding 0.5", .kind = Kind::embedding, .strength = 0.5, .length = 256},
    {.name = "embedding 0.7", .kind = Kind::embedding, .strength = 0.7, .length = 64},
    {.name = "embedding 0.95", .kind = Kind::embedding, .strength = 0.95, .length = 64},
}};

}  // namespace

std::span<const MadeRouting> made_routings() {
  return kMade;
}

std::vector<uint8_t> MadeRouting::make(uint32_t token_count, uint32_t layer_count,
                                       uint64_t seed) const {
  Random random(seed);
  const auto source = source_of(*this, layer_count, random);
  std::vector<uint8_t> ids;
  ids.reserve(size_t{token_count} * layer_count * kUsedCount);
  for (uint32_t token = 0; token < token_count; ++token) {
    source->begin_token(random);
    for (uint32_t layer = 0; layer < layer_count; ++layer) source->choose(layer, random, ids);
  }
  return ids;
}

}  // namespace sluice
