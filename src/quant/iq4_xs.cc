#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/iq4_values.h"
#include "quant/sub_blocks.h"

namespace sluice {

constexpr size_t kSubBlocks = kSuperBlock / 32;

void unpack_iq4_xs(const BlockIQ4_XS& block, int8_t* q) {
  for (size_t s = 0; s < kSubBlocks; ++s)
    for (size_t i = 0; i < 16; ++i) {
      const uint8_t both = block.qs[16 * s + i];
      q[32 * s + i] = kIq4Values[both & 15];
      q[32 * s + 16 + i] = kIq4Values[both >> 4];
    }
}

void unpack_iq4_xs_scales(const BlockIQ4_XS& block, int8_t* scale) {
  for (size_t s = 0; s < kSubBlocks; ++s) {
    const int low = (block.scales_l[s / 2] >> (4 * (s % 2))) & 15;
    const int high = (block.scales_h >> (2 * s)) & 3;
    scale[s] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

void decode_iq4_xs(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto block = load_block<BlockIQ4_XS>(blocks, b);
    int8_t scale[kSubBlocks];
    int8_t q[kSuperBlock];
    unpack_iq4_xs_scales(block, scale);
    unpack_iq4_xs(block, q);
    decode_scaled(block.d, scale, q, out);
  }
}

}  // namespace sluice
