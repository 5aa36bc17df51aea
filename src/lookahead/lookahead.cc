#include "lookahead/lookahead.h"

namespace sluice {
namespace {

PickState pick_state(Whereabouts whereabouts) {
  switch (whereabouts) {
    case Whereabouts::resident: return PickState::resident;
    case Whereabouts::coming: return PickState::on_its_way;
    case Whereabouts::guessed: return PickState::prefetched;
    case Whereabouts::absent: break;
  }
  return PickState::missing;
}

}  // namespace

Lookahead::Lookahead(Backend& backend, const ModelConfig& config, const WeightMap& map,
                     ExpertStore& store, const Correction* correction, UsageCensus* census,
                     const Options& options)
    : backend_(backend),
      store_(store),
      census_(census),
      used_count_(config.expert_used_count),
      predictor_(backend, config, map, options.predictor, correction),
      governor_(options.governor),
      stats_(static_cast<uint32_t>(config.layer_count()), options.predictor.width_max),
      read_ahead_(store, census, options.read_ahead),
      pick_states_(config.expert_used_count) {}

void Lookahead::begin_step(size_t token_count, const float* hidden) {
  is_decode_ = token_count == 1;
  if (!is_decode_) return read_ahead_.begin_step(token_count);
  before_ = {.now_ns = store_.queue().now_ns(),
             .busy_ns = store_.queue().stats().busy_ns,
             .experts = store_.stats()};
  stats_.forget();
  if (reach().distance > 0) guess(predictor_.predict_first(hidden, reach()));
}

void Lookahead::begin_layer(uint32_t layer) {
  if (!is_decode_) read_ahead_.begin_layer(layer);
}

void Lookahead::on_routing(uint32_t layer, size_t token_count, const BatchBuffers& batch) {
  const std::span<const int32_t> experts(batch.routing.experts, token_count * used_count_);
  if (census_ != nullptr) {
    const PickSource source = is_decode_ ? PickSource::decode : PickSource::prompt;
    for (const int32_t expert : experts)
      census_->add({layer, static_cast<uint32_t>(expert)}, source);
  }
  if (!is_decode_) return;
  for (uint32_t rank = 0; rank < used_count_; ++rank)
    pick_states_[rank] =
        pick_state(store_.whereabouts({layer, static_cast<uint32_t>(experts[rank])}));
  stats_.on_routing(layer, experts, pick_states_);
}

void Lookahead::look_ahead(uint32_t layer, const BatchBuffers& batch) {
  if (!is_decode_) return;
  if (reach().distance > 0)
    guess(predictor_.predict(layer,
                             {.hidden = batch.hidden,
                              .experts = {batch.routing.experts, used_count_},
                              .weights = {batch.routing.weights, used_count_}},
                             reach()));
  for (uint32_t rank = 0; rank < batch.routing.runner_up_count; ++rank)
    store_.guess({.id = {layer, static_cast<uint32_t>(batch.routing.runners_up[rank])},
                  .distance = kNextToken,
                  .rank = rank});
  store_.pump();
}

void Lookahead::guess(std::span<const Prediction> predictions) {
  for (const Prediction& prediction : predictions) {
    stats_.on_prediction(prediction);
    for (uint32_t rank = 0; rank < prediction.experts.size(); ++rank)
      store_.guess({.id = {prediction.layer, prediction.experts[rank]},
                    .distance = prediction.distance,
                    .rank = rank});
  }
}

void Lookahead::end_step() {
  if (!is_decode_) return read_ahead_.end_step();
  if (census_ != nullptr) census_->on_decode_token();
  const ExpertStats after = store_.stats();
  const GuessStats guesses = after.all_guesses(), guesses_before = before_.experts.all_guesses();
  const auto count = [](uint64_t now, uint64_t then) { return static_cast<uint32_t>(now - then); };
  governor_.on_step(
      {.step_ns = store_.queue().now_ns() - before_.now_ns,
       .stall_ns = after.stall_ns - before_.experts.stall_ns,
       .drive_busy_ns = store_.queue().stats().busy_ns - before_.busy_ns,
       .miss_count = count(after.miss_count, before_.experts.miss_count),
       .prefetch_useful_count = count(guesses.useful_count, guesses_before.useful_count),
       .prefetch_wasted_count = count(guesses.wasted_count + guesses.cancelled_count,
                                      guesses_before.wasted_count + guesses_before.cancelled_count)});
}

}  // namespace sluice
