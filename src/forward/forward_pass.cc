#include "forward/forward_pass.h"

#include <algorithm>

#include "forward/batch_layout.h"

namespace sluice {

Status ForwardPass::step(std::span<const int32_t> tokens, size_t first_position, KvCache& cache,
                         LogitsWanted wanted, const LogitsSink& sink,
                         const std::atomic<bool>* stop) {
  CHECK(!tokens.empty() && tokens.size() <= limits_.batch_token_max);
  const size_t ubatch = limits_.ubatch_token_max;
  const size_t used = config_.expert_used_count;

  backend_.embed(tokens, batch_.hidden);

  for (uint32_t layer = 0; layer < config_.layer_count(); ++layer) {
    // Every token looks back at the tokens before it, whose keys this loop has just stored. Most
    // of a long prompt's time goes here, so this is also where Ctrl-C is heard.
    for (size_t first = 0; first < tokens.size(); first += ubatch) {
      if (stop != nullptr && *stop) return make_error(ErrorKind::interrupted, "interrupted");
      backend_.attention_block(layer, first_position + first,
                               std::min(ubatch, tokens.size() - first), cache,
                               batch_.hidden + first * config_.hidden_size);
    }

    // The router says which experts each token needs; only now is it known what to read.
    for (size_t first = 0; first < tokens.size(); first += ubatch)
      backend_.route(layer, first, std::min(ubatch, tokens.size() - first), batch_);

    // Resident experts compute while the missing ones are on their way.
    grouping_.group({batch_.routing.experts, tokens.size() * used},
                    map_.experts[layer].expert_count());
    if (Status done = moe_.run(layer, grouping_, batch_, stop); !done) return done;

    // The sum is taken in routing order, never in the order of arrival.
    backend_.combine(tokens.size(), batch_);
  }

  give_logits(tokens.size(), wanted, sink);
  return {};
}

void ForwardPass::give_logits(size_t token_count, LogitsWanted wanted, const LogitsSink& sink) {
  if (wanted == LogitsWanted::none) return;
  const size_t vocabulary = config_.vocabulary_size;
  const size_t chunk = logits_token_max(limits_);
  for (size_t first = wanted == LogitsWanted::last ? token_count - 1 : 0; first < token_count;
       first += chunk) {
    const size_t count = std::min(chunk, token_count - first);
    backend_.output(count, batch_.hidden + first * config_.hidden_size, logits_);
    sink({logits_, count * vocabulary}, count);
  }
}

ForwardPass::ForwardPass(const ModelConfig& config, const WeightMap& map, Backend& backend,
                         ExpertStore& store, const ForwardLimits& limits, Ledger& ledger)
    : config_(config),
      map_(map),
      backend_(backend),
      limits_(limits),
      ledger_(ledger),
      grouping_(limits.batch_token_max, config.expert_used_count, config.expert_count),
      moe_(backend, store, config.expert_count, limits.pairs_per_step) {}

uint64_t ForwardPass::batch_bytes(const ModelConfig& config, const WeightMap& map,
                                  const ForwardLimits& limits) {
  return BatchLayout(config, map, limits).bytes();
}

Result<std::unique_ptr<ForwardPass>> ForwardPass::make(const ModelConfig& config,
                                                       const WeightMap& map, Backend& backend,
                                                       ExpertStore& store,
                                                       const ForwardLimits& limits,
                                                       Ledger& ledger) {
  std::unique_ptr<ForwardPass> pass(new ForwardPass(config, map, backend, store, limits, ledger));
  const BatchLayout layout(config, map, limits);
  auto arena = os::Arena::allocate(layout.bytes(), "the working memory of a prompt");
  if (!arena) return arena.error();
  pass->arena_ = std::move(*arena);
  pass->batch_ = layout.place(pass->arena_.begin());
  pass->batch_.pair_of = pass->grouping_.pair_of();
  pass->logits_ = layout.logits(pass->arena_.begin());
  ledger.add(MemoryUse::scratch, pass->arena_.bytes());
  return pass;
}

ForwardPass::~ForwardPass() {
  if (arena_.bytes() > 0) ledger_.remove(MemoryUse::scratch, arena_.bytes());
}

}  // namespace sluice
