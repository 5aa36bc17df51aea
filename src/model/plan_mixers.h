// The tensors of what layers do between their tokens, for every kind of mixer. One thread.
#pragma once

#include "model/config.h"
#include "model/tensor_planner.h"
#include "model/weight_map.h"

namespace sluice {

/// The mixer of layer `index`, of the kind that the configuration says.
void plan_mixer(TensorPlanner& plan, size_t index, const ModelConfig& config, WeightMap& map);

}  // namespace sluice
