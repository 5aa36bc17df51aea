// The floats of four bits and the scales of eight that MXFP4 and NVFP4 are made of.
//
// A weight is E2M1: a sign, two bits of exponent, one of mantissa; 0, ½, 1, 1½, 2, 3, 4 or 6. Twice
// that is an integer, so a dot product can be exact; the scales come as halves to make up for it.
// The functions define what each byte means, including those that the standards leave to NaN; any
// thread may call them.
#pragma once

#include <cstdint>

namespace sluice {

/// The value of each code, doubled.
inline constexpr int8_t kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Half of 2^(e − 127): all exponent, no sign, no mantissa. 255, a NaN by its standard, goes on
/// with 2^128, whose half a float can hold.
float half_of_e8m0(uint8_t e);

/// Half of an E4M3: four bits of exponent with bias 7, three of mantissa, the sign bit ignored.
/// 0x7f, a NaN by its standard, is zero; 0xff is not, and continues the numbers below it.
float half_of_e4m3(uint8_t bits);

}  // namespace sluice
