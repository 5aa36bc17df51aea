// What is behind engine/engine.h: the parts of an engine in the order in which they are made, which
// is also the order in which each relies on those before it. Internal to engine/.
#pragma once

#include "backend/cpu/cpu_backend.h"
#include "engine/engine.h"
#include "engine/idle_fill.h"
#include "engine/memory_plan.h"
#include "engine/model_files.h"
#include "engine/working_memory.h"
#include "experts/census_file.h"
#include "experts/expert_store.h"
#include "forward/forward_pass.h"

namespace sluice {

struct Engine::Impl {
  Impl(const EngineOptions& engine_options, const Log& engine_log, const std::atomic<bool>* flag)
      : options(engine_options), log(engine_log), stop(flag) {}

  SequenceState::Limits sequence_limits() const {
    return {mode.context_tokens, ubatch_tokens, kv_type()};
  }
  KvType kv_type() const {
    if (options.kv == KvFormat::q8_0) return KvType::q8_0;
    return options.kv == KvFormat::f32 ? KvType::f32 : KvType::f16;
  }

  EngineOptions options;  ///< as asked for, less what has no meaning for the model
  const Log log;
  const std::atomic<bool>* stop;
  Ledger ledger;
  ModelFacts facts;
  RunMode mode;
  size_t ubatch_tokens = 0;
  size_t context_tokens_fit = 0;  ///< the longest context that the budget holds

  const kernels::KernelTable* kernels = nullptr;
  std::unique_ptr<ComputePool> pool;
  std::unique_ptr<ModelFiles> model;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<SlotPool> slots;
  std::unique_ptr<ExpertStore> store;
  std::unique_ptr<Correction> correction;
  std::unique_ptr<CensusFile> census_file;
  std::unique_ptr<UsageCensus> census;
  std::unique_ptr<RoutingTraceWriter> trace;
  std::unique_ptr<Lookahead> lookahead;
  std::unique_ptr<ForwardPass> forward;
  std::unique_ptr<WorkingMemory> working_memory;
  std::unique_ptr<IdleFill> idle_fill;  ///< whoever uses the store asks it for leave
};

/// Fills the parts of `impl` from its options. engine/loader.cc.
Status open_engine(const std::string& path, Engine::Impl& impl);

/// How experts lie in slots, by layer; engine/expert_setup.cc.
std::vector<SlotLayout> lay_out_slots(const Engine::Impl& impl);
/// Makes the slots and the store, and reads all experts where they are to stay.
Status make_expert_store(Engine::Impl& impl, const MemoryPlan& memory);

/// Makes what guesses which experts will be wanted; engine/lookahead_setup.cc.
Status make_lookahead(Engine::Impl& impl, const MemoryPlan& memory);

/// A session's sequence; engine/session.cc.
struct SessionState {
  SessionState(Engine::Impl& owner, SequenceState state)
      : engine(owner),
        sequence(std::move(state)),
        logits(owner.facts.vocabulary_size),
        next_logits(owner.facts.vocabulary_size) {
    tokens.reserve(sequence.context_token_max());
  }

  Status append(std::span<const text::TokenId> added, LogitsWanted wanted,
                const LogitsReceiver* receiver);

  Status check(std::span<const text::TokenId> added) const;
  Status run(std::span<const text::TokenId> added, LogitsWanted wanted,
             const LogitsReceiver* receiver);

  Engine::Impl& engine;
  SequenceState sequence;             ///< may stand before the end of `tokens`
  std::vector<text::TokenId> tokens;  ///< that belong to the session
  std::vector<float> logits;
  std::vector<float> next_logits;  ///< of a step that may yet fail
  bool has_logits = false;
};

}  // namespace sluice
