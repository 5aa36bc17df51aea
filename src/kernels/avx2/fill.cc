#include "kernels/avx2/avx2.h"

namespace sluice::kernels::avx2 {
namespace {

void fill_matmul(KernelTable& table, Dtype dtype, MatmulFn matvec, MatmulFn matmul) {
  table.matvec[static_cast<size_t>(dtype)] = matvec;
  table.matmul[static_cast<size_t>(dtype)] = matmul;
}

}  // namespace

void fill(KernelTable& table) {
  fill_matmul(table, Dtype::f32, matmul_f32, matmul_f32);
  fill_matmul(table, Dtype::f16, matmul_f16, matmul_f16);
  fill_matmul(table, Dtype::bf16, matmul_bf16, matmul_bf16);
  fill_matmul(table, Dtype::q4_0, matvec_q4_0, matmul_q4_0);
  fill_matmul(table, Dtype::q8_0, matvec_q8_0, matmul_q8_0);
  fill_matmul(table, Dtype::q4_k, matvec_q4_k, matmul_q4_k);
  fill_matmul(table, Dtype::q5_k, matvec_q5_k, matmul_q5_k);
  fill_matmul(table, Dtype::q6_k, matvec_q6_k, matmul_q6_k);
}

}  // namespace sluice::kernels::avx2
