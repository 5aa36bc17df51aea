// The two element types of a KV cache, as the attention and the stores into it see them: four
// elements at a time, widened to float or rounded from it. Private to the including file.
#pragma once

#include "kernels/neon/intrinsics.h"

namespace sluice::kernels::neon {
namespace {

struct KvF16 {
  using Element = uint16_t;
  static float32x4_t load(const uint16_t* p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
  }
  static void store(uint16_t* p, float32x4_t x) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x)));
  }
};

struct KvF32 {
  using Element = float;
  static float32x4_t load(const float* p) { return vld1q_f32(p); }
  static void store(float* p, float32x4_t x) { vst1q_f32(p, x); }
};

}  // namespace
}  // namespace sluice::kernels::neon
