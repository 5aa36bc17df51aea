#include "engine/perplexity.h"

#include <algorithm>

#include "engine/logits_base_writer.h"
#include "os/clock.h"

namespace sluice {
namespace {

/// How the text will be cut, or why it cannot be.
Result<ChunkShape> plan_chunks(const ModelFacts& model, const PerplexityRequest& request) {
  ChunkShape shape{.context_tokens = request.context_tokens,
                   .vocabulary_size = static_cast<uint32_t>(model.vocabulary_size)};
  if (request.base != nullptr) {
    shape = request.base->shape();
    if (shape.vocabulary_size != model.vocabulary_size)
      return make_error(ErrorKind::unsupported,
                        "{}: made with a vocabulary of {} tokens, but {} has {}; compare models "
                        "with one vocabulary",
                        request.base->name(), shape.vocabulary_size, model.file_name,
                        model.vocabulary_size);
  } else {
    CHECK(shape.context_tokens >= ChunkShape::kContextMin);
    shape.chunk_count = static_cast<uint32_t>(request.tokens.size() / shape.context_tokens);
    if (shape.chunk_count == 0)
      return make_error(ErrorKind::usage,
                        "the text has {} tokens, a chunk takes {}; give a longer text or a smaller "
                        "--ctx",
                        request.tokens.size(), shape.context_tokens);
  }
  if (request.chunk_max > 0) shape.chunk_count = std::min(shape.chunk_count, request.chunk_max);
  return shape;
}

/// One measurement: the parts that every chunk and every row goes through.
class Measurement {
 public:
  Measurement(const Engine& engine, Session& session, const PerplexityRequest& request,
              const ChunkShape& shape)
      : engine_(engine), session_(session), request_(request), result_{.shape = shape} {}

  Status begin_saving() {
    if (request_.save_path.empty()) return {};
    auto writer = LogitsBaseWriter::create(request_.save_path, result_.shape);
    if (!writer) return writer.error();
    writer_.emplace(std::move(*writer));
    for (uint32_t chunk = 0; chunk < result_.shape.chunk_count; ++chunk) {
      const auto tokens = tokens_of(chunk);
      if (!tokens) return tokens.error();
      if (Status done = writer_->add_tokens(*tokens); !done) return done;
    }
    return {};
  }

  Status score_next_chunk() {
    const uint64_t start_ns = os::now_ns();
    auto tokens = tokens_of(result_.chunks_done);
    if (!tokens) return tokens.error();
    const text::Vocabulary& vocabulary = engine_.tokenizer().vocabulary();
    if (vocabulary.add_bos.value_or(false) && vocabulary.bos != text::kNoToken)
      tokens->front() = vocabulary.bos;
    Status scored;
    size_t position = 0;
    session_.reset();
    const auto receive = [&](std::span<const float> rows, size_t count) {
      const size_t width = rows.size() / count;
      for (size_t row = 0; row < count && scored.ok(); ++row, ++position)
        scored = score(*tokens, position, rows.subspan(row * width, width));
    };
    if (Status done = session_.prefill(*tokens, receive); !done) return done;
    ++result_.chunks_done;
    result_.seconds += os::seconds_between(start_ns, os::now_ns());
    return scored;
  }

  Result<PerplexityResult> finish() {
    if (writer_)
      if (Status done = writer_->commit(); !done) return done.error();
    if (request_.base != nullptr) result_.divergence = divergence_.report();
    return std::move(result_);
  }

  const PerplexityResult& result() const { return result_; }

 private:
  Result<std::vector<text::TokenId>> tokens_of(uint32_t chunk) const {
    if (request_.base != nullptr) return request_.base->tokens(chunk);
    const size_t length = result_.shape.context_tokens;
    const auto tokens = std::span(request_.tokens).subspan(chunk * length, length);
    return std::vector<text::TokenId>(tokens.begin(), tokens.end());
  }

  Status score(std::span<const text::TokenId> tokens, size_t position,
               std::span<const float> logits) {
    const size_t first = result_.shape.first_scored();
    if (position < first || position + 1 == tokens.size()) return {};
    const auto next = static_cast<size_t>(tokens[position + 1]);
    const double log_sum = log_sum_exp(logits);
    result_.nll.add(log_sum - logits[next]);
    if (request_.base != nullptr) {
      const auto row =
          request_.base->row(result_.chunks_done, static_cast<uint32_t>(position - first));
      if (!row) return row.error();
      divergence_.add(logits, log_sum, *row, next);
    }
    return writer_ ? writer_->add_row(logits, log_sum) : Status();
  }

  const Engine& engine_;
  Session& session_;
  const PerplexityRequest& request_;
  PerplexityResult result_;
  Divergence divergence_;
  std::optional<LogitsBaseWriter> writer_;
};

}  // namespace

std::vector<text::TokenId> tokens_to_score(const text::Tokenizer& tokenizer,
                                           std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return tokenizer.tokenize(text,
                            {.add_special = true, .never_doubled = false, .parse_special = false});
}

Result<PerplexityResult> measure_perplexity(const Engine& engine, Session& session,
                                            const PerplexityRequest& request,
                                            const PerplexityObserver& observer) {
  const auto shape = plan_chunks(engine.facts(), request);
  if (!shape) return shape.error();
  Measurement measurement(engine, session, request, *shape);
  if (Status done = measurement.begin_saving(); !done) return done.error();
  for (uint32_t chunk = 0; chunk < shape->chunk_count; ++chunk) {
    if (Status done = measurement.score_next_chunk(); !done) return done.error();
    observer(measurement.result());
  }
  return measurement.finish();
}

}  // namespace sluice
