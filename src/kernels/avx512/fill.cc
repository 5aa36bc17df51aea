#include "kernels/avx512/avx512.h"

namespace sluice::kernels::avx512 {
namespace {

/// One token or many, it is the same code; see panel_matmul.h.
void fill_matmul(KernelTable& table, Dtype dtype, MatmulFn matmul) {
  table.matvec[static_cast<size_t>(dtype)] = matmul;
  table.matmul[static_cast<size_t>(dtype)] = matmul;
}

}  // namespace

void fill(KernelTable& table) {
  table.isa = Isa::avx512;
  fill_matmul(table, Dtype::q4_0, matmul_q4_0);
  fill_matmul(table, Dtype::q8_0, matmul_q8_0);
  fill_matmul(table, Dtype::q4_k, matmul_q4_k);
  fill_matmul(table, Dtype::q5_k, matmul_q5_k);
  fill_matmul(table, Dtype::q6_k, matmul_q6_k);
}

}  // namespace sluice::kernels::avx512
