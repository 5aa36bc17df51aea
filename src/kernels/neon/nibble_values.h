// The values that codes of four bits stand for in the IQ4 and FP4 formats, as tables for byte
// look-ups. Private to the including file.
#pragma once

#include "kernels/neon/intrinsics.h"
#include "quant/fp4.h"
#include "quant/iq4_values.h"

namespace sluice::kernels::neon {
namespace {

struct NibbleTable {
  int8_t values[16];
};

/// A copy of one's own, because to load the original would be to define it here for the whole
/// program.
consteval NibbleTable copy(const int8_t (&values)[16]) {
  NibbleTable table = {};
  for (size_t i = 0; i < 16; ++i) table.values[i] = values[i];
  return table;
}

constexpr NibbleTable kIq4Table = copy(kIq4Values);
constexpr NibbleTable kFp4Table = copy(kTwiceE2m1);

/// REQUIRES: codes are below 16.
inline int8x16_t look_up(const NibbleTable& table, uint8x16_t codes) {
  return vqtbl1q_s8(vld1q_s8(table.values), codes);
}

}  // namespace
}  // namespace sluice::kernels::neon
