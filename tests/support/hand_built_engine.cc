#include "tests/support/hand_built_engine.h"

#include <algorithm>

namespace sluice {
namespace {

std::vector<io::FileFacts> facts_of(const ModelBytes& model, uint32_t alignment) {
  std::vector<io::FileFacts> facts;
  for (const std::string& path : model.header().paths()) facts.push_back({path, alignment});
  return facts;
}

template <typename T>
T must(Result<T> result) {
  CHECK(result.ok());
  return std::move(*result);
}

}  // namespace

void RoutingRecorder::route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  backend_.route(layer, first, count, batch);
  const size_t used = batch.routing.used_count;
  for (size_t token = first; token < first + count; ++token) {
    const int32_t* row = batch.routing.experts + token * used;
    std::vector<int32_t>& experts = chosen_[layer].emplace_back(row, row + used);
    std::ranges::sort(experts);
  }
  if (on_route) on_route(layer, first, count, batch);
}

HandBuiltEngine::HandBuiltEngine(const ModelBytes& model, ComputePool& pool,
                                 const HandBuiltOptions& options)
    : options_(options),
      drive_(options.drive, model.files()),
      queue_(drive_, facts_of(model, options.drive.alignment)) {
  const ModelConfig& config = model.config();
  const WeightMap& weights = model.weights();
  std::vector<SlotPool::Layer> layers;
  for (const ExpertLayout& experts : weights.experts)
    layers.push_back({SlotLayout::of(experts, options.drive.alignment),
                      std::min(options.slots_per_layer, experts.expert_count())});
  slots_ = must(SlotPool::allocate(std::move(layers), ledger_));
  store_ = std::make_unique<ExpertStore>(*slots_, weights.experts, queue_,
                                         std::make_unique<LruPolicy>(slots_->slot_total()));
  backend_ = must(CpuBackend::make(config, weights, kernels::kernel_table(options.isa), pool,
                                   {options.ubatch_tokens, options.context_tokens}, ledger_));
  recorder_ = std::make_unique<RoutingRecorder>(*backend_, config.layer_count());
  forward_ = must(ForwardPass::make(config, weights, *recorder_, *store_,
                                    {.batch_token_max = options.batch_tokens,
                                     .ubatch_token_max = options.ubatch_tokens,
                                     .pairs_per_step = options.pairs_per_step},
                                    ledger_));
  kv_.emplace(must(KvCache::allocate(config, options.context_tokens, options.kv, ledger_)));
}

Result<std::vector<float>> HandBuiltEngine::append(std::span<const int32_t> tokens) {
  CHECK(position_ + tokens.size() <= options_.context_tokens);
  std::vector<float> logits;
  const auto sink = [&](std::span<const float> rows, size_t) {
    logits.insert(logits.end(), rows.begin(), rows.end());
  };
  for (size_t first = 0; first < tokens.size(); first += options_.batch_tokens) {
    const auto batch =
        tokens.subspan(first, std::min(options_.batch_tokens, tokens.size() - first));
    const Status done =
        forward_->step(batch, position_ + first, *kv_, LogitsWanted::all, sink, &stop_);
    if (!done) return done.error();
  }
  position_ += tokens.size();
  return logits;
}

}  // namespace sluice
