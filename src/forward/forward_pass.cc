#include "forward/forward_pass.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "forward/batch_layout.h"

namespace sluice {

Status ForwardPass::step(std::span<const int32_t> tokens, SequenceState& state, LogitsWanted wanted,
                         const LogitsSink& sink, const std::atomic<bool>* stop) {
  const size_t first_position = state.position();
  state.begin_step(tokens.size());
  place_buffers(tokens.size());
  backend_.embed(tokens, hidden_);
  store_.begin_tokens(static_cast<uint32_t>(tokens.size()));
  if (lookahead_ != nullptr) lookahead_->begin_step(tokens.size(), hidden_);

  // All tokens pass a layer before any enters the next, so that its experts are read once.
  const size_t batch_max = limits_.batch_token_max;
  for (uint32_t layer = 0; layer < config_.layer_count(); ++layer) {
    if (lookahead_ != nullptr) lookahead_->begin_layer(layer);
    for (size_t first = 0; first < tokens.size(); first += batch_max) {
      const size_t count = std::min(batch_max, tokens.size() - first);
      const size_t behind = tokens.size() - first - count;
      // What is needed after the prompt stays when its last batch is here; before, LRU.
      const bool goes_on = behind > 0 || wanted == LogitsWanted::none;
      const Batch part{.first = first,
                       .token_count = count,
                       .first_position = first_position + first,
                       .tokens_behind = behind,
                       .ranking = goes_on ? Ranking::recency : Ranking::worth};
      if (Status done = run_layer(layer, part, state, stop); !done) return done;
    }
  }

  state.end_step();
  if (lookahead_ != nullptr) lookahead_->end_step();
  give_logits(tokens.size(), wanted, sink);
  return {};
}

Status ForwardPass::run_layer(uint32_t layer, const Batch& part, SequenceState& state,
                              const std::atomic<bool>* stop) {
  const size_t ubatch = limits_.ubatch_token_max;
  batch_.hidden = hidden_ + part.first * config_.hidden_size;

  // Some routers do not wait for attention.
  const bool has_experts = map_.experts[layer].expert_count() > 0;
  const bool routes_early = has_experts && config_.architecture->router_sees_layer_input;
  for (size_t first = 0; routes_early && first < part.token_count; first += ubatch)
    backend_.route_early(layer, first, std::min(ubatch, part.token_count - first), batch_);

  // Every token looks back at the tokens before it, whose keys this loop has just stored. Most of a
  // long prompt's time goes here, so this is also where Ctrl-C is heard.
  for (size_t first = 0; first < part.token_count; first += ubatch) {
    if (stop != nullptr && *stop) {
      store_.give_up();
      return make_error(ErrorKind::interrupted, "interrupted");
    }
    backend_.mix_tokens(layer, part.first_position + first,
                        std::min(ubatch, part.token_count - first), state,
                        batch_.hidden + first * config_.hidden_size);
  }

  // The other routers say which experts each token needs; only now is it known what to read.
  for (size_t first = 0; first < part.token_count; first += ubatch) {
    const size_t count = std::min(ubatch, part.token_count - first);
    if (has_experts && !routes_early)
      backend_.route(layer, first, count, batch_);
    else
      backend_.prepare_ffn(layer, first, count, batch_);
  }
  if (has_experts) return run_experts(layer, part, stop);
  if (lookahead_ != nullptr) lookahead_->look_ahead(layer, batch_);
  compute_dense_ffn(layer, part.token_count);
  backend_.add_ffn(layer, part.token_count, dense_batch_);
  return {};
}

Status ForwardPass::run_experts(uint32_t layer, const Batch& part, const std::atomic<bool>* stop) {
  const std::span<const int32_t> chosen(batch_.routing.experts,
                                        part.token_count * config_.expert_used_count);
  grouping_.group(chosen, map_.experts[layer].expert_count(), part.tokens_behind);
  if (lookahead_ != nullptr) lookahead_->on_routing(layer, part.token_count, batch_);
  store_.begin_layer(layer, chosen, part.ranking);
  moe_.start(layer, grouping_, part.ranking);

  // While the drive has its orders, the next layers' experts are guessed, and the shared expert,
  // which is always here, computes.
  if (lookahead_ != nullptr) lookahead_->look_ahead(layer, batch_);
  if (map_.dense.layers[layer].shared.present()) compute_dense_ffn(layer, part.token_count);

  // Resident experts compute while the missing ones are on their way. The sum is taken in routing
  // order, never in the order of arrival.
  if (Status done = moe_.finish(grouping_, batch_, stop); !done) return done;
  backend_.combine(layer, part.token_count, batch_);
  return {};
}

/// An FFN that every token of the batch passes is an expert that all have chosen.
void ForwardPass::compute_dense_ffn(uint32_t layer, size_t token_count) {
  dense_batch_.hidden = batch_.hidden;
  const ExpertWork work{.view = map_.dense.layers[layer].dense_ffn().view(),
                        .tokens = every_token_.data(),
                        .token_count = token_count,
                        .layer = layer};
  backend_.expert_gate_up({&work, 1}, dense_batch_);
  backend_.expert_down({&work, 1}, dense_batch_);
}

void ForwardPass::give_logits(size_t token_count, LogitsWanted wanted, const LogitsSink& sink) {
  if (wanted == LogitsWanted::none) return;
  const size_t vocabulary = config_.vocabulary_size;
  const size_t chunk = logits_token_max(limits_for(limits_, token_count));
  for (size_t first = wanted == LogitsWanted::last ? token_count - 1 : 0; first < token_count;
       first += chunk) {
    const size_t count = std::min(chunk, token_count - first);
    backend_.output(count, hidden_ + first * config_.hidden_size, logits_);
    sink({logits_, count * vocabulary}, count);
  }
}

ForwardPass::ForwardPass(const ModelConfig& config, const WeightMap& map, Backend& backend,
                         ExpertStore& store, Lookahead* lookahead, const ForwardLimits& limits,
                         Ledger& ledger)
    : config_(config),
      map_(map),
      backend_(backend),
      store_(store),
      lookahead_(lookahead),
      limits_(limits),
      ledger_(ledger),
      grouping_(limits.batch_token_max, config.expert_used_count, config.expert_count),
      moe_(backend, store, config.expert_count, limits.pairs_per_step),
      // There are no more than have not been chosen.
      runners_up_(
          std::min<size_t>(limits.runner_up_count, config.expert_count - config.expert_used_count)),
      every_token_(limits.batch_token_max) {
  std::iota(every_token_.begin(), every_token_.end(), 0);
}

Result<std::unique_ptr<ForwardPass>> ForwardPass::make(const ModelConfig& config,
                                                       const WeightMap& map, Backend& backend,
                                                       ExpertStore& store, Lookahead* lookahead,
                                                       const ForwardLimits& limits,
                                                       Ledger& ledger) {
  CHECK(limits.step_token_max >= limits.batch_token_max);
  std::unique_ptr<ForwardPass> pass(
      new ForwardPass(config, map, backend, store, lookahead, limits, ledger));
  auto arena = os::Arena::allocate(BatchLayout(config, map, limits).bytes(),
                                   "the working memory of a prompt");
  if (!arena) return arena.error();
  pass->arena_ = std::move(*arena);
  pass->reserve(1);
  return pass;
}

ForwardPass::~ForwardPass() {
  ledger_.remove(MemoryUse::scratch, reserved_bytes_);
}

uint64_t ForwardPass::step_bytes(const ModelConfig& config, const WeightMap& map,
                                 const ForwardLimits& limits, size_t token_count) {
  return BatchLayout(config, map, limits_for(limits, token_count)).bytes();
}

void ForwardPass::reserve(size_t token_count) {
  CHECK(token_count <= limits_.step_token_max);
  const uint64_t bytes = round_up(step_bytes(token_count), os::page_bytes());
  if (bytes < reserved_bytes_)
    arena_.release_pages(bytes, reserved_bytes_ - bytes);
  else
    arena_.reuse_pages(reserved_bytes_, bytes - reserved_bytes_);
  ledger_.remove(MemoryUse::scratch, reserved_bytes_);
  ledger_.add(MemoryUse::scratch, bytes);
  reserved_bytes_ = bytes;
  reserved_token_count_ = token_count;
}

/// Packs the buffers for a step of so many tokens.
void ForwardPass::place_buffers(size_t token_count) {
  const BatchLayout layout(config_, map_, limits_for(limits_, token_count));
  CHECK(token_count > 0 && layout.bytes() <= reserved_bytes_);
  batch_ = layout.place(arena_.begin());
  batch_.pair_of = grouping_.pair_of();
  dense_batch_ = layout.place_dense_ffn(arena_.begin());
  if (token_count == 1) {
    batch_.routing.runners_up = runners_up_.data();
    batch_.routing.runner_up_count = runners_up_.size();
  }
  hidden_ = layout.hidden(arena_.begin());
  logits_ = layout.logits(arena_.begin());
}

}  // namespace sluice
