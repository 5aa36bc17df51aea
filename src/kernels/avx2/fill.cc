#include "kernels/avx2/avx2.h"

namespace sluice::kernels::avx2 {
namespace {

void fill_matmul(KernelTable& table, Dtype dtype, MatmulFn matvec, MatmulFn matmul) {
  table.matvec[static_cast<size_t>(dtype)] = matvec;
  table.matmul[static_cast<size_t>(dtype)] = matmul;
}

}  // namespace

void fill(KernelTable& table) {
  table.isa = Isa::avx2;
  fill_matmul(table, Dtype::f32, matmul_f32, matmul_f32);
  fill_matmul(table, Dtype::f16, matmul_f16, matmul_f16);
  fill_matmul(table, Dtype::bf16, matmul_bf16, matmul_bf16);
  fill_matmul(table, Dtype::q4_0, matvec_q4_0, matmul_q4_0);
  fill_matmul(table, Dtype::q4_1, matvec_q4_1, matmul_q4_1);
  fill_matmul(table, Dtype::q5_0, matvec_q5_0, matmul_q5_0);
  fill_matmul(table, Dtype::q5_1, matvec_q5_1, matmul_q5_1);
  fill_matmul(table, Dtype::q8_0, matvec_q8_0, matmul_q8_0);
  fill_matmul(table, Dtype::q2_k, matvec_q2_k, matmul_q2_k);
  fill_matmul(table, Dtype::q3_k, matvec_q3_k, matmul_q3_k);
  fill_matmul(table, Dtype::q4_k, matvec_q4_k, matmul_q4_k);
  fill_matmul(table, Dtype::q5_k, matvec_q5_k, matmul_q5_k);
  fill_matmul(table, Dtype::q6_k, matvec_q6_k, matmul_q6_k);
  fill_matmul(table, Dtype::iq2_xxs, matvec_iq2_xxs, matmul_iq2_xxs);
  fill_matmul(table, Dtype::iq2_xs, matvec_iq2_xs, matmul_iq2_xs);
  fill_matmul(table, Dtype::iq3_xxs, matvec_iq3_xxs, matmul_iq3_xxs);
  fill_matmul(table, Dtype::iq1_s, matvec_iq1_s, matmul_iq1_s);
  fill_matmul(table, Dtype::iq3_s, matvec_iq3_s, matmul_iq3_s);
  fill_matmul(table, Dtype::iq2_s, matvec_iq2_s, matmul_iq2_s);
  fill_matmul(table, Dtype::iq1_m, matvec_iq1_m, matmul_iq1_m);
  fill_matmul(table, Dtype::iq4_xs, matvec_iq4_xs, matmul_iq4_xs);
  fill_matmul(table, Dtype::tq1_0, matvec_tq1_0, matmul_tq1_0);
  fill_matmul(table, Dtype::tq2_0, matvec_tq2_0, matmul_tq2_0);
  fill_matmul(table, Dtype::iq4_nl, matvec_iq4_nl, matmul_iq4_nl);
  fill_matmul(table, Dtype::mxfp4, matvec_mxfp4, matmul_mxfp4);
  fill_matmul(table, Dtype::nvfp4, matvec_nvfp4, matmul_nvfp4);
  fill_matmul(table, Dtype::q1_0, matvec_q1_0, matmul_q1_0);
  fill_matmul(table, Dtype::q2_0, matvec_q2_0, matmul_q2_0);

  const auto f16 = static_cast<size_t>(KvType::f16);
  const auto f32 = static_cast<size_t>(KvType::f32);
  const auto q8_0 = static_cast<size_t>(KvType::q8_0);
  table.attention[f16] = attention_f16;
  table.attention[f32] = attention_f32;
  table.attention[q8_0] = attention_q8_0;
  table.store_key[f16] = store_key_f16;
  table.store_key[f32] = store_key_f32;
  table.store_key[q8_0] = store_key_q8_0;
  table.store_value[f16] = store_value_f16;
  table.store_value[f32] = store_value_f32;
  table.store_value[q8_0] = store_value_q8_0;

  table.quantize_q8_256 = quantize_q8_256;
  table.quantize_q8_32 = quantize_q8_32;
  table.rms_norm = rms_norm;
  table.add = add;
  table.add_scaled = add_scaled;
  table.silu_multiply = silu_multiply;
  table.convolve = convolve;
  table.gelu_multiply = gelu_multiply;
  table.relu_multiply = relu_multiply;
  table.swiglu_clamped = swiglu_clamped;
  table.softmax = softmax;
  table.soft_cap = soft_cap;
  table.rope_neox = rope_neox;
  table.swiglu_limited = swiglu_limited;
  table.sigmoid_multiply = sigmoid_multiply;
  table.set_length = set_length;
  table.silu = silu;
  table.softplus_decay = softplus_decay;
  table.sigmoid_decay = sigmoid_decay;
  table.delta_rule = delta_rule;
  table.rope_adjacent = rope_adjacent;
  table.multiply_only = multiply_only;
}

}  // namespace sluice::kernels::avx2
