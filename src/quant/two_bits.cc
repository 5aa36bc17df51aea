#include "quant/blocks.h"

namespace sluice {

void unpack_two_bits(const uint8_t* qs, int8_t* q) {
  for (size_t half = 0; half < 2; ++half)
    for (size_t k = 0; k < 4; ++k)
      for (size_t i = 0; i < 32; ++i)
        *q++ = static_cast<int8_t>((qs[32 * half + i] >> (2 * k)) & 3);
}

}  // namespace sluice
