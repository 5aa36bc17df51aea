#include "quant/blocks.h"

namespace sluice {

void unpack_q5_k(const BlockQ5_K& block, int8_t* q) {
  for (size_t s = 0; s < kKSubBlocks; ++s) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t both = block.qs[32 * (s / 2) + i];
      const int low = s % 2 == 0 ? both & 15 : both >> 4;
      const int fifth = (block.qh[i] >> s) & 1;
      q[32 * s + i] = static_cast<int8_t>(low | (fifth << 4));
    }
  }
}

}  // namespace sluice
