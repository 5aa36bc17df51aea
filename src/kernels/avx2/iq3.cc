#include "kernels/avx2/avx2.h"
#include "kernels/avx2/code_books.h"

namespace sluice::kernels::avx2 {
namespace {

struct IQ3XXS : Magnitudes<BlockIQ3_XXS, 62> {
  static constexpr const auto& kBook = kBookIq3Xxs;

  static __m256i words(const std::byte* block) {
    return load32(block + offsetof(BlockIQ3_XXS, signs_and_scales));
  }
  static void entries(const std::byte* block, uint16_t* to) {
    store_words(load32(block + offsetof(BlockIQ3_XXS, qs)), to);
    store_words(load32(block + offsetof(BlockIQ3_XXS, qs) + 32), to + 32);
  }
  static __m256i signs(const std::byte* block) {
    return even_signs_of(spread_sevens(words(block)));
  }
  static __m256i scales(const std::byte* block) { return top_scales(words(block)); }
};

struct IQ3S : Magnitudes<BlockIQ3_S, 15> {
  static constexpr const auto& kBook = kBookIq3S;

  static void entries(const std::byte* block, uint16_t* to) {
    const __m256i upper = broadcast8(block + offsetof(BlockIQ3_S, qh));
    const __m256i to_bit_8 =
        _mm256_broadcastsi128_si256(_mm_setr_epi16(256, 128, 64, 32, 16, 8, 4, 2));
    for (size_t i = 0; i < 4; ++i) {
      const __m256i low = _mm256_cvtepu8_epi16(load16(block + offsetof(BlockIQ3_S, qs) + 16 * i));
      const __m256i bits =
          _mm256_mullo_epi16(_mm256_shuffle_epi8(upper, byte_eights(2 * i)), to_bit_8);
      store32(to + 16 * i, _mm256_or_si256(low, _mm256_and_si256(bits, _mm256_set1_epi16(0x100))));
    }
  }
  static __m256i signs(const std::byte* block) {
    return load32(block + offsetof(BlockIQ3_S, signs));
  }
  static __m256i scales(const std::byte* block) {
    const auto bytes = load_integer<int>(block + offsetof(BlockIQ3_S, scales));
    const __m128i eight = half_bytes(_mm_cvtsi32_si128(bytes));
    return odd(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(eight, eight)));
  }

 private:
  /// A byte shuffle that gives bytes first and first + 1 to eight words each.
  static __m256i byte_eights(size_t first) {
    const auto eight = [&](size_t i) {
      return _mm_set1_epi16(static_cast<short>(0x8000 + first + i));
    };
    return _mm256_setr_m128i(eight(0), eight(1));
  }
};

}  // namespace

void matvec_iq3_xxs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<IQ3XXS>>(args);
}
void matmul_iq3_xxs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<IQ3XXS>>(args);
}
void matvec_iq3_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<IQ3S>>(args);
}
void matmul_iq3_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<IQ3S>>(args);
}

}  // namespace sluice::kernels::avx2
