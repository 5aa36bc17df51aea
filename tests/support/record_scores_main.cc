// record_scores MODEL TEXT RECORD: runs a model over a text, in sequences of 512 tokens, and writes
// what its routers say, and what they say when they are asked early, for tools/train_correction.
// docs/lookahead.md has the format. The whole model is held in memory.
#include <fmt/format.h>

#include <cstring>
#include <fstream>

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

/// The record of one sequence: for each token, for each layer, its router's logits, the experts it
/// chose and their weights, and its logits when asked 1, 2 and 3 layers before.
class Record {
 public:
  explicit Record(const ModelConfig& config)
      : layer_count_(config.layer_count()),
        expert_count_(config.expert_count),
        used_count_(config.expert_used_count) {
    size_t words = 0;
    for (size_t layer = 0; layer < layer_count_; ++layer) {
      layer_offsets_.push_back(words);
      words += expert_count_ + 2 * used_count_ +
               std::min<size_t>(kDistanceMax, layer + 1) * expert_count_;
    }
    token_words_ = words;
    words_.resize(kSequenceTokens * words);
  }

  void keep_own(size_t token, size_t layer, const float* logits) {
    std::memcpy(at(token, layer), logits, expert_count_ * sizeof(float));
  }
  void keep_choice(size_t token, size_t layer, const int32_t* experts, const float* weights) {
    uint32_t* place = at(token, layer) + expert_count_;
    std::memcpy(place, experts, used_count_ * sizeof(int32_t));
    std::memcpy(place + used_count_, weights, used_count_ * sizeof(float));
  }
  void keep_early(size_t token, size_t layer, size_t distance, const float* logits) {
    std::memcpy(at(token, layer) + distance * expert_count_ + 2 * used_count_, logits,
                expert_count_ * sizeof(float));
  }
  std::span<const uint32_t> words(size_t token_count) const {
    return std::span(words_).first(token_count * token_words_);
  }

 private:
  uint32_t* at(size_t token, size_t layer) {
    return words_.data() + token * token_words_ + layer_offsets_[layer];
  }

  size_t layer_count_;
  size_t expert_count_;
  size_t used_count_;
  size_t token_words_ = 0;
  std::vector<size_t> layer_offsets_;
  std::vector<uint32_t> words_;
};

template <typename T>
void append(std::ofstream& file, std::span<const T> values) {
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
}

void write_header(std::ofstream& file, const ModelBytes& model) {
  const CorrectionIdentity identity = correction_identity(model.config(), model.weights());
  const uint32_t fields[] = {1, identity.layer_count, identity.expert_count,
                             model.config().expert_used_count};
  append(file, std::span<const char>("sluiceLR", 8));
  append(file, std::span<const uint32_t>(fields));
  append(file, std::span<const uint64_t>(&identity.router_hash, 1));
}

/// Asks the routers of `first` and up to `count` layers on about one state.
void ask(Backend& backend, const ModelConfig& config, size_t first, size_t count,
         const float* hidden, std::vector<float>& logits) {
  std::vector<uint32_t> layers;
  for (size_t layer = first; layer < std::min(first + count, config.layer_count()); ++layer)
    layers.push_back(static_cast<uint32_t>(layer));
  logits.resize(layers.size() * config.expert_count);
  backend.predict(layers, hidden, logits.data());
}

void listen(HandBuiltEngine& engine, const ModelConfig& config, Record& record) {
  RoutingRecorder& routing = engine.routing();
  const size_t experts = config.expert_count;
  routing.on_embed = [&](size_t token_count, const float* hidden) {
    std::vector<float> logits;
    for (size_t token = 0; token < token_count; ++token) {
      ask(routing, config, 0, kDistanceMax, hidden + token * config.hidden_size, logits);
      for (size_t layer = 0; layer < logits.size() / experts; ++layer)
        record.keep_early(token, layer, layer + 1, logits.data() + layer * experts);
    }
  };
  routing.on_route = [&](size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
    const size_t used = batch.routing.used_count;
    std::vector<float> logits;
    for (size_t token = first; token < first + count; ++token) {
      ask(routing, config, layer, 1 + kDistanceMax, batch.hidden + token * config.hidden_size,
          logits);
      record.keep_own(token, layer, logits.data());
      record.keep_choice(token, layer, batch.routing.experts + token * used,
                         batch.routing.weights + token * used);
      for (size_t distance = 1; distance < logits.size() / experts; ++distance)
        record.keep_early(token, layer + distance, distance, logits.data() + distance * experts);
    }
  };
}

void record_text(const std::string& model_path, const std::string& text_path,
                 const std::string& record_path) {
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
  Record record(model->config());
  listen(engine, model->config(), record);
  std::ofstream file(record_path, std::ios::binary);
  write_header(file, *model);
  for (size_t i = 0; i < sequence_count; ++i) {
    engine.reset();
    must(engine.append(std::span(tokens).subspan(i * kSequenceTokens, kSequenceTokens)));
    append(file, record.words(kSequenceTokens));
  }
  CHECK(file.flush().good());
  fmt::print("{}: {} tokens\n", record_path, sequence_count * kSequenceTokens);
}

}  // namespace
}  // namespace sluice

int main(int argument_count, char** arguments) {
  if (argument_count != 4) {
    fmt::print(stderr, "usage: record_scores MODEL TEXT RECORD\n");
    return 2;
  }
  sluice::record_text(arguments[1], arguments[2], arguments[3]);
  return 0;
}
