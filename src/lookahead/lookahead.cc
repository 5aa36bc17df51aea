#include "lookahead/lookahead.h"

namespace sluice {

Lookahead::Lookahead(Backend& backend, const ModelConfig& config, const WeightMap& map,
                     ExpertStore& store, const Notes& notes, const Options& options)
    : backend_(backend),
      store_(store),
      notes_(notes),
      used_count_(config.expert_used_count),
      predictor_(backend, config, map, options.predictor, notes.correction),
      governor_(options.governor),
      stats_(static_cast<uint32_t>(config.layer_count()), options.predictor.width_max),
      read_ahead_(store, notes.census, options.read_ahead),
      whereabouts_(config.expert_used_count),
      own_scores_(config.expert_count) {}

void Lookahead::begin_step(size_t token_count, const float* hidden) {
  token_count_ = token_count;
  is_decode_ = token_count == 1;
  traced_.clear();
  if (notes_.trace != nullptr) {
    notes_.trace->abandon();  // of a step that failed
    notes_.trace->begin(is_decode_ ? StepKind::decode : StepKind::prompt,
                        static_cast<uint32_t>(token_count));
  }
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
  note_routing(layer, experts);
  if (!is_decode_) return;
  for (uint32_t rank = 0; rank < used_count_; ++rank)
    whereabouts_[rank] = store_.whereabouts({layer, static_cast<uint32_t>(experts[rank])});
  stats_.on_routing(layer, experts, whereabouts_);
}

void Lookahead::note_routing(uint32_t layer, std::span<const int32_t> experts) {
  if (notes_.census != nullptr) {
    const PickSource source = is_decode_ ? PickSource::decode : PickSource::prompt;
    for (const int32_t expert : experts)
      notes_.census->add({layer, static_cast<uint32_t>(expert)}, source);
  }
  if (notes_.trace == nullptr) return;
  // A long prompt passes a layer in several batches; the trace has all its tokens together.
  traced_.insert(traced_.end(), experts.begin(), experts.end());
  if (traced_.size() < token_count_ * used_count_) return;
  notes_.trace->routing(layer, traced_);
  traced_.clear();
}

/// What the layer's router said, and with which weights it chose.
void Lookahead::trace_scores(uint32_t layer, const BatchBuffers& batch) {
  backend_.predict({&layer, 1}, batch.hidden, own_scores_.data());
  const size_t expert_count = notes_.trace->header().expert_counts[layer];
  notes_.trace->scores(layer, 0, std::span(own_scores_).first(expert_count));
  notes_.trace->weights(layer, {batch.routing.weights, used_count_});
}

void Lookahead::look_ahead(uint32_t layer, const BatchBuffers& batch) {
  if (!is_decode_) return;
  if (notes_.trace != nullptr && notes_.trace->header().has_scores) trace_scores(layer, batch);
  if (reach().distance > 0)
    guess(predictor_.predict(layer,
                             {.hidden = batch.hidden,
                              .experts = {batch.routing.experts, used_count_},
                              .weights = {batch.routing.weights, used_count_}},
                             reach()));
  for (uint32_t rank = 0; rank < batch.routing.runner_up_count; ++rank) {
    const int32_t expert = batch.routing.runners_up[rank];
    if (expert == kNoExpert) break;
    store_.guess(
        {.id = {layer, static_cast<uint32_t>(expert)}, .distance = kNextToken, .rank = rank});
  }
  store_.pump();
}

void Lookahead::guess(std::span<const Prediction> predictions) {
  for (const Prediction& prediction : predictions) {
    stats_.on_prediction(prediction);
    if (notes_.trace != nullptr) {
      notes_.trace->predicted(prediction.layer, prediction.distance, prediction.experts);
      notes_.trace->scores(prediction.layer, prediction.distance, prediction.router_logits);
    }
    store_.drop_waiting_guesses(prediction.layer);  // made further away, they are less true
    for (uint32_t rank = 0; rank < prediction.experts.size(); ++rank)
      store_.guess({.id = {prediction.layer, prediction.experts[rank]},
                    .distance = prediction.distance,
                    .rank = rank});
  }
}

void Lookahead::end_step() {
  if (notes_.trace != nullptr) notes_.trace->end();
  if (!is_decode_) return read_ahead_.end_step();
  if (notes_.census != nullptr) notes_.census->on_decode_token();
  governor_.on_step(report_step());
}

StepReport Lookahead::report_step() const {
  const ExpertStats now = store_.stats();
  const ExpertStats& then = before_.experts;
  const GuessStats guesses = now.all_guesses(), guesses_then = then.all_guesses();
  const auto since = [](uint64_t after, uint64_t before) {
    return static_cast<uint32_t>(after - before);
  };
  return {.step_ns = store_.queue().now_ns() - before_.now_ns,
          .stall_ns = now.stall_ns - then.stall_ns,
          .drive_busy_ns = store_.queue().stats().busy_ns - before_.busy_ns,
          .miss_count = since(now.miss_count, then.miss_count),
          .prefetch_useful_count = since(guesses.useful_count, guesses_then.useful_count),
          .prefetch_wasted_count = since(guesses.unused_count(), guesses_then.unused_count()),
          .regret_count = since(now.regret_count, then.regret_count)};
}

}  // namespace sluice
