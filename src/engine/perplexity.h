// Perplexity: how surprised a model is by a text, the procedure being llama-perplexity's, so that
// numbers compare. The text is cut into chunks of one length; what is left over is not used. Each
// chunk is computed by itself, its first token replaced by BOS where the model wants one, and the
// tokens of its second half are scored (engine/logits_base.h says which, engine/divergence.h how).
//
// With a base, the tokens are those of the base, and the model's probabilities are compared with
// the ones it holds. With `save_path` such a base is written. Logits are looked at where they come
// out; no more than one row of anything is held. One thread at a time, the engine's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/divergence.h"
#include "engine/engine.h"

namespace sluice {

struct PerplexityRequest {
  std::vector<text::TokenId> tokens;  ///< of the whole text; without a base only
  LogitsBaseReader* base = nullptr;   ///< may be none
  uint32_t context_tokens = 512;      ///< of a chunk; without a base only
  uint32_t chunk_max = 0;             ///< 0: all
  std::string save_path = {};         ///< empty: nothing is written
};

struct PerplexityResult {
  ChunkShape shape;
  uint32_t chunks_done = 0;
  Moments nll = {};
  double seconds = 0;
  std::optional<DivergenceReport> divergence = {};  ///< with a base, once all is done

  Estimate perplexity() const { return exp_of(nll.mean()); }
  uint64_t tokens_done() const { return uint64_t{chunks_done} * shape.context_tokens; }
  double tokens_per_s() const { return static_cast<double>(tokens_done()) / seconds; }
};

/// Is told after every chunk what is known so far.
using PerplexityObserver = std::function<void(const PerplexityResult&)>;

/// The ids of a text as llama-perplexity makes them: with BOS where the model wants one, names of
/// control tokens being plain text, and without one line end at the very end.
std::vector<text::TokenId> tokens_to_score(const text::Tokenizer& tokenizer, std::string_view text);

/// REQUIRES: a session that holds a chunk. It is empty, or holds the last chunk, afterwards.
Result<PerplexityResult> measure_perplexity(const Engine& engine, Session& session,
                                            const PerplexityRequest& request,
                                            const PerplexityObserver& observer);

}  // namespace sluice
