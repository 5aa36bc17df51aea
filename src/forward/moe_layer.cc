#include "forward/moe_layer.h"

#include <algorithm>

namespace sluice {

MoeLayer::MoeLayer(Backend& backend, ExpertStore& store, size_t group_count_max,
                   size_t pairs_per_step)
    : backend_(backend), store_(store), pairs_per_step_(pairs_per_step) {
  order_.reserve(group_count_max);
  active_.reserve(group_count_max);
  works_.reserve(group_count_max);
  chosen_.reserve(group_count_max);
}

void MoeLayer::start(uint32_t layer, const Grouping& grouping, Ranking ranking) {
  layer_ = layer;
  order_groups(grouping, ranking);
  acquire_more(grouping);
  store_.pump();
}

Status MoeLayer::finish(const Grouping& grouping, const BatchBuffers& batch,
                        const std::atomic<bool>* stop) {
  const ExpertLayout& layout = store_.layout(layer_);
  while (next_ < order_.size() || !active_.empty()) {
    if (store_.error()) return abandon(*store_.error());
    if (stop != nullptr && stop->load(std::memory_order_relaxed))
      return abandon(make_error(ErrorKind::interrupted, "interrupted"));
    // Finished experts free their slots, so down goes first.
    const bool computed = compute_ready(Stage::down, layout.down_parts(), batch) ||
                          compute_ready(Stage::gate_up, layout.gate_up_parts(), batch);
    acquire_more(grouping);
    if (computed)
      store_.pump();
    else
      store_.wait();
  }
  return {};
}

/// What is here or on its way comes first: leased at once, it can neither leave for the others nor
/// be read twice, and it computes while they are read. The others come in file order, or those last
/// that should stay longest.
void MoeLayer::order_groups(const Grouping& grouping, Ranking ranking) {
  const auto groups = grouping.groups();
  const auto is_absent = [&](const ExpertGroup& group) {
    return store_.whereabouts({layer_, group.expert}) == Whereabouts::absent;
  };
  // By hand and in place: std::stable_partition may allocate.
  order_.assign(groups.begin(), groups.end());
  size_t next = 0;
  for (const ExpertGroup& group : groups)
    if (!is_absent(group)) order_[next++] = group;
  const auto first_absent = static_cast<std::ptrdiff_t>(next);
  for (const ExpertGroup& group : groups)
    if (is_absent(group)) order_[next++] = group;
  if (ranking == Ranking::worth)
    std::sort(order_.begin() + first_absent, order_.end(),
              [](const ExpertGroup& a, const ExpertGroup& b) {
                return a.recency != b.recency ? a.recency < b.recency : a.expert < b.expert;
              });
  next_ = 0;
}

void MoeLayer::acquire_more(const Grouping& grouping) {
  while (next_ < order_.size()) {
    const ExpertGroup& group = order_[next_];
    ExpertLease lease = store_.acquire({layer_, group.expert}, group.recency);
    if (!lease) return;
    const ExpertWork work{.view = store_.view(lease),
                          .tokens = grouping.token_of_pair() + group.first_pair,
                          .token_count = group.token_count,
                          .first_pair = group.first_pair,
                          .layer = layer_,
                          .expert = static_cast<int32_t>(group.expert)};
    active_.push_back({std::move(lease), work, Stage::gate_up});
    ++next_;
  }
}

/// Computes one step of the experts that wait for this stage and have the parts it needs, at most
/// pairs_per_step_ pairs of them. False when there is none.
bool MoeLayer::compute_ready(Stage stage, PartMask parts, const BatchBuffers& batch) {
  works_.clear();
  chosen_.clear();
  size_t pairs = 0;
  for (size_t i = 0; i < active_.size() && pairs < pairs_per_step_; ++i) {
    const Active& active = active_[i];
    if (active.stage != stage || !active.lease.ready(parts)) continue;
    works_.push_back(active.work);
    chosen_.push_back(i);
    pairs += active.work.token_count;
  }
  if (works_.empty()) return false;
  if (stage == Stage::gate_up)
    backend_.expert_gate_up(works_, batch);
  else
    backend_.expert_down(works_, batch);
  advance(stage);
  return true;
}

/// Moves the computed experts on: from gate_up to down, from down to finished.
void MoeLayer::advance(Stage stage) {
  if (stage == Stage::gate_up) {
    for (const size_t index : chosen_) active_[index].stage = Stage::down;
    return;
  }
  for (const size_t index : chosen_) active_[index].lease = {};
  std::erase_if(active_, [](const Active& active) { return !active.lease; });
}

Status MoeLayer::abandon(Error error) {
  active_.clear();
  store_.give_up();
  return error;
}

}  // namespace sluice
