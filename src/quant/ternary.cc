// TQ1_0 and TQ2_0: weights of three values under one scale for 256.
#include "quant/decode.h"
#include "quant/small_block.h"

namespace sluice {
namespace {

/// The leading digit (base 3) of the fraction byte / 256, less one.
int8_t first_digit(uint8_t byte) {
  return static_cast<int8_t>(((byte * 3) >> 8) - 1);
}

/// Digit by digit: all bytes' first, then all bytes' second, … Returns the end of what it wrote.
int8_t* unpack_digits(const uint8_t* bytes, size_t byte_count, size_t digit_count, int8_t* q) {
  for (size_t digit = 0, power = 1; digit < digit_count; ++digit, power *= 3)
    for (size_t i = 0; i < byte_count; ++i)
      *q++ = first_digit(static_cast<uint8_t>(bytes[i] * power));
  return q;
}

}  // namespace

void unpack_tq1_0(const BlockTQ1_0& block, int8_t* q) {
  q = unpack_digits(block.qs, 32, 5, q);
  q = unpack_digits(block.qs + 32, 16, 5, q);
  unpack_digits(block.qh, 4, 4, q);
}

void unpack_tq2_0(const BlockTQ2_0& block, int8_t* q) {
  unpack_two_bits(block.qs, q);
  for (size_t i = 0; i < kSuperBlock; ++i) --q[i];
}

void decode_tq1_0(const std::byte* blocks, size_t block_count, float* out) {
  decode_scaled_codes<BlockTQ1_0, kSuperBlock, unpack_tq1_0>(blocks, block_count, out);
}

void decode_tq2_0(const std::byte* blocks, size_t block_count, float* out) {
  decode_scaled_codes<BlockTQ2_0, kSuperBlock, unpack_tq2_0>(blocks, block_count, out);
}

}  // namespace sluice
