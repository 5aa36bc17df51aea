#include "kernels/neon/i8mm/i8mm.h"

namespace sluice::kernels::i8mm {

void fill(KernelTable& table) {
  table.isa = Isa::i8mm;
  const auto entry = [&](Dtype dtype) -> MatmulFn& {
    return table.matmul[static_cast<size_t>(dtype)];
  };
  entry(Dtype::q4_0) = matmul_q4_0;
  entry(Dtype::q4_1) = matmul_q4_1;
  entry(Dtype::q5_0) = matmul_q5_0;
  entry(Dtype::q5_1) = matmul_q5_1;
  entry(Dtype::q8_0) = matmul_q8_0;
  entry(Dtype::q2_k) = matmul_q2_k;
  entry(Dtype::q3_k) = matmul_q3_k;
  entry(Dtype::q4_k) = matmul_q4_k;
  entry(Dtype::q5_k) = matmul_q5_k;
  entry(Dtype::q6_k) = matmul_q6_k;
  entry(Dtype::iq2_xxs) = matmul_iq2_xxs;
  entry(Dtype::iq2_xs) = matmul_iq2_xs;
  entry(Dtype::iq3_xxs) = matmul_iq3_xxs;
  entry(Dtype::iq1_s) = matmul_iq1_s;
  entry(Dtype::iq3_s) = matmul_iq3_s;
  entry(Dtype::iq2_s) = matmul_iq2_s;
  entry(Dtype::iq1_m) = matmul_iq1_m;
  entry(Dtype::iq4_xs) = matmul_iq4_xs;
  entry(Dtype::tq1_0) = matmul_tq1_0;
  entry(Dtype::tq2_0) = matmul_tq2_0;
  entry(Dtype::iq4_nl) = matmul_iq4_nl;
  entry(Dtype::mxfp4) = matmul_mxfp4;
  entry(Dtype::nvfp4) = matmul_nvfp4;
  entry(Dtype::q1_0) = matmul_q1_0;
  entry(Dtype::q2_0) = matmul_q2_0;
  table.multiply_only = multiply_only;
}

}  // namespace sluice::kernels::i8mm
