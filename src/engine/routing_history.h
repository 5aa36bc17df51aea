// A recording of routing in memory, arranged for replay: one turn for each step and layer, with the
// experts that the turn asks for. Replay needs all of it at once, since perfect hindsight must know
// what comes. Immutable once built; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "experts/routing_trace_reader.h"

namespace sluice {

/// A layer's turn in a step.
struct RoutingTurn {
  StepKind kind = StepKind::decode;
  uint32_t layer = 0;
  uint32_t token_count = 0;
  uint64_t step = 0;
  uint64_t tokens_behind = 0;         ///< of a prompt: those of its later batches
  std::span<const uint16_t> chosen;   ///< [token][used], the strongest first
  std::span<const uint16_t> experts;  ///< the distinct ones: of one token in its order, else rising
  std::span<const uint8_t> foreseen;  ///< beside `experts`: bit d − 1, predicted at distance d
};

class RoutingHistory {
 public:
  /// Reads a file: a trace, or bare ids of the layout that is given.
  static Result<RoutingHistory> read(const std::string& path,
                                     const std::optional<RawTraceLayout>& raw = {});
  static Result<RoutingHistory> read(RoutingTraceReader& reader);

  const TraceHeader& header() const { return header_; }
  size_t turn_count() const { return turns_.size(); }
  RoutingTurn turn(size_t index) const;

  /// Questions "is this expert here": each distinct expert of each turn.
  uint64_t lookup_count() const { return experts_.size(); }
  uint64_t decode_token_count() const { return decode_tokens_; }
  uint64_t prompt_token_count() const { return prompt_tokens_; }
  uint64_t prompt_batch_count() const { return prompt_batches_; }
  uint64_t score_record_count() const { return score_records_; }
  bool is_cut_short() const { return cut_short_; }

  /// Of the lookups of turns that were predicted at this distance at all: how many were foreseen.
  struct Recall {
    uint64_t lookups = 0;
    uint64_t foreseen = 0;
  };
  Recall recall(uint32_t distance) const;

 private:
  struct Turn {
    uint64_t step;
    uint64_t chosen_begin;
    uint64_t experts_begin;
    uint64_t tokens_behind;
    uint32_t token_count;
    uint16_t layer;
    StepKind kind;
    uint8_t asked;  ///< bit d − 1: predictions at distance d are there
  };

  void add_step(const TraceStep& step, uint64_t index);
  void count_tokens_behind();
  void add_turn(const TraceStep& step, const TraceStep::Ids& routing, uint64_t index);
  void mark_foreseen(const TraceStep& step, Turn& turn);

  TraceHeader header_;
  std::vector<Turn> turns_;
  std::vector<uint16_t> chosen_;   ///< of all turns
  std::vector<uint16_t> experts_;  ///< of all turns
  std::vector<uint8_t> foreseen_;  ///< beside experts_
  std::vector<uint8_t> marks_;     ///< [expert], scratch
  uint64_t decode_tokens_ = 0;
  uint64_t prompt_tokens_ = 0;
  uint64_t prompt_batches_ = 0;
  uint64_t score_records_ = 0;
  bool cut_short_ = false;
};

}  // namespace sluice
