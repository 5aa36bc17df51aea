// What Q4_K and Q5_K share: the meaning of a block (scale and min per 32 weights, both in six bits,
// times two halves per 256), and how an encoder chooses them. The two formats differ only in how
// many bits q has and where they lie. For q4_k.cc and q5_k.cc.
#pragma once

#include "quant/blocks.h"

namespace sluice {

/// w = (d · scale_s) · q − (dmin · min_s) for the 256 weights of a block. `d` and `dmin` as stored.
void decode_k_block(uint16_t d, uint16_t dmin, const uint8_t* packed_scales, const int8_t* q,
                    float* out);

/// Scales for 256 weights and the q, in 0 … q_max, that come nearest to the weights under them.
struct KEncoding {
  uint16_t d;
  uint16_t dmin;
  uint8_t packed_scales[12];
  uint8_t q[kSuperBlock];
};
KEncoding encode_k_block(const float* x, int q_max);

}  // namespace sluice
