// Everything that reads experts before they are asked for, seen from the forward pass: while a
// token is decoded, the routers of later layers are asked early (predictor) as far as it pays
// (governor); while a long prompt passes, the next layers are read ahead (read_ahead). What it
// learns it keeps: how good its guesses were, the census of which experts the model uses, and on
// request a trace of every routing.
//
// It changes what is read when, never what is computed. Calls come from the thread that runs the
// step, in this order:
//
//   begin_step    the step's embeddings are there
//   begin_layer   before a layer's attention
//   on_routing    a batch's routers have spoken
//   look_ahead    … and its demand reads are under way
//   end_step      behind the last layer; not after a step that failed
#pragma once

#include <memory>
#include <vector>

#include "experts/census.h"
#include "experts/routing_trace_writer.h"
#include "lookahead/governor.h"
#include "lookahead/lookahead_stats.h"
#include "lookahead/predictor.h"
#include "lookahead/read_ahead.h"
#include "lookahead/step_report.h"

namespace sluice {

class Lookahead {
 public:
  struct Options {
    GovernorOptions governor = {};
    uint32_t runner_up_count = 0;  ///< of each layer, read for the next token
    Predictor::Limits predictor = {};
    ReadAhead::Options read_ahead = {};
  };
  /// What it is helped by and what it writes down; each may be null.
  struct Notes {
    const Correction* correction = nullptr;
    UsageCensus* census = nullptr;
    RoutingTraceWriter* trace = nullptr;
  };
  /// Everything must outlive it.
  Lookahead(Backend& backend, const ModelConfig& config, const WeightMap& map, ExpertStore& store,
            const Notes& notes, const Options& options);

  void begin_step(size_t token_count, const float* hidden);
  void begin_layer(uint32_t layer);
  void on_routing(uint32_t layer, size_t token_count, const BatchBuffers& batch);
  void look_ahead(uint32_t layer, const BatchBuffers& batch);
  void end_step();

  const LookaheadStats& stats() const { return stats_; }
  /// How far the next decoded token looks ahead.
  Reach reach() const { return governor_.level(); }

 private:
  /// Counters of store and queue when the step began.
  struct Before {
    uint64_t now_ns = 0;
    uint64_t busy_ns = 0;
    ExpertStats experts;
  };
  void guess(std::span<const Prediction> predictions);
  StepReport report_step() const;
  void note_routing(uint32_t layer, std::span<const int32_t> experts);
  void trace_scores(uint32_t layer, const BatchBuffers& batch);

  Backend& backend_;
  ExpertStore& store_;
  const Notes notes_;
  const uint32_t used_count_;
  Predictor predictor_;
  Governor governor_;
  LookaheadStats stats_;
  ReadAhead read_ahead_;
  std::vector<Whereabouts> whereabouts_;  ///< [used], of what a router chose
  std::vector<int32_t> traced_;           ///< of a layer so far, [token][used]
  std::vector<float> own_scores_;         ///< [expert], for the trace
  bool is_decode_ = false;
  size_t token_count_ = 0;
  Before before_;
};

}  // namespace sluice
