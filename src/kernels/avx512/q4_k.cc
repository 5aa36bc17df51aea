#include "kernels/avx512/avx512.h"
#include "kernels/avx512/k_header.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q4K : KPanel<BlockQ4_K> {
  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(BlockQ4_K, qs);
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

struct Q4KRows : KRows<Q4K> {
  static inline void codes(const std::byte* block, __m512i (&codes)[4]) {
    constexpr size_t kQs = offsetof(BlockQ4_K, qs);
    const __m512i low_half = _mm512_set1_epi8(15);
    for (size_t i = 0; i < 2; ++i) {
      __m512i both = _mm512_loadu_si512(block + kQs + 64 * i);
      asm("" : "+v"(both));
      codes[2 * i] = _mm512_and_si512(both, low_half);
      codes[2 * i + 1] = high_half_bytes(both);
    }
  }
};

}  // namespace

void matvec_q4_k(const MatmulArgs& args) {
  multiply_rows<RowSuperBlocks<Q4KRows>>(args);
}
void matmul_q4_k(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<Q4K>>(args);
}

}  // namespace sluice::kernels::avx512
