#include "quant/blocks.h"

namespace sluice {

void unpack_q6_k(const BlockQ6_K& block, int8_t* q) {
  for (size_t half = 0; half < 2; ++half) {
    const uint8_t* ql = block.ql + 64 * half;
    const uint8_t* qh = block.qh + 32 * half;
    for (size_t k = 0; k < 4; ++k) {
      for (size_t i = 0; i < 32; ++i) {
        const uint8_t both = ql[32 * (k % 2) + i];
        const int low = k < 2 ? both & 15 : both >> 4;
        const int high = (qh[i] >> (2 * k)) & 3;
        q[128 * half + 32 * k + i] = static_cast<int8_t>((low | (high << 4)) - 32);
      }
    }
  }
}

}  // namespace sluice
