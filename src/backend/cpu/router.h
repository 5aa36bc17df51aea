// From router scores to a routing: the selection rule by itself, so that it can be tested without a
// model. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "model/architecture.h"

namespace sluice {

/// Fills `experts` with the ids of the highest scores, highest first, ties to the lower id, and
/// `weights` with their scores: divided by their sum (added in rank order) where the rule says so,
/// then scaled. Always gives distinct valid ids, whatever the scores, NaN included.
/// REQUIRES: experts.size() == weights.size() ≤ scores.size().
void choose_experts(std::span<const float> scores, const GatingRule& rule,
                    std::span<int32_t> experts, std::span<float> weights);

/// Fills `runners_up` with the highest scores that were not chosen, as choose_experts would go on,
/// and with kNoExpert where there are no more.
void choose_runners_up(std::span<const float> scores, std::span<const int32_t> chosen,
                       std::span<int32_t> runners_up);

}  // namespace sluice
