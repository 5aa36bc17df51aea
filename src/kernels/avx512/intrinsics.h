// The vector intrinsics. g++ 12 warns that its own AVX-512 header reads uninitialised variables
// (its way to say "undefined value"); the warnings belong to lines of that header and are silenced
// there.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
