// Setting up the expert cache: how many slots, for whom, ruled by which policy.
#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "engine/engine_impl.h"
#include "experts/contest_policy.h"
#include "experts/residency_plan.h"
#include "experts/ring_plan.h"
#include "os/memory.h"

namespace sluice {

std::vector<SlotLayout> lay_out_slots(const Engine::Impl& impl) {
  std::vector<SlotLayout> layouts;
  for (size_t layer = 0; layer < impl.model->config().layer_count(); ++layer)
    layouts.push_back(
        SlotLayout::of(impl.model->weights().experts[layer], impl.model->expert_alignment(layer)));
  return layouts;
}

namespace {

/// The slots asked for, by size or by number, as far as memory allows; off asks for all.
ResidencyInput residency_input(const Engine::Impl& impl, uint64_t cache_bytes_max,
                               const std::vector<SlotLayout>& layouts) {
  const CacheSize& asked = impl.options.cache;
  ResidencyInput input{.layers = {},
                       .used_count = impl.model->config().expert_used_count,
                       .cache_bytes_max = cache_bytes_max};
  if (impl.options.stream != StreamMode::off) {
    input.cache_bytes_max = std::min(asked.bytes.value_or(cache_bytes_max), cache_bytes_max);
    input.slots_per_layer = asked.slots_per_layer;
  }
  for (size_t layer = 0; layer < layouts.size(); ++layer)
    input.layers.push_back(
        {impl.model->weights().experts[layer].expert_count(), layouts[layer].slot_bytes});
  return input;
}

void log_residency(const Engine::Impl& impl, const MemoryPlan& memory, const ResidencyPlan& plan) {
  for (const std::string& note : plan.notes) impl.log.info("{}", note);
  if (plan.all_resident) return;
  if (impl.options.stream == StreamMode::off)
    impl.log.info(
        "--moe-stream off needs memory for all experts ({}), but {} are to be had ({}); "
        "streaming instead",
        format_bytes(impl.facts.experts_bytes), format_bytes(memory.cache_bytes_max),
        memory.budget_reason);
  else if (impl.options.cache.bytes.value_or(0) > memory.cache_bytes_max)
    impl.log.info("the expert cache gets {} instead of {}: that is what the budget leaves ({})",
                  format_bytes(plan.cache_bytes), format_bytes(*impl.options.cache.bytes),
                  memory.budget_reason);
}

/// The policy that --moe-stream-evict names.
std::unique_ptr<EvictionPolicy> make_policy(Engine::Impl& impl) {
  std::vector<uint32_t> counts;
  for (const ExpertLayout& layer : impl.model->weights().experts)
    counts.push_back(layer.expert_count());
  const uint32_t experts = std::accumulate(counts.begin(), counts.end(), 0u);
  switch (impl.options.evict) {
    case EvictionKind::lru:
      impl.mode.evict = "lru";
      return std::make_unique<LruPolicy>(experts);
    case EvictionKind::decay:
      impl.mode.evict = "decay";
      return std::make_unique<DecayPolicy>(experts, impl.options.half_life_tokens);
    case EvictionKind::contest:
      break;
  }
  const auto layers = plan_contest(impl.slots->table().plan(), counts);
  impl.mode.evict = "contest";
  impl.ledger.add(MemoryUse::scratch, EvictionContest::bytes_for(layers));
  return std::make_unique<ContestPolicy>(layers, impl.facts.expert_used_count);
}

/// --moe-stream-ring says how many slots the ring has. Without it --moe-stream-cache means what it
/// means to layers: bytes for all, or slots for each, of which the ring has the sum.
void ask_for_slots(const EngineOptions& options, uint32_t moe_layers, RingInput& input) {
  const CacheSize& asked = options.cache;
  if (options.ring_slots > 0) {
    input.slots_asked = options.ring_slots;
  } else if (options.stream != StreamMode::off) {
    if (asked.slots_per_layer) input.slots_asked = *asked.slots_per_layer * moe_layers;
    input.bytes_asked = asked.bytes;
  }
}

/// The ring as asked for, or sized by itself; a stated cap or a group's limit holds either way.
RingPlan plan_the_ring(const Engine::Impl& impl, const MemoryPlan& memory,
                       const std::vector<uint64_t>& slot_bytes) {
  const os::MemoryState state = os::memory_state();
  uint32_t experts = 0, moe_layers = 0;
  for (const ExpertLayout& layer : impl.model->weights().experts) {
    experts += layer.expert_count();
    moe_layers += layer.expert_count() > 0;
  }
  const uint64_t beside_cache =
      memory.budget_bytes - std::min(memory.budget_bytes, memory.cache_bytes_max);
  RingInput input{
      .machine_bytes = state.total_bytes,
      .available_bytes = state.available_bytes + os::resident_bytes(),
      .resident_bytes = impl.model->dense_arena_bytes(),
      .overhead_bytes = beside_cache - std::min(beside_cache, impl.model->dense_arena_bytes()),
      .expert_bytes_max = std::ranges::max(slot_bytes),
      .page_bytes = os::page_bytes(),
      .experts_total = experts,
      .slots_min = impl.facts.expert_used_count,
      .budget_bytes = memory.cache_bytes_max};
  ask_for_slots(impl.options, moe_layers, input);
  return plan_ring(input);
}

}  // namespace

Status make_expert_store(Engine::Impl& impl, const MemoryPlan& memory) {
  std::vector<SlotLayout> layouts = lay_out_slots(impl);
  std::vector<uint64_t> slot_bytes;
  for (const SlotLayout& layout : layouts) slot_bytes.push_back(layout.slot_bytes);
  SlotPlan plan;
  bool all_resident = false;
  if (impl.options.pool == PoolKind::ring) {
    const RingPlan ring = plan_the_ring(impl, memory, slot_bytes);
    for (const std::string& note : ring.notes) impl.log.info("{}", note);
    plan = plan_ring_pool(slot_bytes, ring.slot_count, os::page_bytes());
    impl.mode.pool = "ring";
    impl.mode.slots_per_layer.assign(layouts.size(), 0);
    all_resident = ring.all_resident;
  } else {
    if (impl.options.ring_slots > 0)
      impl.log.info("--moe-stream-ring has no effect on layers; it needs --moe-stream-pool ring");
    const ResidencyPlan residency =
        plan_residency(residency_input(impl, memory.cache_bytes_max, layouts));
    log_residency(impl, memory, residency);
    plan = plan_layer_pool(slot_bytes, residency.slot_counts);
    impl.mode.slots_per_layer = residency.slot_counts;
    all_resident = residency.all_resident;
  }
  impl.mode.cache_bytes = plan.bytes();
  auto slots = SlotPool::allocate(std::move(plan), std::move(layouts), impl.ledger);
  if (!slots) return slots.error();
  impl.slots = std::move(*slots);
  impl.store =
      std::make_unique<ExpertStore>(*impl.slots, impl.model->weights().experts, impl.model->queue(),
                                    impl.model->config().expert_used_count, make_policy(impl));
  // Without experts there is nothing that could be read later.
  const bool wants_all = impl.options.stream == StreamMode::off || impl.facts.expert_count == 0;
  const bool resident = wants_all && all_resident;
  impl.mode.mode = resident ? "resident" : impl.model->reads_direct() ? "streamed" : "buffered";
  return resident ? impl.store->preload(impl.stop) : Status();
}

}  // namespace sluice
