// The kernels for 64-bit ARM with the dot product instructions (asimddp: Cortex-A76, Neoverse N1,
// Apple M1 and what came after them); kernels.h says what each computes, the files here say how.
// fill.cc puts them into the table; everything else is internal to its file. Any thread may call
// them on a machine that has these instructions.
//
// Older cores (Cortex-A53, A72) run the reference. Without sdot the quantised products would be a
// second set of kernels, four instructions to each one here, for machines whose memory is too small
// to be worth it.
//
// The folder i8mm/ below this one is a table of its own: the same headers, with the products of
// matmul made by smmla.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels::neon {

void matmul_f32(const MatmulArgs& args);
void matmul_f16(const MatmulArgs& args);
void matmul_bf16(const MatmulArgs& args);
void matvec_q4_0(const MatmulArgs& args);
void matmul_q4_0(const MatmulArgs& args);
void matvec_q4_1(const MatmulArgs& args);
void matmul_q4_1(const MatmulArgs& args);
void matvec_q5_0(const MatmulArgs& args);
void matmul_q5_0(const MatmulArgs& args);
void matvec_q5_1(const MatmulArgs& args);
void matmul_q5_1(const MatmulArgs& args);
void matvec_q8_0(const MatmulArgs& args);
void matmul_q8_0(const MatmulArgs& args);
void matvec_q2_k(const MatmulArgs& args);
void matmul_q2_k(const MatmulArgs& args);
void matvec_q3_k(const MatmulArgs& args);
void matmul_q3_k(const MatmulArgs& args);
void matvec_q4_k(const MatmulArgs& args);
void matmul_q4_k(const MatmulArgs& args);
void matvec_q5_k(const MatmulArgs& args);
void matmul_q5_k(const MatmulArgs& args);
void matvec_q6_k(const MatmulArgs& args);
void matmul_q6_k(const MatmulArgs& args);
void matvec_iq2_xxs(const MatmulArgs& args);
void matmul_iq2_xxs(const MatmulArgs& args);
void matvec_iq2_xs(const MatmulArgs& args);
void matmul_iq2_xs(const MatmulArgs& args);
void matvec_iq3_xxs(const MatmulArgs& args);
void matmul_iq3_xxs(const MatmulArgs& args);
void matvec_iq1_s(const MatmulArgs& args);
void matmul_iq1_s(const MatmulArgs& args);
void matvec_iq3_s(const MatmulArgs& args);
void matmul_iq3_s(const MatmulArgs& args);
void matvec_iq2_s(const MatmulArgs& args);
void matmul_iq2_s(const MatmulArgs& args);
void matvec_iq1_m(const MatmulArgs& args);
void matmul_iq1_m(const MatmulArgs& args);
void matvec_iq4_xs(const MatmulArgs& args);
void matmul_iq4_xs(const MatmulArgs& args);
void matvec_tq1_0(const MatmulArgs& args);
void matmul_tq1_0(const MatmulArgs& args);
void matvec_tq2_0(const MatmulArgs& args);
void matmul_tq2_0(const MatmulArgs& args);
void matvec_iq4_nl(const MatmulArgs& args);
void matmul_iq4_nl(const MatmulArgs& args);
void matvec_mxfp4(const MatmulArgs& args);
void matmul_mxfp4(const MatmulArgs& args);
void matvec_nvfp4(const MatmulArgs& args);
void matmul_nvfp4(const MatmulArgs& args);
void matvec_q1_0(const MatmulArgs& args);
void matmul_q1_0(const MatmulArgs& args);
void matvec_q2_0(const MatmulArgs& args);
void matmul_q2_0(const MatmulArgs& args);

void attention_f16(const AttentionArgs& args);
void attention_f32(const AttentionArgs& args);
void attention_q8_0(const AttentionArgs& args);
void store_key_f16(const float* key, size_t head_dim, size_t position, void* keys);
void store_key_f32(const float* key, size_t head_dim, size_t position, void* keys);
void store_key_q8_0(const float* key, size_t head_dim, size_t position, void* keys);
void store_value_f16(const float* value, size_t head_dim, size_t position, size_t value_stride,
                     void* values);
void store_value_f32(const float* value, size_t head_dim, size_t position, size_t value_stride,
                     void* values);
void store_value_q8_0(const float* value, size_t head_dim, size_t position, size_t value_stride,
                      void* values);

void quantize_q8_256(const float* x, size_t cols, const QuantizedRow& row);
void quantize_q8_32(const float* x, size_t cols, const QuantizedRow& row);
void rms_norm(const float* x, const float* weight, float eps, size_t n, float* out);
void add(const float* x, size_t n, float* y);
void add_scaled(float a, const float* x, size_t n, float* y);
void silu_multiply(const float* gate, const float* up, size_t n, float* out);
void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out);
void gelu_multiply(const float* gate, const float* up, size_t n, float* out);
void relu_multiply(const float* gate, const float* up, size_t n, float* out);
void swiglu_clamped(const float* gate, const float* up, size_t n, float* out);
void softmax(float* x, size_t n);
void soft_cap(float cap, size_t n, float* x);
void rope_neox(float* x, const float* cos, const float* sin, size_t pairs);
void swiglu_limited(const float* gate, const float* up, float limit, size_t n, float* out);
void sigmoid_multiply(const float* gate, const float* up, size_t n, float* out);
void set_length(float* x, float length, float eps, size_t n);
void silu(float* x, size_t n);
void softplus_decay(float* x, const float* bias, float factor, size_t n);
void sigmoid_decay(float* x, const float* bias, float factor, float bound, size_t n);
void delta_rule(const DeltaArgs& args);
void rope_adjacent(float* x, const float* cos, const float* sin, size_t pairs);

uint64_t multiply_only(uint64_t rounds);

/// Every entry of the table.
void fill(KernelTable& table);

}  // namespace sluice::kernels::neon
