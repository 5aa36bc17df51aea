// From router scores to a routing: the selection rule by itself, so that it can be tested without a
// model. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "model/architecture.h"

namespace sluice {

/// Leaves only the experts of the eligible groups, those of the highest ranks (ties to the lower
/// group), selectable: the others' selection scores become −∞.
void limit_to_groups(const GatingRule& rule, std::span<float> selection);

/// Fills `experts` with the ids of the highest selection scores, highest first, ties to the lower
/// id, and `weights` with their scores: divided by their sum (added in rank order) where the rule
/// says so, then scaled. `selection` is the scores themselves, or with a bias, or limited to
/// groups. Always gives distinct valid ids, whatever the scores, NaN included. REQUIRES:
/// experts.size() == weights.size() ≤ scores.size() == selection.size().
void choose_experts(std::span<const float> scores, std::span<const float> selection,
                    const GatingRule& rule, std::span<int32_t> experts, std::span<float> weights);

/// Fills `runners_up` with the highest scores that were not chosen, as choose_experts would go on,
/// and with kNoExpert where there are no more.
void choose_runners_up(std::span<const float> scores, std::span<const int32_t> chosen,
                       std::span<int32_t> runners_up);

}  // namespace sluice
