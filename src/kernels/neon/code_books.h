// The formats with code books (quant/code_book_blocks.h); for code_books.cc here and in i8mm/. A
// block is expanded first: its entries are looked up, and what they give is a block of bytes, as
// plain as a format of super_block.h can be, whose loops do the rest. A look-up of eight codes is
// one load, so the bytes' way through the first-level cache hardly shows.
#pragma once

#include "kernels/neon/super_block.h"
#include "quant/code_fields.h"

namespace sluice::kernels::neon {
namespace {

/// The codes of 16 columns.
template <size_t kCount>
inline int8x16_t look_up(const CodeBook<kCount, 8>& book, const uint16_t* entries) {
  return vcombine_s8(vld1_s8(book.codes[entries[0]]), vld1_s8(book.codes[entries[1]]));
}
template <size_t kCount>
inline int8x16_t look_up(const CodeBook<kCount, 4>& book, const uint16_t* entries) {
  const auto codes = [&](size_t i) { return load_integer<int32_t>(book.codes[entries[i]]); };
  return vreinterpretq_s8_s32(int32x4_t{codes(0), codes(1), codes(2), codes(3)});
}

/// Codes of the book to q; `minus` is all ones where the minuses are.
template <CodeTraits kTraits>
inline int8x16_t with_signs(int8x16_t codes, int8x16_t minus) {
  if constexpr (kTraits.has_offsets)
    return vaddq_s8(vshlq_n_s8(codes, 3), vorrq_s8(minus, vdupq_n_s8(1)));
  else
    return vsubq_s8(veorq_s8(codes, minus), minus);
}

struct ExpandedBlock {
  alignas(16) int8_t codes[kSuperBlock];
  alignas(16) int16_t scales[kSuperBlock / 16];
  uint16_t d;  ///< binary16
};

template <class Packed>
inline void expand(const CodeFields& fields, ExpandedBlock& expanded) {
  constexpr size_t kEntries = 16 / sizeof(Packed::kBook.codes[0]);  // of 16 columns
  for (size_t g = 0; g < kSuperBlock / 16; ++g) {
    const int8x16_t codes = look_up(Packed::kBook, fields.entries + kEntries * g);
    const int8x16_t minus = as_signed(lanes_of_bits(fields.signs + 2 * g));
    vst1q_s8(expanded.codes + 16 * g, with_signs<Packed::kTraits>(codes, minus));
  }
  __builtin_memcpy(expanded.scales, fields.scales, sizeof expanded.scales);
  expanded.d = fields.d;
}

/// An expanded block as a format of super_block.h.
template <class Packed>
struct Expanded {
  using Block = ExpandedBlock;
  static constexpr size_t kSubBlock = 16;
  static constexpr float kStep = Packed::kTraits.step;

  static int8x16_t codes(const std::byte* block, size_t g) {
    return as_signed(load16(block + offsetof(Block, codes) + 16 * g));
  }

  static PerSubBlock<16> scales(const std::byte* block) {
    const std::byte* scales = block + offsetof(Block, scales);
    return widen(vreinterpretq_s16_u8(load16(scales)), vreinterpretq_s16_u8(load16(scales + 16)));
  }
};

/// kRows blocks, expanded. All are split before the first is looked up: it is slow to read single
/// numbers of a vector that has just been stored.
template <class Packed, size_t kRows>
struct ExpandedRows {
  ExpandedBlock blocks[kRows];
  const std::byte* places[kRows];

  explicit ExpandedRows(const std::byte* const* packed) {
    CodeFields fields[kRows];
    for (size_t r = 0; r < kRows; ++r) read_fields<Packed>(packed[r], fields[r]);
    for (size_t r = 0; r < kRows; ++r) {
      expand<Packed>(fields[r], blocks[r]);
      places[r] = reinterpret_cast<const std::byte*>(blocks + r);
    }
  }
};

/// The family: blocks are expanded, then they are SuperBlocks.
template <class Packed, template <size_t> class Sums>
struct CodeBookBlocks : SuperBlocks<Expanded<Packed>, Sums> {
  using Plain = SuperBlocks<Expanded<Packed>, Sums>;
  static constexpr size_t kBlockBytes = sizeof(Packed);

  static float32x4_t add_rows(const std::byte* const* blocks, const Activations& x,
                              float32x4_t acc) {
    const ExpandedRows<Packed, kLanes> expanded(blocks);
    return Plain::add_rows(expanded.places, x, acc);
  }

  static void unpack(const std::byte* const* blocks, typename Plain::PanelBlock& panel) {
    const ExpandedRows<Packed, kPanelRows> expanded(blocks);
    Plain::unpack(expanded.places, panel);
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
