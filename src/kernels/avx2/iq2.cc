#include "kernels/avx2/avx2.h"
#include "kernels/avx2/code_books.h"

namespace sluice::kernels::avx2 {
namespace {

struct IQ2XXS : Magnitudes<BlockIQ2_XXS, 43> {
  static constexpr const auto& kBook = kBookIq2Xxs;

  /// Of each eight bytes, the four at `index`.
  template <int index>
  static __m256i halves(const std::byte* block) {
    const auto piece = [&](size_t i) {
      return _mm256_castsi256_ps(load32(block + offsetof(BlockIQ2_XXS, qs) + 32 * i));
    };
    const __m256 words = _mm256_shuffle_ps(piece(0), piece(1), index == 0 ? 0x88 : 0xdd);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(words), 0xd8);
  }
  static void entries(const std::byte* block, uint16_t* to) { store_words(halves<0>(block), to); }
  static __m256i signs(const std::byte* block) {
    return even_signs_of(spread_sevens(halves<1>(block)));
  }
  static __m256i scales(const std::byte* block) { return top_scales(halves<1>(block)); }
};

/// Half bytes of scales, for IQ2_XS and IQ2_S.
template <class Block>
__m256i half_byte_scales(const std::byte* block) {
  const auto bytes = load_integer<long long>(block + offsetof(Block, scales));
  return odd(_mm256_cvtepu8_epi16(half_bytes(_mm_cvtsi64_si128(bytes))));
}

struct IQ2XS : Magnitudes<BlockIQ2_XS, 43> {
  static constexpr const auto& kBook = kBookIq2Xs;

  static __m256i words(const std::byte* block, size_t i) {
    return load32(block + offsetof(BlockIQ2_XS, qs) + 32 * i);
  }
  static void entries(const std::byte* block, uint16_t* to) {
    const __m256i nine = _mm256_set1_epi16(511);
    store32(to, _mm256_and_si256(words(block, 0), nine));
    store32(to + 16, _mm256_and_si256(words(block, 1), nine));
  }
  static __m256i signs(const std::byte* block) {
    return even_signs_of(
        pack_words(_mm256_srli_epi16(words(block, 0), 9), _mm256_srli_epi16(words(block, 1), 9)));
  }
  static __m256i scales(const std::byte* block) { return half_byte_scales<BlockIQ2_XS>(block); }
};

struct IQ2S : Magnitudes<BlockIQ2_S, 43> {
  static constexpr const auto& kBook = kBookIq2S;

  static void entries(const std::byte* block, uint16_t* to) {
    const __m256i upper = broadcast8(block + offsetof(BlockIQ2_S, qh));
    const __m256i to_bit_8 = _mm256_set1_epi64x(0x0004001000400100);  // from bit 0, 2, 4, 6
    for (size_t i = 0; i < 2; ++i) {
      const __m256i low = _mm256_cvtepu8_epi16(load16(block + offsetof(BlockIQ2_S, qs) + 16 * i));
      const __m256i bits =
          _mm256_mullo_epi16(_mm256_shuffle_epi8(upper, byte_fours(4 * i)), to_bit_8);
      store32(to + 16 * i, _mm256_or_si256(low, _mm256_and_si256(bits, _mm256_set1_epi16(0x300))));
    }
  }
  static __m256i signs(const std::byte* block) {
    return load32(block + offsetof(BlockIQ2_S, signs));
  }
  static __m256i scales(const std::byte* block) { return half_byte_scales<BlockIQ2_S>(block); }

 private:
  /// A byte shuffle that gives bytes first … first + 3 to four words each.
  static __m256i byte_fours(size_t first) {
    const auto four = [&](size_t i) {
      return static_cast<long long>(0x8000800080008000u + 0x0001000100010001u * (first + i));
    };
    return _mm256_setr_epi64x(four(0), four(1), four(2), four(3));
  }
};

}  // namespace

void matvec_iq2_xxs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<IQ2XXS>>(args);
}
void matmul_iq2_xxs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<IQ2XXS>>(args);
}
void matvec_iq2_xs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<IQ2XS>>(args);
}
void matmul_iq2_xs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<IQ2XS>>(args);
}
void matvec_iq2_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<IQ2S>>(args);
}
void matmul_iq2_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<IQ2S>>(args);
}

}  // namespace sluice::kernels::avx2
