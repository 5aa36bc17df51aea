// The facts about Unicode that text/ needs, as sorted tables made by
// scripts/make_unicode_tables.py (the .cc names the version). Constant; any thread may read them.
// Callers want text/unicode.h and text/nfc.h, which look things up here.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::text {

/// One entry where a run of codes of one category starts: code << 5 | Category.
extern const std::span<const uint32_t> kCategoryStarts;

/// One entry where a run starts: code << 9 | unsafe << 8 | canonical combining class. An unsafe
/// code is one that NFC may change, reorder or join to what is before it.
extern const std::span<const uint32_t> kNormalizationStarts;

/// code = first + second, canonically; second is 0 where there is only one part. Only `first` may
/// decompose further. Sorted by code. Hangul syllables are left to arithmetic.
struct Decomposition {
  uint32_t code, first, second;
};
extern const std::span<const Decomposition> kDecompositions;

/// The pairs that NFC puts together, sorted by (first, second).
struct Composition {
  uint32_t first, second, code;
};
extern const std::span<const Composition> kCompositions;

}  // namespace sluice::text
