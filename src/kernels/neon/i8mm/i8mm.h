// The table of ARM cores that also have the matrix products of int8 (Neoverse V1 and N2, Apple M2,
// Cortex-A710 and what came after them): matmul of the quantised formats. Everything else is
// neon's, and so are the headers: this folder only gives them other flags and smmla in place of
// sdot. The functions below are the entries of the table; any thread may call them on such a core.
#pragma once

#include "kernels/kernels.h"

namespace sluice::kernels::i8mm {

void matmul_q4_0(const MatmulArgs& args);
void matmul_q4_1(const MatmulArgs& args);
void matmul_q5_0(const MatmulArgs& args);
void matmul_q5_1(const MatmulArgs& args);
void matmul_q8_0(const MatmulArgs& args);
void matmul_q2_k(const MatmulArgs& args);
void matmul_q3_k(const MatmulArgs& args);
void matmul_q4_k(const MatmulArgs& args);
void matmul_q5_k(const MatmulArgs& args);
void matmul_q6_k(const MatmulArgs& args);
void matmul_iq2_xxs(const MatmulArgs& args);
void matmul_iq2_xs(const MatmulArgs& args);
void matmul_iq3_xxs(const MatmulArgs& args);
void matmul_iq1_s(const MatmulArgs& args);
void matmul_iq3_s(const MatmulArgs& args);
void matmul_iq2_s(const MatmulArgs& args);
void matmul_iq1_m(const MatmulArgs& args);
void matmul_iq4_xs(const MatmulArgs& args);
void matmul_tq1_0(const MatmulArgs& args);
void matmul_tq2_0(const MatmulArgs& args);
void matmul_iq4_nl(const MatmulArgs& args);
void matmul_mxfp4(const MatmulArgs& args);
void matmul_nvfp4(const MatmulArgs& args);
void matmul_q1_0(const MatmulArgs& args);
void matmul_q2_0(const MatmulArgs& args);

uint64_t multiply_only(uint64_t rounds);

/// The entries that differ from neon's. REQUIRES: the table has neon's.
void fill(KernelTable& table);

}  // namespace sluice::kernels::i8mm
