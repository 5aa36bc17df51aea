// Encoders: a row of floats to blocks. They serve tests and the tools that build models: each finds
// a block's scales from its extremes and rounds, in one pass and reproducibly. They do not search
// for the scales of least error, as a tool that publishes quantised models should.
//
// Plain functions; any thread may call them.
#pragma once

#include <cstddef>

#include "quant/dtype.h"

namespace sluice {

/// Encodes `block_count` blocks. REQUIRES: every value is finite, and below 65504 in magnitude for
/// formats that store halves.
using EncodeFn = void (*)(const float* x, size_t block_count, std::byte* blocks);

/// The encoder of a format; null where there is none.
EncodeFn encoder(Dtype dtype);

void encode_f32(const float* x, size_t block_count, std::byte* blocks);
void encode_f16(const float* x, size_t block_count, std::byte* blocks);
void encode_bf16(const float* x, size_t block_count, std::byte* blocks);
void encode_q4_0(const float* x, size_t block_count, std::byte* blocks);
void encode_q8_0(const float* x, size_t block_count, std::byte* blocks);
void encode_q4_k(const float* x, size_t block_count, std::byte* blocks);
void encode_q5_k(const float* x, size_t block_count, std::byte* blocks);
void encode_q6_k(const float* x, size_t block_count, std::byte* blocks);

}  // namespace sluice
