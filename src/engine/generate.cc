#include "engine/generate.h"

#include <xxhash.h>

#include "os/clock.h"
#include "text/stop_strings.h"

namespace sluice {

struct Hash128::State {
  XXH3_state_t* xxh3 = XXH3_createState();
};

Hash128::Hash128() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->xxh3);
}
Hash128::~Hash128() {
  XXH3_freeState(state_->xxh3);
}

void Hash128::add(std::span<const float> values) {
  XXH3_128bits_update(state_->xxh3, values.data(), values.size_bytes());
}

std::string Hash128::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

namespace {

/// Generated tokens on their way to the reader: bytes, stop strings, whole characters.
class TextOutput {
 public:
  TextOutput(const GenerateRequest& request, std::string& text, const TextReceiver& on_text)
      : stop_(request.stop), text_(text), on_text_(on_text) {}

  Status push(std::string_view piece) { return show(utf8_.push(stop_.push(piece))); }
  bool stopped() const { return stop_.stopped(); }  ///< a stop string has ended the text
  Status finish() {
    std::string last = utf8_.push(stop_.flush());
    last += utf8_.flush();
    return show(last);
  }

 private:
  Status show(const std::string& ready) {
    if (ready.empty()) return {};
    text_ += ready;
    return on_text_ ? on_text_(ready) : Status();
  }

  text::StopStrings stop_;
  text::Utf8Stream utf8_;
  std::string& text_;
  const TextReceiver& on_text_;
};

}  // namespace

Result<GenerateResult> generate(Engine& engine, Session& session, const GenerateRequest& request,
                                const TextReceiver& on_text) {
  if (Status valid = check_sampling(request.sampling); !valid) return valid.error();
  if (request.prompt.empty())
    return make_error(ErrorKind::usage, "the prompt is empty; give at least one token");
  GenerateResult result;
  Sampler sampler(request.sampling, engine.facts().vocabulary_size);
  TextOutput output(request, result.text, on_text);
  Hash128 hash;

  const MoeCounters before = engine.counters();
  const uint64_t start = os::now_ns();
  if (Status done = session.prefill(request.prompt); !done) return done.error();
  const uint64_t prefilled = os::now_ns();
  result.prefill_s = os::seconds_between(start, prefilled);
  const MoeCounters after_prompt = engine.counters();
  result.prefill_moe = after_prompt.since(before);

  uint64_t decode_end = prefilled;
  while (result.tokens.size() < request.token_max) {
    hash.add(session.logits());
    const text::TokenId token = sampler.sample(session.logits(), session.tokens());
    if (result.tokens.empty()) result.ttft_s = os::seconds_between(start, os::now_ns());
    if (!request.ignore_eos && engine.tokenizer().is_end_of_generation(token)) {
      result.finish = FinishReason::end_of_generation;
      break;
    }
    result.tokens.push_back(token);
    if (Status shown = output.push(engine.tokenizer().piece(token)); !shown) return shown.error();
    if (output.stopped()) {
      result.finish = FinishReason::stop_string;
      break;
    }
    if (result.tokens.size() == request.token_max) break;
    if (session.position() == engine.mode().context_tokens) {
      result.finish = FinishReason::context_full;
      break;
    }
    if (Status done = session.decode(token); !done) {
      const Status shown = output.finish();  // what was held back is shown before the error
      return shown.ok() ? done.error() : shown.error();
    }
    ++result.decode_steps;
    decode_end = os::now_ns();
  }
  if (Status shown = output.finish(); !shown) return shown.error();
  result.decode_s = os::seconds_between(prefilled, decode_end);
  result.decode_moe = engine.counters().since(after_prompt);
  result.logits_hash = hash.hex();
  return result;
}

}  // namespace sluice
