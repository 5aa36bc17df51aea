#include "quant/blocks.h"

namespace sluice {

void unpack_q4_0(const BlockQ4_0& block, int8_t* q) {
  constexpr size_t kHalf = kSmallBlock / 2;
  for (size_t i = 0; i < kHalf; ++i) {
    q[i] = static_cast<int8_t>((block.qs[i] & 15) - 8);
    q[kHalf + i] = static_cast<int8_t>((block.qs[i] >> 4) - 8);
  }
}

}  // namespace sluice
