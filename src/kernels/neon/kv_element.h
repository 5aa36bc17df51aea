// The element types of a KV cache, as the attention and the stores into it see them: 16 elements
// widened to float, or four rounded from it, and where the tiles lie. Private to the including
// file.
#pragma once

#include "kernels/kernels.h"
#include "kernels/neon/lanes.h"

namespace sluice::kernels::neon {
namespace {

/// Four binary16 as floats.
inline float32x4_t load_halves(const void* p) {
  return vcvt_f32_f16(vreinterpret_f16_u8(load8(p)));
}

struct KvF16 {
  using Element = uint16_t;
  static constexpr KvType kType = KvType::f16;
  static constexpr bool kScaled = false;
  static void load(const uint16_t* p, float32x4_t* quarters) {
    for (size_t i = 0; i < kQuarters; ++i) quarters[i] = load_halves(p + kLanes * i);
  }
  static void store(uint16_t* p, float32x4_t x) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x)));
  }
};

struct KvF32 {
  using Element = float;
  static constexpr KvType kType = KvType::f32;
  static constexpr bool kScaled = false;
  static void load(const float* p, float32x4_t* quarters) {
    for (size_t i = 0; i < kQuarters; ++i) quarters[i] = vld1q_f32(p + kLanes * i);
  }
  static void store(float* p, float32x4_t x) { vst1q_f32(p, x); }
};

struct KvQ8_0 {
  using Element = int8_t;
  static constexpr KvType kType = KvType::q8_0;
  static constexpr bool kScaled = true;
  static void load(const int8_t* p, float32x4_t* quarters) {
    const int8x16_t codes = vld1q_s8(p);
    const int16x8_t low = vmovl_s8(vget_low_s8(codes));
    const int16x8_t high = vmovl_high_s8(codes);
    quarters[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    quarters[1] = vcvtq_f32_s32(vmovl_high_s16(low));
    quarters[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    quarters[3] = vcvtq_f32_s32(vmovl_high_s16(high));
  }
};

/// From tile to tile, for rows of so many elements.
template <class Kv>
inline size_t tile_elements(size_t row_elements) {
  return kv_tile_bytes(Kv::kType, row_elements) / sizeof(typename Kv::Element);
}

/// Where in a tile of q8_0 the scales of a block of dimensions lie, one for each position.
inline size_t scales_offset(size_t row_elements, size_t block) {
  return kKeyTile * (row_elements + sizeof(uint16_t) * block);
}

}  // namespace
}  // namespace sluice::kernels::neon
