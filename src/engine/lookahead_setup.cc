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

Status read_correction(Engine::Impl& impl) {
  if (impl.options.correction_path.empty()) return {};
  auto correction =
      Correction::read(impl.options.correction_path,
                       correction_identity(impl.model->config(), impl.model->weights()));
  if (!correction) return correction.error();
  impl.correction = std::make_unique<Correction>(std::move(*correction));
  impl.ledger.add(MemoryUse::scratch, impl.correction->memory_bytes());
  return {};
}

std::vector<uint32_t> expert_counts(const Engine::Impl& impl) {
  std::vector<uint32_t> counts;
  for (const ExpertLayout& layer : impl.model->weights().experts)
    counts.push_back(layer.expert_count());
  return counts;
}

/// The census that earlier runs have left, and the trace that this one is to leave.
Status open_notes(Engine::Impl& impl) {
  const auto setting = parse_census_setting(impl.options.census);
  if (!setting) return setting.error();
  impl.census_file = std::make_unique<CensusFile>(*setting, impl.model->paths().front());
  impl.census = std::make_unique<UsageCensus>(census_identity(impl), impl.facts.expert_used_count);
  if (const auto line = impl.census_file->load(*impl.census)) impl.log.info("{}", *line);
  if (impl.options.trace_path.empty()) return {};
  auto trace = RoutingTraceWriter::create(impl.options.trace_path,
                                          {.expert_counts = expert_counts(impl),
                                           .used_count = impl.facts.expert_used_count,
                                           .distance_max = impl.options.lookahead_layers,
                                           .has_scores = impl.options.trace_scores == Switch::on,
                                           .model_hash = router_hash(impl.model->weights()),
                                           .name = impl.facts.file_name});
  if (!trace) return trace.error();
  impl.trace = std::move(*trace);
  return {};
}

}  // namespace

Status make_lookahead(Engine::Impl& impl, const MemoryPlan& memory) {
  const EngineOptions& options = impl.options;
  const ModelConfig& config = impl.model->config();
  const WeightMap& weights = impl.model->weights();
  if (Status read = read_correction(impl); !read) return read;
  if (Status open = open_notes(impl); !open) return open;
  const uint32_t width =
      options.lookahead_width > 0 ? options.lookahead_width : config.expert_used_count;
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
                     .expert_counts = expert_counts(impl)}};
  impl.lookahead = std::make_unique<Lookahead>(
      *impl.backend, config, weights, *impl.store,
      Lookahead::Notes{impl.correction.get(), impl.census.get(), impl.trace.get()}, parts);
  return {};
}

}  // namespace sluice
