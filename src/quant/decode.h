// The decoders behind dtype.h's table, one per format: what the stored bytes mean, as floats. Each
// is exact up to the roundings its formula shows, in the order shown, so that its result is a fact
// to the last bit. Call them through dtype_info(…).decode; any thread may.
#pragma once

#include <cstddef>

namespace sluice {

void decode_f32(const std::byte* blocks, size_t block_count, float* out);
void decode_f16(const std::byte* blocks, size_t block_count, float* out);
void decode_bf16(const std::byte* blocks, size_t block_count, float* out);
void decode_q4_0(const std::byte* blocks, size_t block_count, float* out);
void decode_q4_1(const std::byte* blocks, size_t block_count, float* out);
void decode_q5_0(const std::byte* blocks, size_t block_count, float* out);
void decode_q5_1(const std::byte* blocks, size_t block_count, float* out);
void decode_q8_0(const std::byte* blocks, size_t block_count, float* out);
void decode_q2_k(const std::byte* blocks, size_t block_count, float* out);
void decode_q3_k(const std::byte* blocks, size_t block_count, float* out);
void decode_q4_k(const std::byte* blocks, size_t block_count, float* out);
void decode_q5_k(const std::byte* blocks, size_t block_count, float* out);
void decode_q6_k(const std::byte* blocks, size_t block_count, float* out);
void decode_iq2_xxs(const std::byte* blocks, size_t block_count, float* out);
void decode_iq2_xs(const std::byte* blocks, size_t block_count, float* out);
void decode_iq3_xxs(const std::byte* blocks, size_t block_count, float* out);
void decode_iq1_s(const std::byte* blocks, size_t block_count, float* out);
void decode_iq3_s(const std::byte* blocks, size_t block_count, float* out);
void decode_iq2_s(const std::byte* blocks, size_t block_count, float* out);
void decode_iq1_m(const std::byte* blocks, size_t block_count, float* out);
void decode_iq4_xs(const std::byte* blocks, size_t block_count, float* out);
void decode_tq1_0(const std::byte* blocks, size_t block_count, float* out);
void decode_tq2_0(const std::byte* blocks, size_t block_count, float* out);
void decode_iq4_nl(const std::byte* blocks, size_t block_count, float* out);
void decode_mxfp4(const std::byte* blocks, size_t block_count, float* out);
void decode_nvfp4(const std::byte* blocks, size_t block_count, float* out);
void decode_q1_0(const std::byte* blocks, size_t block_count, float* out);
void decode_q2_0(const std::byte* blocks, size_t block_count, float* out);

}  // namespace sluice
