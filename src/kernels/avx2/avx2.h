// The kernels for x86-64 with AVX2, FMA and F16C, one file per format or operation. kernels.h says
// what each computes; the files here say how. The names below are the entries of the table (fill.cc
// puts them there); everything else is internal to its file. Any thread may call them, once the
// machine is known to have these instructions.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels::avx2 {

void matmul_f32(const MatmulArgs& args);
void matmul_f16(const MatmulArgs& args);
void matmul_bf16(const MatmulArgs& args);
void matvec_q4_0(const MatmulArgs& args);
void matmul_q4_0(const MatmulArgs& args);
void matvec_q8_0(const MatmulArgs& args);
void matmul_q8_0(const MatmulArgs& args);
void matvec_q4_k(const MatmulArgs& args);
void matmul_q4_k(const MatmulArgs& args);
void matvec_q5_k(const MatmulArgs& args);
void matmul_q5_k(const MatmulArgs& args);
void matvec_q6_k(const MatmulArgs& args);
void matmul_q6_k(const MatmulArgs& args);

/// Overwrites the entries that this ISA has.
void fill(KernelTable& table);

}  // namespace sluice::kernels::avx2
