// The code books: the short vectors of 4 or 8 codes that the IQ1, IQ2 and IQ3 formats choose from.
//
// They are facts of those formats, chosen once by their author so that most vectors of trained
// weights have an entry nearby, and no rule gives them: hence tables. A weight is a code times its
// scale; except in IQ1, which adds its ±1/8, codes are magnitudes and the block holds the signs.
//
// code_book_tables.cc keeps them with the two or three bits a code that their few levels need (9
// KB) and unfolds them while compiling, to bytes that kernels load as they are. Immutable; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

template <size_t kCount, size_t kLength>
struct CodeBook {
  alignas(64) int8_t codes[kCount][kLength];
};

extern const CodeBook<256, 8> kBookIq2Xxs;  ///< of 8, 25, 43
extern const CodeBook<512, 8> kBookIq2Xs;   ///< of 8, 25, 43
extern const CodeBook<1024, 8> kBookIq2S;   ///< of 8, 25, 43
extern const CodeBook<256, 4> kBookIq3Xxs;  ///< of 4, 12, 20, 28, 36, 44, 52, 62
extern const CodeBook<512, 4> kBookIq3S;    ///< of 1, 3, 5, 7, 9, 11, 13, 15
extern const CodeBook<2048, 8> kBookIq1;    ///< of −1, 0, 1; IQ1_S and IQ1_M

}  // namespace sluice
