#include "quant/fp4.h"

#include <bit>

#include "base/half.h"

namespace sluice {

float half_of_e8m0(uint8_t e) {
  // The exponent of the half is e − 1, which 0 and 1 have to express as subnormals.
  return std::bit_cast<float>(e < 2 ? 0x200000u << e : (e - 1u) << 23);
}

float half_of_e4m3(uint8_t bits) {
  if (bits == 0x7f) return 0.0f;
  // Read as a binary16 of bias 15, the exponent is 8 too small; and this is to be the half.
  return f16_to_f32(static_cast<uint16_t>((bits & 0x7f) << 7)) * 0x1p7f;
}

}  // namespace sluice
