// record_scores MODEL TEXT TRACE: runs a model over a text, in sequences of 512 tokens, and records
// what its routers choose and say, and what they say when they are asked early: a trace with scores
// (docs/lookahead.md) for tools/train_correction. The whole model is held in memory.
#include <fmt/format.h>

#include <fstream>

#include "base/half.h"
#include "engine/model_files.h"
#include "lookahead/correction.h"
#include "os/file.h"
#include "tests/support/hand_built_engine.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

constexpr size_t kSequenceTokens = 512;

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) fmt::print(stderr, "error: {}\n", result.error().message);
  CHECK(result.ok());
  return std::move(*result);
}

class ScoreTrace {
 public:
  ScoreTrace(const std::string& path, const ModelBytes& model)
      : config_(model.config()), file_(path, std::ios::binary) {
    const auto layers = static_cast<uint32_t>(config_.layer_count());
    file_.write("sluiceRT", 8);
    for (const uint32_t field :
         {uint32_t{1}, layers, config_.expert_used_count, kDistanceMax, uint32_t{1}, uint32_t{0}})
      put(field);
    put(router_hash(model.weights()));
    for (uint32_t layer = 0; layer < layers; ++layer) put(config_.expert_count);
  }

  void begin(size_t token_count) { put_head(1, 0, 0, static_cast<uint32_t>(token_count)); }
  void routing(size_t layer, std::span<const int32_t> experts) {
    put_head(3, layer, 0, 0);
    for (const int32_t expert : experts)
      if (config_.expert_count <= 256)
        put(static_cast<uint8_t>(expert));
      else
        put(static_cast<uint16_t>(expert));
  }
  void scores(size_t layer, size_t distance, std::span<const float> values) {
    put_head(5, layer, distance, 0);
    for (const float value : values) put(f32_to_f16(value));
  }
  void weights(size_t layer, std::span<const float> values) {
    put_head(6, layer, 0, 0);
    for (const float value : values) put(f32_to_f16(value));
  }
  void end() { put_head(7, 0, 0, 0); }
  bool flush() { return file_.flush().good(); }

 private:
  template <typename T>
  void put(T value) {
    file_.write(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void put_head(uint8_t record, size_t layer, size_t distance, uint32_t count) {
    put(record);
    put(static_cast<uint8_t>(distance));
    put(static_cast<uint16_t>(layer));
    put(count);
  }

  const ModelConfig& config_;
  std::ofstream file_;
};

/// Writes what the router of `layer` says of each token's state.
void ask(Backend& backend, const ModelConfig& config, size_t layer, size_t distance,
         size_t token_count, const float* hidden, ScoreTrace& trace) {
  std::vector<float> logits(token_count * config.expert_count);
  const auto asked = static_cast<uint32_t>(layer);
  for (size_t token = 0; token < token_count; ++token)
    backend.predict({&asked, 1}, hidden + token * config.hidden_size,
                    logits.data() + token * config.expert_count);
  trace.scores(layer, distance, logits);
}

void listen(RoutingRecorder& routing, const ModelConfig& config, ScoreTrace& trace) {
  routing.on_embed = [&](size_t count, const float* hidden) {
    trace.begin(count);
    for (size_t layer = 0; layer < std::min<size_t>(kDistanceMax, config.layer_count()); ++layer)
      ask(routing, config, layer, layer + 1, count, hidden, trace);
  };
  routing.on_route = [&](size_t layer, size_t, size_t count, const BatchBuffers& batch) {
    const size_t pairs = count * batch.routing.used_count;
    trace.routing(layer, {batch.routing.experts, pairs});
    trace.weights(layer, {batch.routing.weights, pairs});
    for (size_t distance = 0; distance <= kDistanceMax; ++distance)
      if (layer + distance < config.layer_count())
        ask(routing, config, layer + distance, distance, count, batch.hidden, trace);
  };
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
  ScoreTrace trace(trace_path, *model);
  listen(engine.routing(), model->config(), trace);
  for (size_t i = 0; i < sequence_count; ++i) {
    engine.reset();
    must(engine.append(std::span(tokens).subspan(i * kSequenceTokens, kSequenceTokens)));
    trace.end();
  }
  CHECK(trace.flush());
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
