// A prompt in, text out: the loop that every front end needs, with its timings. One thread at a
// time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "sampling/sampler.h"

namespace sluice {

struct GenerateRequest {
  std::vector<text::TokenId> prompt;  ///< at least one token
  size_t token_max = 128;             ///< 0: only the prompt
  SamplingOptions sampling;
  std::vector<std::string> stop;  ///< ends the text before the first of these
  bool ignore_eos = false;
};

enum class FinishReason : uint8_t { length, end_of_generation, stop_string, context_full };

struct GenerateResult {
  std::vector<text::TokenId> tokens;  ///< generated, an end token not among them
  std::string text;
  FinishReason finish = FinishReason::length;
  std::string logits_hash;  ///< XXH3-128 of the logits that tokens were sampled from
  double prefill_s = 0;
  double ttft_s = 0;    ///< from the start of prefill to the first token
  double decode_s = 0;  ///< of decode_steps
  size_t decode_steps = 0;
  MoeCounters prefill_moe;
  MoeCounters decode_moe;
};

/// Receives whole UTF-8 characters as they are ready; an error ends the generation with it.
using TextReceiver = std::function<Status(std::string_view)>;

/// Runs the request on a session, which keeps the tokens. `on_text` may be empty.
Result<GenerateResult> generate(Engine& engine, Session& session, const GenerateRequest& request,
                                const TextReceiver& on_text);

/// XXH3-128 over any number of pieces, as 32 hexadecimal digits.
class Hash128 {
 public:
  Hash128();
  ~Hash128();
  Hash128(const Hash128&) = delete;
  Hash128& operator=(const Hash128&) = delete;
  void add(std::span<const float> values);
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
