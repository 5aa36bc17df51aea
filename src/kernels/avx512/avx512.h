// The kernels of the AVX-512 table (F, BW, DQ, VL, VNNI, VBMI); kernels.h defines each. fill.cc
// puts them into the table; any thread may call them on a machine that has these instructions.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels::avx512 {

void matmul_q4_0(const MatmulArgs& args);
void matmul_q8_0(const MatmulArgs& args);
void matmul_q4_k(const MatmulArgs& args);
void matmul_q5_k(const MatmulArgs& args);
void matmul_q6_k(const MatmulArgs& args);

/// Every entry of the table.
void fill(KernelTable& table);

}  // namespace sluice::kernels::avx512
