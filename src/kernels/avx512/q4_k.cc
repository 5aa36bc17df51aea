#include "kernels/avx512/avx512.h"
#include "kernels/avx512/k_header.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q4K {
  static constexpr size_t kBlockBytes = 144;
  static constexpr size_t kSubColumns = 32;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true;

  static constexpr size_t half_column(size_t run, size_t half) { return 64 * run + 32 * half; }

  inline void unpack_scales(const PanelBlocks& blocks, SuperScales& scales) {
    unpack_k_header(blocks, scales);
  }

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = 16;  // offsetof(BlockQ4_K, qs)
    __m512i packed[8];
    load_dwords(blocks, kQs + 32 * index, packed);
    load_dwords(blocks, kQs + 32 * index + 16, packed + 4);
    const __m512i low_half = _mm512_set1_epi8(15);
    for (size_t i = 0; i < 8; ++i) {
      run[i] = _mm512_and_si512(packed[i], low_half);
      run[8 + i] = _mm512_and_si512(_mm512_srli_epi32(packed[i], 4), low_half);
    }
  }
};

}  // namespace

void matmul_q4_k(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<Q4K>>(args);
}

}  // namespace sluice::kernels::avx512
