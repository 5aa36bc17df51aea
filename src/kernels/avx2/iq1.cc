#include "kernels/avx2/avx2.h"
#include "kernels/avx2/code_books.h"

namespace sluice::kernels::avx2 {
namespace {

/// What the two formats share: codes −1, 0, 1 and an offset of ±1/8, in eighths.
template <class Shape>
struct Offsets {
  using Block = Shape;
  static constexpr const auto& kBook = kBookIq1;
  static constexpr int kOffset = 9;

  static __m256i with_signs(__m256i codes, __m256i minus) {
    const __m256i ones = _mm256_set1_epi8(1);
    const __m256i eights = _mm256_slli_epi16(_mm256_add_epi8(codes, ones), 3);
    return _mm256_add_epi8(eights, _mm256_andnot_si256(minus, _mm256_add_epi8(ones, ones)));
  }

  /// Bits 3·i … 3·i + 2 of each of the four words at `words`, for i < 4, moved to bits 9 … 11.
  static __m256i triples(const std::byte* words) {
    const __m256i four_each = _mm256_setr_epi64x(0x0100010001000100, 0x0302030203020302,
                                                 0x0504050405040504, 0x0706070607060706);
    const __m256i to_bit_9 = _mm256_set1_epi64x(0x0001000800400200);
    const __m256i copies = _mm256_shuffle_epi8(broadcast8(words), four_each);
    return _mm256_and_si256(_mm256_mullo_epi16(copies, to_bit_9), _mm256_set1_epi16(0xe00));
  }
};

struct IQ1S : Offsets<BlockIQ1_S> {
  static constexpr size_t kQh = offsetof(BlockIQ1_S, qh);

  static void entries(const std::byte* block, uint16_t* to) {
    for (size_t i = 0; i < 2; ++i) {
      const __m256i low = _mm256_cvtepu8_epi16(load16(block + offsetof(BlockIQ1_S, qs) + 16 * i));
      const __m256i upper = _mm256_srli_epi16(triples(block + kQh + 8 * i), 1);
      store32(to + 16 * i, _mm256_or_si256(low, upper));
    }
  }
  static __m256i signs(const std::byte* block) {
    return _mm256_cvtepi16_epi32(_mm_srai_epi16(load16(block + kQh), 15));
  }
  static __m256i scales(const std::byte* block) {
    const __m128i words = _mm_srli_epi16(load16(block + kQh), 12);
    const __m128i s = _mm_and_si128(words, _mm_set1_epi16(7));
    return odd(_mm256_setr_m128i(_mm_unpacklo_epi16(s, s), _mm_unpackhi_epi16(s, s)));
  }
  static uint16_t d(const std::byte* block) {
    return load_integer<uint16_t>(block + offsetof(BlockIQ1_S, d));
  }
};

struct IQ1M : Offsets<BlockIQ1_M> {
  /// The half bytes of qh.
  static __m256i upper_bits(const std::byte* block) {
    const __m128i bytes = load16(block + offsetof(BlockIQ1_M, qh));
    return _mm256_setr_m128i(half_bytes(bytes), half_bytes(_mm_srli_si128(bytes, 8)));
  }
  static void entries(const std::byte* block, uint16_t* to) {
    const __m256i low = load32(block + offsetof(BlockIQ1_M, qs));
    const __m256i upper = _mm256_and_si256(upper_bits(block), _mm256_set1_epi8(7));
    const __m256i first = _mm256_unpacklo_epi8(low, upper);  // words 0 … 7 and 16 … 23
    const __m256i second = _mm256_unpackhi_epi8(low, upper);
    store32(to, _mm256_permute2x128_si256(first, second, 0x20));
    store32(to + 16, _mm256_permute2x128_si256(first, second, 0x31));
  }
  static __m256i signs(const std::byte* block) {
    return _mm256_cmpgt_epi8(upper_bits(block), _mm256_set1_epi8(7));
  }
  static __m256i scales(const std::byte* block) {
    return odd(_mm256_srli_epi16(triples(block + offsetof(BlockIQ1_M, scales)), 9));
  }
  static uint16_t d(const std::byte* block) {
    const auto words = load_integer<uint64_t>(block + offsetof(BlockIQ1_M, scales));
    return static_cast<uint16_t>((words >> 12 & 0xf) | (words >> 24 & 0xf0) |
                                 (words >> 36 & 0xf00) | (words >> 48 & 0xf000));
  }
};

}  // namespace

void matvec_iq1_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<IQ1S>>(args);
}
void matmul_iq1_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<IQ1S>>(args);
}
void matvec_iq1_m(const MatmulArgs& args) {
  matvec<CodeBookBlocks<IQ1M>>(args);
}
void matmul_iq1_m(const MatmulArgs& args) {
  matmul<CodeBookBlocks<IQ1M>>(args);
}

}  // namespace sluice::kernels::avx2
