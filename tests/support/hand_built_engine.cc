#include "tests/support/hand_built_engine.h"

#include <algorithm>

#include "experts/contest_policy.h"
#include "tests/support/must.h"

namespace sluice {
namespace {

std::vector<io::FileFacts> facts_of(const ModelBytes& model, uint32_t alignment) {
  std::vector<io::FileFacts> facts;
  for (const std::string& path : model.header().paths()) facts.push_back({path, alignment});
  return facts;
}

}  // namespace

void RoutingRecorder::route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  ForwardingBackend::route(layer, first, count, batch);
  record(layer, first, count, batch);
}

void RoutingRecorder::route_early(size_t layer, size_t first, size_t count,
                                  const BatchBuffers& batch) {
  ForwardingBackend::route_early(layer, first, count, batch);
  record(layer, first, count, batch);
}

void RoutingRecorder::record(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  const size_t used = batch.routing.used_count;
  for (size_t token = first; token < first + count; ++token) {
    const int32_t* row = batch.routing.experts + token * used;
    std::vector<int32_t>& experts = chosen_[layer].emplace_back(row, row + used);
    std::ranges::sort(experts);
  }
  if (on_route) on_route(layer, first, count, batch);
}

namespace {

SlotPlan plan_slots(const WeightMap& weights, const std::vector<SlotLayout>& layouts,
                    const HandBuiltOptions& options) {
  std::vector<uint64_t> bytes;
  std::vector<uint32_t> counts;
  for (size_t layer = 0; layer < layouts.size(); ++layer) {
    bytes.push_back(layouts[layer].slot_bytes);
    counts.push_back(std::min(options.slots_per_layer, weights.experts[layer].expert_count()));
  }
  if (options.ring_slots == 0) return plan_layer_pool(bytes, counts);
  return plan_ring_pool(bytes, options.ring_slots, options.drive.alignment);
}

std::unique_ptr<EvictionPolicy> make_policy(const WeightMap& weights, uint32_t used_count,
                                            const HandBuiltOptions& options) {
  uint32_t experts = 0;
  for (const ExpertLayout& layer : weights.experts) experts += layer.expert_count();
  switch (options.evict) {
    case EvictionKind::lru:
      return std::make_unique<LruPolicy>(experts);
    case EvictionKind::decay:
      return std::make_unique<DecayPolicy>(experts, options.half_life_tokens);
    case EvictionKind::contest:
      break;
  }
  std::vector<EvictionContest::Layer> layers;
  for (const ExpertLayout& layer : weights.experts)
    layers.push_back({.expert_count = layer.expert_count(),
                      .slot_count = std::min(options.slots_per_layer, layer.expert_count())});
  return std::make_unique<ContestPolicy>(layers, used_count);
}

}  // namespace

HandBuiltEngine::HandBuiltEngine(const ModelBytes& model, ComputePool& pool,
                                 const HandBuiltOptions& options)
    : options_(options),
      pool_(pool),
      drive_(options.drive, model.files()),
      queue_(drive_, facts_of(model, options.drive.alignment)) {
  const ModelConfig& config = model.config();
  const WeightMap& weights = model.weights();
  std::vector<SlotLayout> layouts;
  for (const ExpertLayout& experts : weights.experts)
    layouts.push_back(SlotLayout::of(experts, options.drive.alignment));
  SlotPlan plan = plan_slots(weights, layouts, options);
  slots_ = must(SlotPool::allocate(std::move(plan), std::move(layouts), ledger_));
  store_ = std::make_unique<ExpertStore>(*slots_, weights.experts, queue_, config.expert_used_count,
                                         make_policy(weights, config.expert_used_count, options));
  backend_ = must(CpuBackend::make(config, weights, kernels::kernel_table(options.isa), pool,
                                   {options.ubatch_tokens, options.context_tokens}, ledger_));
  recorder_ = std::make_unique<RoutingRecorder>(*backend_, config.layer_count());
  ForwardLimits limits{.step_token_max = options.step_token_max(),
                       .batch_token_max = options.batch_tokens,
                       .ubatch_token_max = options.ubatch_tokens,
                       .pairs_per_step = options.pairs_per_step};
  if (options.lookahead) {
    Lookahead::Options parts = *options.lookahead;
    limits.runner_up_count = parts.runner_up_count;
    parts.read_ahead.batch_token_max = options.batch_tokens;
    for (const ExpertLayout& experts : weights.experts)
      parts.read_ahead.expert_counts.push_back(experts.expert_count());
    lookahead_ = std::make_unique<Lookahead>(*recorder_, config, weights, *store_,
                                             Lookahead::Notes{}, parts);
  }
  forward_ = must(
      ForwardPass::make(config, weights, *recorder_, *store_, lookahead_.get(), limits, ledger_));
  state_.emplace(must(SequenceState::allocate(
      config, {options.context_tokens, options.ubatch_tokens, options.kv}, ledger_)));
  pool_.set_interlude([this] { store_->pump(); });
}

HandBuiltEngine::~HandBuiltEngine() {
  pool_.set_interlude({});
}

void HandBuiltEngine::settle() {
  store_->drop_guesses();
  store_->settle();
}

size_t HandBuiltEngine::rewind(size_t position) {
  tokens_.resize(state_->rewind(std::min(position, tokens_.size())));
  return tokens_.size();
}

Result<std::vector<float>> HandBuiltEngine::append(std::span<const int32_t> tokens) {
  CHECK(position() + tokens.size() <= options_.context_tokens);
  const auto lost = run(std::span(tokens_).subspan(state_->position()));
  auto logits = lost.ok() ? run(tokens) : lost;
  if (logits.ok())
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  else
    state_->rewind(position());
  return logits;
}

/// In steps.
Result<std::vector<float>> HandBuiltEngine::run(std::span<const int32_t> tokens) {
  std::vector<float> logits;
  const size_t step_max = options_.step_token_max();
  for (size_t first = 0; first < tokens.size(); first += step_max) {
    const auto rows = step(tokens.subspan(first, std::min(step_max, tokens.size() - first)));
    if (!rows.ok()) return rows.error();
    logits.insert(logits.end(), rows->begin(), rows->end());
  }
  return logits;
}

/// Its memory is exactly what it needs, so that whoever writes beyond it is found out.
Result<std::vector<float>> HandBuiltEngine::step(std::span<const int32_t> tokens) {
  forward_->reserve(tokens.size());
  std::vector<float> logits;
  const auto sink = [&](std::span<const float> rows, size_t) {
    logits.insert(logits.end(), rows.begin(), rows.end());
  };
  const Status done = forward_->step(tokens, *state_, LogitsWanted::all, sink, &stop_);
  if (!done) return done.error();
  return logits;
}

}  // namespace sluice
