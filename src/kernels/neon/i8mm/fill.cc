#include "kernels/neon/i8mm/i8mm.h"

namespace sluice::kernels::i8mm {

void fill(KernelTable& table) {
  table.isa = Isa::i8mm;
  const auto entry = [&](Dtype dtype) -> MatmulFn& {
    return table.matmul[static_cast<size_t>(dtype)];
  };
  entry(Dtype::q4_0) = matmul_q4_0;
  entry(Dtype::q5_0) = matmul_q5_0;
  entry(Dtype::q8_0) = matmul_q8_0;
  entry(Dtype::q4_k) = matmul_q4_k;
  entry(Dtype::q5_k) = matmul_q5_k;
  entry(Dtype::q6_k) = matmul_q6_k;
}

}  // namespace sluice::kernels::i8mm
