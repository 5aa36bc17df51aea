#include "tests/support/simulated_engine.h"

#include <algorithm>

#include "base/units.h"
#include "io/prefetch_plan.h"
#include "tests/support/must.h"

namespace sluice {
namespace {

/// Small enough that what alignment adds stays as small as it is for large experts.
constexpr uint32_t kAlignment = 64;

std::vector<io::FileFacts> facts_of(const ModelBytes& model) {
  std::vector<io::FileFacts> facts;
  for (const std::string& path : model.header().paths()) facts.push_back({path, kAlignment});
  return facts;
}

FakeDriveOptions scaled_drive(const SimulatedOptions& options) {
  FakeDriveOptions drive = options.drive;
  drive.alignment = kAlignment;
  drive.bytes_per_ns /= options.byte_scale;
  drive.look_ns = 0;
  return drive;
}

io::ReadQueueOptions scaled_queue(const SimulatedOptions& options) {
  io::ReadQueueOptions queue = options.queue;
  const auto scaled = [&](uint32_t bytes) {
    return static_cast<uint32_t>(
        round_up(static_cast<uint64_t>(bytes / options.byte_scale), uint64_t{kAlignment}));
  };
  queue.prefetch_chunk_bytes = scaled(queue.prefetch_chunk_bytes);
  queue.load_chunk_bytes = scaled(queue.load_chunk_bytes);
  return queue;
}

/// What a probe of the drive would say, in bytes as stated.
io::DeviceProfile profile_of(const FakeDriveOptions& drive) {
  constexpr uint64_t kReadBytes = 1 << 20;
  const double bytes_per_s = drive.bytes_per_ns * 1e9;
  const double read_us = kReadBytes / bytes_per_s * 1e6;
  const double latency_us = static_cast<double>(drive.latency_ns) / 1e3 + read_us;
  return {.bytes_per_s = bytes_per_s,
          .latency_us = latency_us,
          .delay_by_followers = drive.answers_together ? 1 + 2 * read_us / latency_us : 1,
          .read_bytes = kReadBytes};
}

std::unique_ptr<EvictionPolicy> make_policy(EvictionKind kind, uint32_t expert_total) {
  constexpr uint32_t kHalfLife = 64;
  if (kind == EvictionKind::lru) return std::make_unique<LruPolicy>(expert_total);
  return std::make_unique<DecayPolicy>(expert_total, kHalfLife);
}

}  // namespace

/// Lets time pass, in pieces after which somebody looks after the drive.
void TimedBackend::pass(uint64_t ns) {
  compute_ns_ += ns;
  while (ns > 0) {
    const uint64_t piece = std::min(ns, costs_.look_ns);
    drive_.advance(piece);
    ns -= piece;
    if (store_ != nullptr) store_->pump();
  }
}

uint64_t TimedBackend::for_tokens(uint64_t ns, size_t token_count) const {
  const double further = static_cast<double>(token_count - 1) * costs_.further_token;
  return static_cast<uint64_t>(static_cast<double>(ns) * (1 + further));
}

uint64_t TimedBackend::for_works(uint64_t ns, std::span<const ExpertWork> works) const {
  uint64_t sum = 0;
  for (const ExpertWork& work : works) sum += for_tokens(ns, work.token_count);
  return sum;
}

void TimedBackend::mix_tokens(size_t layer, size_t first_position, size_t token_count,
                              SequenceState& state, float* hidden) {
  ForwardingBackend::mix_tokens(layer, first_position, token_count, state, hidden);
  pass(for_tokens(costs_.attention_ns, token_count));
}

void TimedBackend::route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  ForwardingBackend::route(layer, first, count, batch);
  pass(for_tokens(costs_.route_ns, count));
}

void TimedBackend::predict(std::span<const uint32_t> layers, const float* hidden, float* logits) {
  ForwardingBackend::predict(layers, hidden, logits);
  pass(costs_.predict_ns + (layers.size() - 1) * costs_.predict_more_ns);
}

void TimedBackend::expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers& batch) {
  ForwardingBackend::expert_gate_up(works, batch);
  pass(for_works(costs_.gate_up_ns, works));
}

void TimedBackend::expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) {
  ForwardingBackend::expert_down(works, batch);
  pass(for_works(costs_.down_ns, works));
}

void TimedBackend::combine(size_t layer, size_t token_count, const BatchBuffers& batch) {
  ForwardingBackend::combine(layer, token_count, batch);
  pass(for_tokens(costs_.combine_ns, token_count));
}

void TimedBackend::output(size_t token_count, const float* hidden, float* logits) {
  ForwardingBackend::output(token_count, hidden, logits);
  pass(for_tokens(costs_.output_ns, token_count));
}

SimulatedEngine::SimulatedEngine(const ModelBytes& model, ComputePool& pool,
                                 const SimulatedOptions& options)
    : options_(options),
      drive_(scaled_drive(options), model.files()),
      queue_(drive_, facts_of(model), scaled_queue(options)) {
  inner_ = must(CpuBackend::make(model.config(), model.weights(),
                                 kernels::kernel_table(kernels::usable_isas().back()), pool,
                                 {options.step_tokens, options.context_tokens}, ledger_));
  build(model, *inner_);
}

SimulatedEngine::SimulatedEngine(const ModelBytes& model, ModelRecording& recording,
                                 const SimulatedOptions& options)
    : options_(options),
      drive_(scaled_drive(options), model.files()),
      queue_(drive_, facts_of(model), scaled_queue(options)) {
  inner_ = std::make_unique<PlayedBackend>(recording);
  build(model, *inner_);
}

SimulatedEngine::~SimulatedEngine() = default;

void SimulatedEngine::build(const ModelBytes& model, Backend& backend) {
  const ModelConfig& config = model.config();
  const WeightMap& weights = model.weights();
  const io::DeviceProfile profile = profile_of(options_.drive);
  queue_.limit_prefetch(io::plan_prefetch_depth(profile, options_.queue.prefetch_chunk_bytes,
                                                options_.queue.prefetch_in_service_max),
                        io::plan_prefetch_beside_demand(
                            profile, options_.queue.prefetch_in_service_beside_demand_max));
  std::vector<SlotLayout> layouts;
  std::vector<uint64_t> slot_bytes;
  std::vector<uint32_t> slot_counts, expert_counts;
  for (const ExpertLayout& experts : weights.experts) {
    layouts.push_back(SlotLayout::of(experts, kAlignment));
    slot_bytes.push_back(layouts.back().slot_bytes);
    expert_counts.push_back(experts.expert_count());
    slot_counts.push_back(std::min(options_.slots_per_layer, experts.expert_count()));
  }
  uint32_t expert_total = 0, slot_total = 0;
  for (const uint32_t count : expert_counts) expert_total += count;
  for (const uint32_t count : slot_counts) slot_total += count;
  SlotPlan plan = options_.pool == PoolKind::ring
                      ? plan_ring_pool(slot_bytes, slot_total, kAlignment)
                      : plan_layer_pool(slot_bytes, slot_counts);
  slots_ = must(SlotPool::allocate(std::move(plan), std::move(layouts), ledger_));
  store_ = std::make_unique<ExpertStore>(*slots_, weights.experts, queue_, config.expert_used_count,
                                         make_policy(options_.evict, expert_total));
  timed_ = std::make_unique<TimedBackend>(backend, drive_, options_.costs);
  timed_->set_store(store_.get());
  Lookahead::Options ahead = options_.lookahead;
  ahead.read_ahead.batch_token_max = options_.step_tokens;
  ahead.read_ahead.expert_counts = expert_counts;
  lookahead_ =
      std::make_unique<Lookahead>(*timed_, config, weights, *store_,
                                  Lookahead::Notes{.correction = options_.correction}, ahead);
  forward_ = must(ForwardPass::make(config, weights, *timed_, *store_, lookahead_.get(),
                                    {.step_token_max = options_.step_tokens,
                                     .batch_token_max = options_.step_tokens,
                                     .ubatch_token_max = options_.step_tokens,
                                     .pairs_per_step = 256,
                                     .runner_up_count = ahead.runner_up_count},
                                    ledger_));
  forward_->reserve(options_.step_tokens);
  state_.emplace(must(SequenceState::allocate(
      config, {options_.context_tokens, options_.step_tokens, KvType::f32}, ledger_)));
  logits_.resize(config.vocabulary_size);
}

SimulatedStep SimulatedEngine::step(std::span<const int32_t> tokens) {
  const Reach reach = lookahead_->reach();
  const uint64_t start_ns = drive_.now_ns();
  const ExpertStats before = store_->stats();
  const auto sink = [&](std::span<const float> rows, size_t) {
    std::ranges::copy(rows.last(logits_.size()), logits_.begin());
  };
  const Status done = forward_->step(tokens, *state_, LogitsWanted::last, sink, nullptr);
  CHECK(done.ok());
  const ExpertStats after = store_->stats();
  return {.step_ns = drive_.now_ns() - start_ns,
          .stall_ns = after.stall_ns - before.stall_ns,
          .miss_count = after.miss_count - before.miss_count,
          .reach = reach};
}

SimulatedStep SimulatedEngine::decode(int32_t token) {
  return step({&token, 1});
}

std::vector<SimulatedStep> SimulatedEngine::decode(std::span<const int32_t> tokens) {
  std::vector<SimulatedStep> steps;
  for (const int32_t token : tokens) steps.push_back(decode(token));
  return steps;
}

SimulatedStep SimulatedEngine::prefill(std::span<const int32_t> tokens) {
  return step(tokens);
}

ModelRecording SimulatedEngine::record(const ModelBytes& model, ComputePool& pool,
                                       std::span<const int32_t> tokens) {
  // All experts resident, so that nothing but the model matters.
  SimulatedOptions options{
      .drive = {}, .step_tokens = tokens.size(), .context_tokens = tokens.size()};
  SimulatedEngine engine(model, pool, options);
  RecordingBackend recorder(*engine.inner_, model.config());
  engine.timed_ = std::make_unique<TimedBackend>(recorder, engine.drive_, options.costs);
  auto forward =
      must(ForwardPass::make(model.config(), model.weights(), *engine.timed_, *engine.store_,
                             nullptr, engine.forward_->limits(), engine.ledger_));
  forward->reserve(tokens.size());
  const Status done = forward->step(
      tokens, *engine.state_, LogitsWanted::none, [](std::span<const float>, size_t) {}, nullptr);
  CHECK(done.ok());
  return recorder.take();
}

}  // namespace sluice
