// record_scores MODEL TEXT TRACE: runs a model over a text, in sequences of 512 tokens, and records
// what its routers choose and say, and what they say when they are asked early: a trace with scores
// (docs/lookahead.md) for tools/train_correction. The whole model is held in memory.
#include <fmt/format.h>

#include "engine/model_files.h"
#include "experts/routing_trace_writer.h"
#include "lookahead/correction.h"
#include "os/file.h"
#include "tests/support/hand_built_engine.h"
#include "tests/support/must.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

constexpr size_t kSequenceTokens = 512;

/// Writes what the router of `layer` says of each token's state.
void ask(Backend& backend, const ModelConfig& config, uint32_t layer, uint32_t distance,
         size_t token_count, const float* hidden, RoutingTraceWriter& trace) {
  std::vector<float> logits(token_count * config.expert_count);
  for (size_t token = 0; token < token_count; ++token)
    backend.predict({&layer, 1}, hidden + token * config.hidden_size,
                    logits.data() + token * config.expert_count);
  trace.scores(layer, distance, logits);
}

/// Has the trace written as the model runs: steps begin with their embeddings.
void listen(RoutingRecorder& routing, const ModelConfig& config, RoutingTraceWriter& trace) {
  const auto layer_count = static_cast<uint32_t>(config.layer_count());
  routing.on_embed = [&, layer_count](size_t count, const float* hidden) {
    trace.begin(StepKind::prompt, static_cast<uint32_t>(count));
    for (uint32_t layer = 0; layer < std::min(kDistanceMax, layer_count); ++layer)
      ask(routing, config, layer, layer + 1, count, hidden, trace);
  };
  routing.on_route = [&, layer_count](size_t layer, size_t, size_t count,
                                      const BatchBuffers& batch) {
    const auto asking = static_cast<uint32_t>(layer);
    const size_t pairs = count * batch.routing.used_count;
    trace.routing(asking, {batch.routing.experts, pairs});
    trace.weights(asking, {batch.routing.weights, pairs});
    for (uint32_t distance = 0; distance <= kDistanceMax; ++distance)
      if (asking + distance < layer_count)
        ask(routing, config, asking + distance, distance, count, batch.hidden, trace);
  };
}

TraceHeader header_of(const ModelBytes& model) {
  const ModelConfig& config = model.config();
  return {.expert_counts = std::vector<uint32_t>(config.layer_count(), config.expert_count),
          .used_count = config.expert_used_count,
          .distance_max = kDistanceMax,
          .has_scores = true,
          .model_hash = router_hash(model.weights()),
          .name = {}};
}

void record_text(const std::string& model_path, const std::string& text_path,
                 const std::string& trace_path) {
  const auto model = ModelBytes::open(model_path);
  const auto tokenizer = must(text::Tokenizer::make(must(read_vocabulary(model->header()))));
  const std::string text = must(os::read_text_file(text_path, uint64_t{1} << 30));
  const std::vector<text::TokenId> tokens = tokenizer->tokenize(text, {});
  const size_t sequence_count = tokens.size() / kSequenceTokens;

  ComputePool pool(2);
  HandBuiltOptions options;
  options.batch_tokens = kSequenceTokens;
  options.ubatch_tokens = kSequenceTokens;
  options.context_tokens = kSequenceTokens;
  options.kv = KvType::f16;
  HandBuiltEngine engine(*model, pool, options);
  const auto trace = must(RoutingTraceWriter::create(trace_path, header_of(*model)));
  listen(engine.routing(), model->config(), *trace);
  for (size_t i = 0; i < sequence_count; ++i) {
    engine.reset();
    must(engine.append(std::span(tokens).subspan(i * kSequenceTokens, kSequenceTokens)));
    trace->end();
  }
  must(trace->close());
  fmt::print("{}: {} tokens\n", trace_path, sequence_count * kSequenceTokens);
}

}  // namespace
}  // namespace sluice

int main(int argument_count, char** arguments) {
  if (argument_count != 4) {
    fmt::print(stderr, "usage: record_scores MODEL TEXT TRACE\n");
    return 2;
  }
  sluice::record_text(arguments[1], arguments[2], arguments[3]);
  return 0;
}
