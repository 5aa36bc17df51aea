#include "tests/kernel_check/operands.h"

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/half.h"
#include "quant/activation.h"
#include "quant/blocks.h"
#include "quant/code_book_blocks.h"
#include "quant/code_books.h"

namespace sluice::kernels::check {

const char* name_of(WeightKind kind) {
  constexpr const char* kNames[] = {"random", "highest", "lowest", "zero", "subnormal", "broken"};
  return kNames[static_cast<size_t>(kind)];
}

const char* name_of(ActivationKind kind) {
  constexpr const char* kNames[] = {"random", "highest",   "lowest", "alternating",
                                    "zero",   "subnormal", "broken"};
  return kNames[static_cast<size_t>(kind)];
}

namespace {

constexpr uint16_t kHalfMax = 0x7bff;

/// A scale as a kind has it.
uint16_t make_half(WeightKind kind, Random& random) {
  const auto sign = static_cast<uint16_t>(random.below(2) << 15);
  switch (kind) {
    case WeightKind::random:  // 2^-14 … 2
      return static_cast<uint16_t>(sign | (0x0400 + random.below(0x3c00)));
    case WeightKind::highest:
    case WeightKind::lowest:
      return kHalfMax;
    case WeightKind::zero:
      return sign;
    case WeightKind::subnormal:
      return static_cast<uint16_t>(sign | random.below(0x400));
    case WeightKind::broken:
      if (random.below(4) != 0) return static_cast<uint16_t>(sign | 0x3000);
      return static_cast<uint16_t>(sign | 0x7c00 | (random.below(2) * 0x200));
  }
  return 0;
}

/// An exponent as a kind has it, quant/fp4.h; none of them is zero or broken.
uint8_t make_e8m0(WeightKind kind, Random& random) {
  switch (kind) {
    case WeightKind::random:
      return static_cast<uint8_t>(112 + random.below(20));
    case WeightKind::highest:
    case WeightKind::lowest:
      return 255;
    case WeightKind::zero:
    case WeightKind::subnormal:
      return static_cast<uint8_t>(random.below(3));
    case WeightKind::broken:
      return static_cast<uint8_t>(random.below(4) != 0 ? 127 : 250 + random.below(6));
  }
  return 0;
}

/// A scale of NVFP4 as a kind has it.
uint8_t make_e4m3(WeightKind kind, Random& random) {
  constexpr uint8_t kZeros[] = {0, 0x7f, 0x80};
  constexpr uint8_t kOdd[] = {0x7f, 0xff, 0xfe, 0x80, 0xbd};
  switch (kind) {
    case WeightKind::random:
      return static_cast<uint8_t>(random.next());
    case WeightKind::highest:
    case WeightKind::lowest:
      return 0x7e;
    case WeightKind::zero:
      return kZeros[random.below(std::size(kZeros))];
    case WeightKind::subnormal:
      return static_cast<uint8_t>(random.below(9));
    case WeightKind::broken:
      return kOdd[random.below(std::size(kOdd))];
  }
  return 0;
}

// set_ends sets all q to one end of their range, and scales and mins to their largest.

/// Where nothing but codes are integers, and all bits of the largest are set.
template <class Block>
void set_ends(Block& block, bool high) {
  std::memset(block.qs, high ? 0xff : 0, sizeof(block.qs));
  if constexpr (requires { block.qh; }) std::memset(block.qh, high ? 0xff : 0, sizeof(block.qh));
}
void set_ends(BlockQ8_0& block, bool high) {
  std::memset(block.qs, high ? 0x7f : 0x80, sizeof(block.qs));
}
void set_ends(BlockQ2_K& block, bool high) {
  std::memset(block.scales, 0xff, sizeof(block.scales));
  std::memset(block.qs, high ? 0xff : 0, sizeof(block.qs));
}
void set_ends(BlockQ3_K& block, bool high) {
  std::memset(block.hmask, high ? 0xff : 0, sizeof(block.hmask));
  std::memset(block.qs, high ? 0xff : 0, sizeof(block.qs));
  std::memset(block.scales, high ? 0xff : 0, sizeof(block.scales));
}
void set_ends(BlockQ4_K& block, bool high) {
  std::memset(block.scales, 0xff, sizeof(block.scales));
  std::memset(block.qs, high ? 0xff : 0, sizeof(block.qs));
}
void set_ends(BlockQ5_K& block, bool high) {
  std::memset(block.scales, 0xff, sizeof(block.scales));
  std::memset(block.qs, high ? 0xff : 0, sizeof(block.qs));
  std::memset(block.qh, high ? 0xff : 0, sizeof(block.qh));
}
void set_ends(BlockQ6_K& block, bool high) {
  std::memset(block.ql, high ? 0xff : 0, sizeof(block.ql));
  std::memset(block.qh, high ? 0xff : 0, sizeof(block.qh));
  std::memset(block.scales, high ? 0x7f : 0x80, sizeof(block.scales));
}
void set_ends(BlockIQ4_XS& block, bool high) {
  block.scales_h = high ? 0xffff : 0;
  std::memset(block.scales_l, high ? 0xff : 0, sizeof(block.scales_l));
  std::memset(block.qs, high ? 0xff : 0, sizeof(block.qs));
}
void set_ends(BlockMXFP4& block, bool high) {
  std::memset(block.qs, high ? 0x77 : 0xff, sizeof(block.qs));  // 12 and −12
}
void set_ends(BlockNVFP4& block, bool high) {
  std::memset(block.qs, high ? 0x77 : 0xff, sizeof(block.qs));
}

template <class Block>
void set_scales(Block& block, WeightKind kind, Random& random) {
  block.d = make_half(kind, random);
  if constexpr (requires { block.dmin; }) block.dmin = make_half(kind, random);
  if constexpr (requires { block.m; }) block.m = make_half(kind, random);
}
void set_scales(BlockMXFP4& block, WeightKind kind, Random& random) {
  block.e = make_e8m0(kind, random);
}
void set_scales(BlockNVFP4& block, WeightKind kind, Random& random) {
  for (uint8_t& scale : block.scales) scale = make_e4m3(kind, random);
}

/// The number of the entry with the largest or, where a code may be negative, the smallest sum.
template <size_t kCount, size_t kLength>
uint32_t extreme_entry(const CodeBook<kCount, kLength>& book, bool high) {
  const auto sum = [&](size_t e) {
    int total = 0;
    for (const int8_t code : book.codes[e]) total += code;
    return high || book.codes[0][0] > 0 ? total : -total;
  };
  size_t best = 0;
  for (size_t e = 1; e < kCount; ++e)
    if (sum(e) > sum(best)) best = e;
  return static_cast<uint32_t>(best);
}

void set_ends(BlockIQ2_XXS& block, bool high) {
  for (size_t i = 0; i < sizeof(block.qs); ++i)
    block.qs[i] = static_cast<uint8_t>(i % 8 < 4   ? extreme_entry(kBookIq2Xxs, high)
                                       : i % 8 < 7 ? (high ? 0 : 0xff)
                                                   : (high ? 0xf0 : 0xff));
}
void set_ends(BlockIQ2_XS& block, bool high) {
  const auto word = static_cast<uint16_t>(extreme_entry(kBookIq2Xs, high) | (high ? 0 : 0xfe00));
  for (size_t i = 0; i < sizeof(block.qs); i += 2) std::memcpy(block.qs + i, &word, sizeof(word));
  std::memset(block.scales, 0xff, sizeof(block.scales));
}
void set_ends(BlockIQ2_S& block, bool high) {
  const uint32_t entry = extreme_entry(kBookIq2S, high);
  std::memset(block.qs, static_cast<int>(entry & 255), sizeof(block.qs));
  std::memset(block.qh, static_cast<int>((entry >> 8) * 0x55), sizeof(block.qh));
  std::memset(block.signs, high ? 0 : 0xff, sizeof(block.signs));
  std::memset(block.scales, 0xff, sizeof(block.scales));
}
void set_ends(BlockIQ3_XXS& block, bool high) {
  const uint32_t word = high ? 0xf0000000u : 0xffffffffu;
  std::memset(block.qs, static_cast<int>(extreme_entry(kBookIq3Xxs, high)), sizeof(block.qs));
  for (size_t i = 0; i < sizeof(block.signs_and_scales); i += 4)
    std::memcpy(block.signs_and_scales + i, &word, sizeof(word));
}
void set_ends(BlockIQ3_S& block, bool high) {
  const uint32_t entry = extreme_entry(kBookIq3S, high);
  std::memset(block.qs, static_cast<int>(entry & 255), sizeof(block.qs));
  std::memset(block.qh, entry > 255 ? 0xff : 0, sizeof(block.qh));
  std::memset(block.signs, high ? 0 : 0xff, sizeof(block.signs));
  std::memset(block.scales, 0xff, sizeof(block.scales));
}
void set_ends(BlockIQ1_S& block, bool high) {
  const uint32_t entry = extreme_entry(kBookIq1, high);
  const auto word = static_cast<uint16_t>((high ? 0x7000 : 0xf000) | ((entry >> 8) * 01111));
  std::memset(block.qs, static_cast<int>(entry & 255), sizeof(block.qs));
  for (size_t i = 0; i < sizeof(block.qh); i += 2) std::memcpy(block.qh + i, &word, sizeof(word));
}
void set_ends(BlockIQ1_M& block, bool high) {
  const uint32_t entry = extreme_entry(kBookIq1, high);
  std::memset(block.qs, static_cast<int>(entry & 255), sizeof(block.qs));
  std::memset(block.qh, static_cast<int>(((entry >> 8) | (high ? 0 : 8)) * 0x11), sizeof(block.qh));
  std::memset(block.scales, 0xff, sizeof(block.scales));
}

void set_scales(BlockIQ1_M& block, WeightKind kind, Random& random) {
  const uint16_t d = make_half(kind, random);
  for (size_t i = 0; i < 4; ++i) {
    uint8_t& top = block.scales[2 * i + 1];
    top = static_cast<uint8_t>((top & 15) | ((d >> (4 * i)) & 15) << 4);
  }
}

template <class Block>
void fill_blocks(WeightKind kind, size_t block_count, Random& random, std::byte* blocks) {
  for (size_t b = 0; b < block_count; ++b) {
    std::byte bytes[sizeof(Block)];
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    Block block = load_block<Block>(bytes, 0);
    if (kind == WeightKind::highest || kind == WeightKind::lowest)
      set_ends(block, kind == WeightKind::highest);
    set_scales(block, kind, random);
    store_block(block, blocks, b);
  }
}

FloatKind float_kind(WeightKind kind) {
  switch (kind) {
    case WeightKind::random:
      return FloatKind::ordinary;
    case WeightKind::highest:
      return FloatKind::huge;
    case WeightKind::lowest:
      return FloatKind::edges;
    case WeightKind::zero:
      return FloatKind::zeros;
    case WeightKind::subnormal:
      return FloatKind::tiny;
    case WeightKind::broken:
      return FloatKind::broken;
  }
  return FloatKind::ordinary;
}

}  // namespace

void fill_weights(Dtype dtype, WeightKind kind, size_t block_count, Random& random,
                  std::byte* blocks) {
  switch (dtype) {
    case Dtype::q4_0:
      return fill_blocks<BlockQ4_0>(kind, block_count, random, blocks);
    case Dtype::q4_1:
      return fill_blocks<BlockQ4_1>(kind, block_count, random, blocks);
    case Dtype::q5_0:
      return fill_blocks<BlockQ5_0>(kind, block_count, random, blocks);
    case Dtype::q5_1:
      return fill_blocks<BlockQ5_1>(kind, block_count, random, blocks);
    case Dtype::q8_0:
      return fill_blocks<BlockQ8_0>(kind, block_count, random, blocks);
    case Dtype::q2_k:
      return fill_blocks<BlockQ2_K>(kind, block_count, random, blocks);
    case Dtype::q3_k:
      return fill_blocks<BlockQ3_K>(kind, block_count, random, blocks);
    case Dtype::q4_k:
      return fill_blocks<BlockQ4_K>(kind, block_count, random, blocks);
    case Dtype::q5_k:
      return fill_blocks<BlockQ5_K>(kind, block_count, random, blocks);
    case Dtype::q6_k:
      return fill_blocks<BlockQ6_K>(kind, block_count, random, blocks);
    case Dtype::iq4_xs:
      return fill_blocks<BlockIQ4_XS>(kind, block_count, random, blocks);
    case Dtype::tq1_0:
      return fill_blocks<BlockTQ1_0>(kind, block_count, random, blocks);
    case Dtype::tq2_0:
      return fill_blocks<BlockTQ2_0>(kind, block_count, random, blocks);
    case Dtype::iq4_nl:
      return fill_blocks<BlockIQ4_NL>(kind, block_count, random, blocks);
    case Dtype::mxfp4:
      return fill_blocks<BlockMXFP4>(kind, block_count, random, blocks);
    case Dtype::nvfp4:
      return fill_blocks<BlockNVFP4>(kind, block_count, random, blocks);
    case Dtype::q1_0:
      return fill_blocks<BlockQ1_0>(kind, block_count, random, blocks);
    case Dtype::q2_0:
      return fill_blocks<BlockQ2_0>(kind, block_count, random, blocks);
    case Dtype::iq2_xxs:
      return fill_blocks<BlockIQ2_XXS>(kind, block_count, random, blocks);
    case Dtype::iq2_xs:
      return fill_blocks<BlockIQ2_XS>(kind, block_count, random, blocks);
    case Dtype::iq3_xxs:
      return fill_blocks<BlockIQ3_XXS>(kind, block_count, random, blocks);
    case Dtype::iq1_s:
      return fill_blocks<BlockIQ1_S>(kind, block_count, random, blocks);
    case Dtype::iq3_s:
      return fill_blocks<BlockIQ3_S>(kind, block_count, random, blocks);
    case Dtype::iq2_s:
      return fill_blocks<BlockIQ2_S>(kind, block_count, random, blocks);
    case Dtype::iq1_m:
      return fill_blocks<BlockIQ1_M>(kind, block_count, random, blocks);
    default:
      break;
  }
  for (size_t i = 0; i < block_count; ++i) {
    const float value = make_float(float_kind(kind), random);
    if (dtype == Dtype::f32) store_block(value, blocks, i);
    if (dtype == Dtype::bf16) store_block(f32_to_bf16(value), blocks, i);
    // Halves directly, so that each kind fits their range.
    if (dtype == Dtype::f16) store_block(make_half(kind, random), blocks, i);
  }
}

namespace {

FloatKind float_kind(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::random:
      return FloatKind::ordinary;
    case ActivationKind::highest:
      return FloatKind::huge;
    case ActivationKind::lowest:
      return FloatKind::edges;
    case ActivationKind::alternating:
      return FloatKind::ordinary;
    case ActivationKind::zero:
      return FloatKind::zeros;
    case ActivationKind::subnormal:
      return FloatKind::tiny;
    case ActivationKind::broken:
      return FloatKind::broken;
  }
  return FloatKind::ordinary;
}

int8_t make_q(ActivationKind kind, size_t i, Random& random) {
  switch (kind) {
    case ActivationKind::highest:
      return 127;
    case ActivationKind::lowest:
      return -127;
    case ActivationKind::alternating:
      return i % 2 == 0 ? 127 : -127;
    case ActivationKind::zero:
      return 0;
    default:
      return static_cast<int8_t>(static_cast<int>(random.below(255)) - 127);
  }
}

float make_scale(ActivationKind kind, Random& random) {
  switch (kind) {
    case ActivationKind::highest:
    case ActivationKind::lowest:
      return 65504.0f;
    case ActivationKind::zero:
      return 0.0f;
    case ActivationKind::subnormal:
      return make_float(FloatKind::tiny, random);
    case ActivationKind::broken:
      return make_float(FloatKind::broken, random);
    default:
      return make_float(FloatKind::ordinary, random);  // a K row's scale has either sign
  }
}

}  // namespace

void fill_activation(ActivationFormat format, ActivationKind kind, size_t cols, Random& random,
                     std::byte* row) {
  const ActivationLayout layout = activation_layout(format, cols);
  std::memset(row, 0xff, layout.row_bytes);
  if (format == ActivationFormat::f32) {
    for (size_t i = 0; i < cols; ++i) store_block(make_float(float_kind(kind), random), row, i);
    return;
  }
  auto* q = reinterpret_cast<int8_t*>(row);
  auto* sum16 = reinterpret_cast<int16_t*>(row + layout.sum16_offset);
  for (size_t i = 0; i < cols; ++i) q[i] = make_q(kind, i, random);
  for (size_t group = 0; group < cols / 16; ++group) {
    int sum = 0;
    for (size_t i = 0; i < 16; ++i) sum += q[16 * group + i];
    sum16[group] = static_cast<int16_t>(sum);
  }
  const size_t block = format == ActivationFormat::q8_256 ? kSuperBlock : kSmallBlock;
  for (size_t b = 0; b < cols / block; ++b)
    store_block(make_scale(kind, random), row + layout.scale_offset, b);
}

}  // namespace sluice::kernels::check
