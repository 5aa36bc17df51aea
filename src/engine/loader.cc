// Opening an engine: one page, from a path to something that can run a token.
#include <algorithm>

#include "base/units.h"
#include "engine/engine_impl.h"
#include "io/prefetch_plan.h"
#include "os/clock.h"
#include "os/cpu.h"

namespace sluice {
namespace {

/// Pairs computed between two looks at the reads, for each thread: a few milliseconds.
constexpr size_t kPairsPerStepAndThread = 256;

Status choose_kernels(Engine::Impl& impl) {
  const auto usable = kernels::usable_isas();
  kernels::Isa isa = usable.back();
  if (impl.options.isa != "auto") {
    const auto named = kernels::isa_by_name(impl.options.isa);
    if (!named || std::ranges::find(usable, *named) == usable.end())
      return make_error(ErrorKind::usage,
                        "--isa: '{}' is not to be had here; give auto or one that this machine "
                        "runs: {}",
                        impl.options.isa, usable_isa_names());
    isa = *named;
  }
  impl.kernels = &kernels::kernel_table(isa);
  impl.mode.isa = kernels::isa_name(isa);
  const size_t threads = impl.options.threads > 0 ? impl.options.threads : os::usable_core_count();
  impl.pool = std::make_unique<ComputePool>(threads);
  impl.mode.threads = static_cast<uint32_t>(impl.pool->thread_count());
  return {};
}

void state_facts(Engine::Impl& impl) {
  const ModelConfig& config = impl.model->config();
  const WeightMap& weights = impl.model->weights();
  const uint64_t expert_bytes_per_token = weights.expert_bytes_per_token(config);
  impl.facts = {.file_name = impl.model->display_name(),
                .paths = impl.model->paths(),
                .architecture = std::string(config.architecture->name),
                .router = describe_router(config),
                .layer_count = config.layer_count(),
                .vocabulary_size = config.vocabulary_size,
                .context_trained_tokens = config.context_trained_tokens,
                .expert_count = config.expert_count,
                .expert_used_count = config.expert_used_count,
                .dense_bytes = weights.dense_bytes(),
                .expert_bytes = weights.first_experts().expert_bytes(),
                .experts_bytes = weights.expert_bytes(),
                .expert_bytes_per_token = expert_bytes_per_token,
                .active_bytes_per_token = expert_bytes_per_token + weights.dense_bytes_per_token()};
}

/// What the ring of io_uring and the queue take.
constexpr uint64_t kIoBytes = 1 * kMiB;

/// LongRoPE has a pace for contexts as long as the original one, and one for longer ones.
void note_rope_divisors(const Engine::Impl& impl, size_t context_tokens) {
  const DenseWeights& dense = impl.model->weights().dense;
  if (!dense.rope_divisors_long.present()) return;
  const ModelConfig& config = impl.model->config();
  const bool is_long = &dense.divisors_for(config, context_tokens) == &dense.rope_divisors_long;
  impl.log.info(
      "note: positions turn as the model learnt it for contexts {} {}, for this one is {}",
      is_long ? "beyond" : "up to", config.ropes.front().original_context_tokens, context_tokens);
}

/// Slots for the experts of one token in every layer: less makes no sense.
uint64_t cache_bytes_min(const Engine::Impl& impl) {
  uint64_t bytes = 0;
  for (const SlotLayout& layout : lay_out_slots(impl))
    bytes += impl.model->config().expert_used_count * layout.slot_bytes;
  return bytes;
}

MemoryPlan make_memory_plan(const Engine::Impl& impl) {
  const ModelConfig& config = impl.model->config();
  const WeightMap& weights = impl.model->weights();
  const auto backend_bytes = [&](size_t ubatch, size_t context) {
    return CpuBackend::memory_bytes(config, weights, *impl.pool, {ubatch, context});
  };
  constexpr size_t kMany = 1024;  // enough for rounding to vanish in the bytes of one token
  const auto step_bytes = [&](size_t step, size_t batch) {
    return ForwardPass::step_bytes(
        config, weights,
        {.step_token_max = step, .batch_token_max = batch, .ubatch_token_max = batch}, step);
  };
  const MemoryNeeds needs{
      .process_bytes = os::resident_bytes(),
      .dense_bytes = impl.model->dense_arena_bytes(),
      .io_bytes = kIoBytes,
      .kv_bytes_per_token = SequenceState::bytes_per_token(config, impl.kv_type()) +
                            (backend_bytes(1, 1 + kMany) - backend_bytes(1, 1)) / kMany,
      .kv_fixed_bytes =
          SequenceState::fixed_bytes(config, impl.options.ubatch_tokens, impl.kv_type()),
      .ubatch_bytes_per_token = (backend_bytes(kMany, 1) - backend_bytes(0, 1)) / kMany + 1,
      .batch_bytes_per_token =
          (step_bytes(2 * kMany, 2 * kMany) - step_bytes(2 * kMany, kMany)) / kMany + 1,
      .step_bytes_per_token = config.hidden_size * sizeof(float),
      .fixed_scratch_bytes = backend_bytes(0, 1) + config.vocabulary_size * sizeof(float) * 33,
      .cache_bytes_min = cache_bytes_min(impl),
      .context_trained_tokens = config.context_trained_tokens};
  return plan_memory(os::memory_state(), impl.options, needs);
}

/// Reads of expert size tell what the drive gives to expert reads.
void probe_drive(Engine::Impl& impl, const MemoryPlan& memory) {
  constexpr uint64_t kBytesMax = 64 * kMiB;
  const auto parts = impl.model->weights().first_experts().parts();
  // The expert cache is not there yet, and its memory free: the experts of a token at least, even
  // where the budget has no room for them.
  const uint64_t free_bytes = std::max(memory.cache_bytes_max, cache_bytes_min(impl));
  const io::DeviceProfile profile =
      impl.model->probe_drive(parts.front().first_expert.bytes, std::min(kBytesMax, free_bytes));
  impl.mode.drive_bytes_per_s = profile.bytes_per_s;
  impl.mode.drive_latency_us = profile.latency_us;
  impl.mode.drive_delay_by_followers = profile.delay_by_followers;
  impl.model->queue().limit_prefetch(
      io::plan_prefetch_depth(profile, static_cast<uint32_t>(impl.options.prefetch_chunk_bytes),
                              impl.options.prefetch_cap),
      io::plan_prefetch_beside_demand(profile, impl.options.prefetch_cap_demand));
}

/// "12–13 of 64 a layer", "a ring of 730".
std::string describe_slots(const Engine::Impl& impl) {
  if (impl.options.pool == PoolKind::ring)
    return fmt::format("a ring of {}", impl.slots->table().slot_total());
  const auto [least, most] = std::ranges::minmax(impl.mode.slots_per_layer);
  return fmt::format("{}{} of {} a layer", least,
                     least == most ? std::string() : fmt::format("–{}", most),
                     impl.facts.expert_count);
}

void log_mode(const Engine::Impl& impl) {
  const RunMode& mode = impl.mode;
  impl.log.info("{}: {}, {} layers, router: {}", impl.facts.file_name, impl.facts.architecture,
                impl.facts.layer_count, impl.facts.router);
  impl.log.info("{}: {} dense in memory, {} for experts ({}), {} reads by {}, {} threads of {}",
                mode.mode, format_bytes(impl.facts.dense_bytes), format_bytes(mode.cache_bytes),
                describe_slots(impl), mode.direct ? "direct" : "buffered", mode.io, mode.threads,
                mode.isa);
  impl.log.info("context {} of {} trained positions; memory budget {} ({})", mode.context_tokens,
                impl.facts.context_trained_tokens, format_bytes(mode.budget_bytes),
                mode.budget_reason);
  impl.log.detail(
      "drive: {}/s in reads of an expert's size, {:.0f} us for one of them, {:.1f} times "
      "as long when others follow",
      format_bytes(static_cast<uint64_t>(mode.drive_bytes_per_s)), mode.drive_latency_us,
      mode.drive_delay_by_followers);
  impl.log.detail("a token reads {} of expert weights and {} in all",
                  format_bytes(impl.facts.expert_bytes_per_token),
                  format_bytes(impl.facts.active_bytes_per_token));
  for (size_t use = 0; use < kMemoryUseCount; ++use)
    impl.log.detail("memory for {}: {}", memory_use_name(MemoryUse(use)),
                    format_bytes(impl.ledger.bytes(MemoryUse(use))));
}

/// In the ring the working set to come needs room; a layer's quota sees to it otherwise.
uint32_t slots_kept_empty(const Engine::Impl& impl) {
  constexpr uint32_t kLeast = 128;
  if (impl.options.pool != PoolKind::ring) return 0;
  return std::max(kLeast, impl.slots->table().slot_total() / 4);
}

}  // namespace

Status open_engine(const std::string& path, Engine::Impl& impl) {
  const uint64_t start = os::now_ns();
  if (Status chosen = choose_kernels(impl); !chosen) return chosen;
  auto model = ModelFiles::open(path, impl.options, impl.log);
  if (!model) return model.error();
  impl.model = std::move(*model);
  state_facts(impl);

  // What is where in memory is decided before anything large is allocated.
  const MemoryPlan memory = make_memory_plan(impl);
  for (const std::string& note : memory.notes) impl.log.info("{}", note);
  note_rope_divisors(impl, memory.context_tokens);
  impl.mode.context_tokens = memory.context_tokens;
  impl.ubatch_tokens = memory.ubatch_tokens;
  impl.context_tokens_fit = memory.context_tokens_fit;
  impl.mode.budget_bytes = memory.budget_bytes;
  impl.mode.budget_reason = memory.budget_reason;
  impl.mode.direct = impl.model->reads_direct();
  impl.mode.io = impl.model->reader_name();

  impl.ledger.add(MemoryUse::io, kIoBytes);
  if (Status loaded = impl.model->load_dense(impl.ledger, impl.stop); !loaded) return loaded;
  probe_drive(impl, memory);
  auto backend =
      CpuBackend::make(impl.model->config(), impl.model->weights(), *impl.kernels, *impl.pool,
                       {memory.ubatch_tokens, memory.context_tokens}, impl.ledger);
  if (!backend) return backend.error();
  impl.backend = std::move(*backend);
  if (Status made = make_expert_store(impl, memory); !made) return made;
  const ForwardLimits limits{.step_token_max = memory.step_tokens,
                             .batch_token_max = memory.batch_tokens,
                             .ubatch_token_max = memory.ubatch_tokens,
                             .pairs_per_step = kPairsPerStepAndThread * impl.pool->thread_count(),
                             .runner_up_count = impl.options.spec_count};
  if (Status made = make_lookahead(impl, memory); !made) return made;
  auto forward = ForwardPass::make(impl.model->config(), impl.model->weights(), *impl.backend,
                                   *impl.store, impl.lookahead.get(), limits, impl.ledger);
  if (!forward) return forward.error();
  impl.forward = std::move(*forward);
  impl.working_memory = std::make_unique<WorkingMemory>(
      *impl.store, *impl.forward, impl.ledger, impl.log,
      WorkingMemory::Options{.budget_bytes = memory.budget_bytes,
                             .overhead_bytes = memory.overhead_bytes,
                             .limits = {.cap_bytes = impl.options.ram_bytes,
                                        .headroom_bytes = impl.options.headroom_bytes,
                                        .floor_bytes = cache_bytes_min(impl),
                                        .planned_bytes = impl.mode.cache_bytes}});
  // Long steps must not leave the drive without orders.
  impl.pool->set_interlude([store = impl.store.get()] { store->pump(); });
  impl.idle_fill =
      std::make_unique<IdleFill>(*impl.store, *impl.census,
                                 IdleFill::Options{.enabled = impl.options.prewarm == Switch::on &&
                                                              impl.mode.mode != "resident",
                                                   .slots_kept_empty = slots_kept_empty(impl)});
  impl.mode.load_s = os::seconds_between(start, os::now_ns());
  log_mode(impl);
  return {};
}

}  // namespace sluice
