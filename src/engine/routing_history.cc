#include "engine/routing_history.h"

#include <algorithm>
#include <utility>

namespace sluice {

Result<RoutingHistory> RoutingHistory::read(const std::string& path,
                                            const std::optional<RawTraceLayout>& raw) {
  auto reader = raw ? RoutingTraceReader::open_raw(path, *raw) : RoutingTraceReader::open(path);
  if (!reader) return reader.error();
  return read(*reader);
}

Result<RoutingHistory> RoutingHistory::read(RoutingTraceReader& reader) {
  RoutingHistory history;
  history.header_ = reader.header();
  history.marks_.assign(history.header_.expert_count_max(), 0);
  TraceStep step;
  for (uint64_t index = 0;; ++index) {
    const auto more = reader.next(step);
    if (!more) return more.error();
    if (!*more) break;
    history.add_step(step, index);
  }
  history.count_tokens_behind();
  history.cut_short_ = reader.is_cut_short();
  return history;
}

RoutingTurn RoutingHistory::turn(size_t index) const {
  const Turn& turn = turns_[index];
  const bool last = index + 1 == turns_.size();
  const uint64_t chosen_end = last ? chosen_.size() : turns_[index + 1].chosen_begin;
  const uint64_t experts_end = last ? experts_.size() : turns_[index + 1].experts_begin;
  const uint64_t expert_count = experts_end - turn.experts_begin;
  return {.kind = turn.kind,
          .layer = turn.layer,
          .token_count = turn.token_count,
          .step = turn.step,
          .tokens_behind = turn.tokens_behind,
          .chosen = std::span(chosen_).subspan(turn.chosen_begin, chosen_end - turn.chosen_begin),
          .experts = std::span(experts_).subspan(turn.experts_begin, expert_count),
          .foreseen = std::span(foreseen_).subspan(turn.experts_begin, expert_count)};
}

void RoutingHistory::add_step(const TraceStep& step, uint64_t index) {
  score_records_ += step.score_records;
  if (step.kind == StepKind::decode) {
    decode_tokens_ += step.token_count;
  } else {
    prompt_tokens_ += step.token_count;
    ++prompt_batches_;
  }
  for (const TraceStep::Ids& routing : step.routings) add_turn(step, routing, index);
}

void RoutingHistory::add_turn(const TraceStep& step, const TraceStep::Ids& routing,
                              uint64_t index) {
  Turn turn = {.step = index,
               .chosen_begin = chosen_.size(),
               .experts_begin = experts_.size(),
               .tokens_behind = 0,
               .token_count = step.token_count,
               .layer = static_cast<uint16_t>(routing.layer),
               .kind = step.kind,
               .asked = 0};
  const auto ids = step.ids_of(routing);
  chosen_.insert(chosen_.end(), ids.begin(), ids.end());
  for (const uint16_t id : ids)
    if (std::exchange(marks_[id], uint8_t{1}) == 0) experts_.push_back(id);
  const auto first = experts_.begin() + static_cast<std::ptrdiff_t>(turn.experts_begin);
  if (step.token_count > 1) std::sort(first, experts_.end());
  for (auto expert = first; expert != experts_.end(); ++expert) marks_[*expert] = 0;
  foreseen_.resize(experts_.size(), 0);
  mark_foreseen(step, turn);
  turns_.push_back(turn);
}

void RoutingHistory::mark_foreseen(const TraceStep& step, Turn& turn) {
  for (const TraceStep::Ids& prediction : step.predictions) {
    if (prediction.layer != turn.layer) continue;
    const auto bit = static_cast<uint8_t>(1u << (prediction.distance - 1));
    turn.asked = static_cast<uint8_t>(turn.asked | bit);
    const auto ids = step.ids_of(prediction);
    for (const uint16_t id : ids) marks_[id] = 1;
    for (size_t i = turn.experts_begin; i < experts_.size(); ++i)
      if (marks_[experts_[i]] != 0) foreseen_[i] = static_cast<uint8_t>(foreseen_[i] | bit);
    for (const uint16_t id : ids) marks_[id] = 0;
  }
}

/// A prompt ends where a token is decoded. Prompts that follow each other look like one.
void RoutingHistory::count_tokens_behind() {
  uint64_t behind = 0;  // all prompt batches from the step after this one on
  for (size_t i = turns_.size(); i-- > 0;) {
    Turn& turn = turns_[i];
    const bool is_prompt = turn.kind == StepKind::prompt;
    if (is_prompt) turn.tokens_behind = behind;
    const bool begins_step = i == 0 || turns_[i - 1].step != turn.step;
    if (begins_step) behind = is_prompt ? behind + turn.token_count : 0;
  }
}

RoutingHistory::Recall RoutingHistory::recall(uint32_t distance) const {
  const auto bit = static_cast<uint8_t>(1u << (distance - 1));
  Recall recall;
  for (size_t i = 0; i < turns_.size(); ++i) {
    if ((turns_[i].asked & bit) == 0) continue;
    for (const uint8_t foreseen : turn(i).foreseen) {
      ++recall.lookups;
      recall.foreseen += (foreseen & bit) != 0;
    }
  }
  return recall;
}

}  // namespace sluice
