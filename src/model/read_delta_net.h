// The keys of families whose recurrent layers are delta nets: which layers those are, and the sizes
// of their heads. One thread.
#pragma once

#include "model/config.h"
#include "model/key_reader.h"

namespace sluice {

/// Sets config.delta, and mixer and state of the layers that are recurrent. Call after the other
/// properties of layers are read.
void read_delta_net(KeyReader& keys, ModelConfig& config);

}  // namespace sluice
