// Where a block of a code-book format (code_book_blocks.h) keeps what: the one place that takes its
// bits apart, for the decoders, the reference and every ISA.
//
// Splitting numbers, signs and scales out of their bytes is a large part of the work of these
// formats. So it is done for a whole block at once, in vectors of 32 bytes in the compiler's own
// notation: they become one instruction, or two, on any machine. The result goes to memory, from
// which the look-ups read single numbers anyway.
//
// Everything is private to the including file: it is compiled with the flags of its folder.
#pragma once

#include "quant/code_book_blocks.h"

namespace sluice {
namespace {

struct CodeFields {
  alignas(64) uint16_t entries[kSuperBlock / 4];  ///< half of them if entries have eight codes
  alignas(32) uint8_t signs[kSuperBlock / 8];     ///< bit i of byte e is column 8·e + i
  alignas(32) uint16_t scales[kSuperBlock / 16];  ///< 2s + 1 of each 16 columns
  uint16_t d;                                     ///< binary16
};

using Bytes8 __attribute__((vector_size(8))) = uint8_t;
using Bytes16 __attribute__((vector_size(16))) = uint8_t;
using Bytes32 __attribute__((vector_size(32))) = uint8_t;
using Words8 __attribute__((vector_size(16))) = uint16_t;
using Words16 __attribute__((vector_size(32))) = uint16_t;
using Dwords8 __attribute__((vector_size(32))) = uint32_t;
using Qwords4 __attribute__((vector_size(32))) = uint64_t;

// Vectors go in and out by reference, because how they are passed otherwise depends on the flags.
template <class Value>
inline void load(Value& v, const std::byte* from) {
  __builtin_memcpy(&v, from, sizeof v);
}
template <class Vector>
inline void store(const Vector& v, void* to) {
  __builtin_memcpy(to, &v, sizeof v);
}

/// Sixteen bytes as words.
inline void load_bytes(Words16& words, const std::byte* from) {
  Bytes16 bytes;
  load(bytes, from);
  words = __builtin_convertvector(bytes, Words16);
}

/// Seven bits of each byte stay; the eighth makes the number of ones even.
inline void make_even(Words16& bytes) {
  Words16 parity = bytes ^ (bytes >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  bytes |= (parity & 0x0101) << 7;
}

/// kCount half bytes, the low one of each byte first.
template <size_t kCount>
inline void load_halves(Bytes16& halves, const std::byte* from) {
  Bytes8 bytes = {};
  __builtin_memcpy(&bytes, from, kCount / 2);
  Words8 words = __builtin_convertvector(bytes, Words8);
  words = (words & 15) | ((words << 4) & 0xf00);
  halves = reinterpret_cast<Bytes16>(words);
}

/// Sixteen s.
inline void store_scales(const Bytes16& s, CodeFields& fields) {
  const Words16 scales = __builtin_convertvector(s, Words16) * 2 + 1;
  store(scales, fields.scales);
}

/// Eight s, for each two sub-blocks.
inline void store_scales(const Dwords8& s, CodeFields& fields) {
  const Dwords8 twice = s | (s << 16);
  const Words16 scales = reinterpret_cast<Words16>(twice) * 2 + 1;
  store(scales, fields.scales);
}

/// The signs and scales of IQ2_XXS and IQ3_XXS, from the word of each 32 columns.
inline void split_words(const Dwords8& words, CodeFields& fields) {
  const Dwords8 signs = (words & 0x7f) | ((words << 1) & 0x7f00) | ((words << 2) & 0x7f0000) |
                        ((words << 3) & 0x7f000000);
  auto bytes = reinterpret_cast<Words16>(signs);
  make_even(bytes);
  store(bytes, fields.signs);
  const Dwords8 s = words >> 28;
  store_scales(s, fields);
}

/// Bits 3·i … 3·i + 2 of each of four words, for i < 4, moved to bits 9 … 11.
inline void split_triples(Words16& triples, const std::byte* from) {
  uint64_t words;
  load(words, from);
  const auto four = reinterpret_cast<Words16>(Qwords4{} + words);  // the words, four times
  const Words16 copies = __builtin_shufflevector(four, four, 0, 0, 0, 0, 1, 1, 1, 1,  //
                                                 10, 10, 10, 10, 11, 11, 11, 11);
  const Words16 to_bit_9 = {512, 64, 8, 1, 512, 64, 8, 1, 512, 64, 8, 1, 512, 64, 8, 1};
  triples = (copies * to_bit_9) & 0xe00;
}

/// Splits the block that lies at `block`. Single numbers had better not be read right away: the
/// processor is slow to find them in the vectors that it has just stored.
template <class Block>
inline void read_fields(const std::byte* block, CodeFields& fields);

template <>
inline void read_fields<BlockIQ2_XXS>(const std::byte* block, CodeFields& fields) {
  Dwords8 first, second;
  load(first, block + offsetof(BlockIQ2_XXS, qs));
  load(second, block + offsetof(BlockIQ2_XXS, qs) + 32);
  const Dwords8 numbers = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14);
  const Dwords8 words = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15);
  for (size_t i = 0; i < 2; ++i) {
    Words16 entries;
    load_bytes(entries, reinterpret_cast<const std::byte*>(&numbers) + 16 * i);
    store(entries, fields.entries + 16 * i);
  }
  split_words(words, fields);
  load(fields.d, block);
}

template <>
inline void read_fields<BlockIQ2_XS>(const std::byte* block, CodeFields& fields) {
  Words16 first, second;
  load(first, block + offsetof(BlockIQ2_XS, qs));
  load(second, block + offsetof(BlockIQ2_XS, qs) + 32);
  const Words16 entries[2] = {first & 511, second & 511};
  store(entries, fields.entries);
  Words16 sevens = (first >> 9) | ((second >> 9) << 8);
  make_even(sevens);
  const auto mixed = reinterpret_cast<Bytes32>(sevens);
  const Bytes32 signs = __builtin_shufflevector(
      mixed, mixed, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,  //
      1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  store(signs, fields.signs);
  Bytes16 scales;
  load_halves<16>(scales, block + offsetof(BlockIQ2_XS, scales));
  store_scales(scales, fields);
  load(fields.d, block);
}

template <>
inline void read_fields<BlockIQ2_S>(const std::byte* block, CodeFields& fields) {
  const Words16 to_bit_8 = {256, 64, 16, 4, 256, 64, 16, 4, 256, 64, 16, 4, 256, 64, 16, 4};
  for (size_t i = 0; i < 2; ++i) {
    Words16 low;
    load_bytes(low, block + offsetof(BlockIQ2_S, qs) + 16 * i);
    Bytes8 upper;
    load(upper, block + offsetof(BlockIQ2_S, qh));
    const Bytes16 copies = i == 0
                               ? __builtin_shufflevector(upper, upper, 0, 0, 0, 0, 1, 1, 1, 1,  //
                                                         2, 2, 2, 2, 3, 3, 3, 3)
                               : __builtin_shufflevector(upper, upper, 4, 4, 4, 4, 5, 5, 5, 5,  //
                                                         6, 6, 6, 6, 7, 7, 7, 7);
    const Words16 entries = low | ((__builtin_convertvector(copies, Words16) * to_bit_8) & 0x300);
    store(entries, fields.entries + 16 * i);
  }
  __builtin_memcpy(fields.signs, block + offsetof(BlockIQ2_S, signs), sizeof fields.signs);
  Bytes16 scales;
  load_halves<16>(scales, block + offsetof(BlockIQ2_S, scales));
  store_scales(scales, fields);
  load(fields.d, block);
}

template <>
inline void read_fields<BlockIQ3_XXS>(const std::byte* block, CodeFields& fields) {
  for (size_t i = 0; i < 4; ++i) {
    Words16 entries;
    load_bytes(entries, block + offsetof(BlockIQ3_XXS, qs) + 16 * i);
    store(entries, fields.entries + 16 * i);
  }
  Dwords8 words;
  load(words, block + offsetof(BlockIQ3_XXS, signs_and_scales));
  split_words(words, fields);
  load(fields.d, block);
}

template <>
inline void read_fields<BlockIQ3_S>(const std::byte* block, CodeFields& fields) {
  const Words16 to_bit_8 = {256, 128, 64, 32, 16, 8, 4, 2, 256, 128, 64, 32, 16, 8, 4, 2};
  for (size_t i = 0; i < 4; ++i) {
    Words16 low;
    load_bytes(low, block + offsetof(BlockIQ3_S, qs) + 16 * i);
    uint8_t upper[2];
    __builtin_memcpy(upper, block + offsetof(BlockIQ3_S, qh) + 2 * i, sizeof upper);
    const Words8 first = Words8{} + upper[0];
    const Words8 second = Words8{} + upper[1];
    const Words16 copies = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                                   11, 12, 13, 14, 15);
    const Words16 entries = low | ((copies * to_bit_8) & 0x100);
    store(entries, fields.entries + 16 * i);
  }
  __builtin_memcpy(fields.signs, block + offsetof(BlockIQ3_S, signs), sizeof fields.signs);
  Bytes16 eight;
  load_halves<8>(eight, block + offsetof(BlockIQ3_S, scales));
  const Bytes16 twice =
      __builtin_shufflevector(eight, eight, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  store_scales(twice, fields);
  load(fields.d, block);
}

template <>
inline void read_fields<BlockIQ1_S>(const std::byte* block, CodeFields& fields) {
  const std::byte* qh = block + offsetof(BlockIQ1_S, qh);
  for (size_t i = 0; i < 2; ++i) {
    Words16 low, upper;
    load_bytes(low, block + offsetof(BlockIQ1_S, qs) + 16 * i);
    split_triples(upper, qh + 8 * i);
    const Words16 entries = low | (upper >> 1);
    store(entries, fields.entries + 16 * i);
  }
  Words8 words;
  load(words, qh);
  const Dwords8 wide = __builtin_convertvector(words, Dwords8);
  const Dwords8 signs = -(wide >> 15);
  store(signs, fields.signs);
  const Dwords8 s = (wide >> 12) & 7;
  store_scales(s, fields);
  load(fields.d, block);
}

template <>
inline void read_fields<BlockIQ1_M>(const std::byte* block, CodeFields& fields) {
  for (size_t i = 0; i < 2; ++i) {
    Words16 low;
    load_bytes(low, block + offsetof(BlockIQ1_M, qs) + 16 * i);
    Bytes16 halves;
    load_halves<16>(halves, block + offsetof(BlockIQ1_M, qh) + 8 * i);
    const Words16 upper = __builtin_convertvector(halves, Words16);
    const Words16 entries = low | ((upper & 7) << 8);
    store(entries, fields.entries + 16 * i);
    const auto signs = halves > 7;
    store(signs, fields.signs + 16 * i);
  }
  const std::byte* words = block + offsetof(BlockIQ1_M, scales);
  Words16 triples;
  split_triples(triples, words);
  const Words16 scales = (triples >> 8) + 1;
  store(scales, fields.scales);
  uint64_t tops;
  load(tops, words);
  fields.d = static_cast<uint16_t>((tops >> 12 & 0xf) | (tops >> 24 & 0xf0) | (tops >> 36 & 0xf00) |
                                   (tops >> 48 & 0xf000));
}

}  // namespace
}  // namespace sluice
