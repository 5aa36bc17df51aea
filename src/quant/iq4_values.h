// The 16 weights that a code of four bits stands for in the IQ4 formats: close together around
// zero, where most weights are. Constants; any thread.
#pragma once

#include <cstdint>

namespace sluice {

inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace sluice
