// Several matrix products that do not depend on each other, as one parallel step: the rows of all
// of them are cut into tasks, so that no core idles while another still has rows left.
// One caller at a time, as for the pool.
#pragma once

#include <span>

#include "kernels/kernels.h"
#include "model/matrix.h"
#include "parallel/compute_pool.h"

namespace sluice {

/// out[t][r] = dot(weight row r, activation row t), t < token_count.
struct MatmulJob {
  Matrix weights;
  const std::byte* activations = nullptr;  ///< rows in the weights' activation format
  size_t activation_stride = 0;
  const int32_t* token_rows = nullptr;  ///< activation row of token t; null: row t
  size_t token_count = 0;
  float* out = nullptr;
  size_t out_stride = 0;
};

/// Computes rows [first, first + count) of a job on the calling thread.
void compute_rows(const kernels::KernelTable& kernels, const MatmulJob& job, size_t first,
                  size_t count);

/// Computes all jobs on the pool.
void run_matmuls(ComputePool& pool, const kernels::KernelTable& kernels,
                 std::span<const MatmulJob> jobs);

}  // namespace sluice
