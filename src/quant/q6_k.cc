#include "base/half.h"
#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/encode.h"
#include "quant/rounding.h"
#include "quant/sub_blocks.h"

namespace sluice {
namespace {

constexpr size_t kSubBlock = 16;
constexpr size_t kSubBlocks = kSuperBlock / kSubBlock;

/// q in −32 … 31, 256 of them.
void pack(const int8_t* q, BlockQ6_K& block) {
  for (size_t e = 0; e < kSuperBlock; ++e) {
    const size_t half = e / 128, k = e / 32 % 4, i = e % 32;
    const int stored = q[e] + 32;
    uint8_t& low = block.ql[64 * half + 32 * (k % 2) + i];
    uint8_t& high = block.qh[32 * half + i];
    low = static_cast<uint8_t>(low | ((stored & 15) << (k / 2 * 4)));
    high = static_cast<uint8_t>(high | ((stored >> 4) << (2 * k)));
  }
}

}  // namespace

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

void decode_q6_k(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto block = load_block<BlockQ6_K>(blocks, b);
    int8_t q[kSuperBlock];
    unpack_q6_k(block, q);
    decode_scaled(block.d, block.scales, q, out);
  }
}

/// The value of largest magnitude of each sub-block becomes −32, whose range the positive side
/// lacks; its scale takes the sign.
void encode_q6_k(const float* x, size_t block_count, std::byte* blocks) {
  for (size_t b = 0; b < block_count; ++b, x += kSuperBlock) {
    float step[kSubBlocks];
    for (size_t s = 0; s < kSubBlocks; ++s)
      step[s] = largest_magnitude(x + s * kSubBlock, kSubBlock) / -32.0f;
    BlockQ6_K block = {};
    block.d = f32_to_f16(std::abs(largest_magnitude(step, kSubBlocks)) / 127.0f);
    const float d = f16_to_f32(block.d);
    int8_t q[kSuperBlock];
    for (size_t s = 0; s < kSubBlocks; ++s) {
      block.scales[s] = static_cast<int8_t>(round_to_step(step[s], d, -127, 127));
      const float scale = d * static_cast<float>(block.scales[s]);
      for (size_t i = s * kSubBlock; i < (s + 1) * kSubBlock; ++i)
        q[i] = static_cast<int8_t>(round_to_step(x[i], scale, -32, 31));
    }
    pack(q, block);
    store_block(block, blocks, b);
  }
}

}  // namespace sluice
