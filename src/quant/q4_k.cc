#include "quant/blocks.h"

namespace sluice {

void unpack_q4_k(const BlockQ4_K& block, int8_t* q) {
  for (size_t pair = 0; pair < kKSubBlocks / 2; ++pair) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t both = block.qs[32 * pair + i];
      q[64 * pair + i] = static_cast<int8_t>(both & 15);
      q[64 * pair + 32 + i] = static_cast<int8_t>(both >> 4);
    }
  }
}

}  // namespace sluice
