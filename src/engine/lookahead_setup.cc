// Setting up what guesses which experts will be wanted.
#include "engine/engine_impl.h"

namespace sluice {
namespace {

CensusIdentity census_identity(const Engine::Impl& impl) {
  return {.layer_count = static_cast<uint32_t>(impl.facts.layer_count),
          .expert_count = impl.facts.expert_count,
          .model_bytes = impl.model->file_bytes(),
          .model_name = impl.facts.file_name};
}

}  // namespace

Status make_lookahead(Engine::Impl& impl, const MemoryPlan& memory) {
  const EngineOptions& options = impl.options;
  const ModelConfig& config = impl.model->config();
  const WeightMap& weights = impl.model->weights();
  if (!options.correction_path.empty()) {
    auto correction =
        Correction::read(options.correction_path, correction_identity(config, weights));
    if (!correction) return correction.error();
    impl.correction = std::make_unique<Correction>(std::move(*correction));
    impl.ledger.add(MemoryUse::scratch, impl.correction->memory_bytes());
  }
  impl.census =
      std::make_unique<UsageCensus>(census_identity(impl), config.expert_used_count);
  const uint32_t width = options.lookahead_width > 0 ? options.lookahead_width
                                                     : config.expert_used_count;
  Lookahead::Options parts{
      .governor = {.most = {.distance = options.lookahead_layers, .width = width},
                   .mode = options.governor == Switch::on ? GovernorMode::adaptive
                                                          : GovernorMode::fixed},
      .runner_up_count = options.spec_count,
      .predictor = {.first = options.lookahead_first == Switch::on
                                 ? Predictor::FirstLayer::predicted
                                 : Predictor::FirstLayer::by_demand},
      .read_ahead = {.layers = options.readahead_layers,
                     .batch_token_max = memory.batch_tokens,
                     .expert_counts = {}}};
  for (const ExpertLayout& layer : weights.experts)
    parts.read_ahead.expert_counts.push_back(layer.expert_count());
  impl.lookahead = std::make_unique<Lookahead>(*impl.backend, config, weights, *impl.store,
                                               impl.correction.get(), impl.census.get(), parts);
  return {};
}

}  // namespace sluice
