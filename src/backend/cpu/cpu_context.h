// What every part of the CPU backend works with: the model, the kernels of one ISA, the threads.
// One thread at a time.
#pragma once

#include <span>

#include "backend/cpu/activation_rows.h"
#include "backend/cpu/matmul_jobs.h"
#include "kernels/kernels.h"
#include "model/weight_map.h"
#include "parallel/compute_pool.h"

namespace sluice {

struct CpuLimits {
  size_t ubatch_token_max;   ///< sizes the scratch memory
  size_t context_token_max;  ///< sizes the tables of rotation angles
};

/// The floats of a weight that is used number by number.
inline const float* floats_of(const Matrix& matrix) {
  return reinterpret_cast<const float*>(matrix.data);
}

inline ActivationFormat format_of(const Matrix& matrix) {
  return dtype_info(matrix.dtype).activation;
}

/// The product of a matrix with the rows of an activation set. The rows of `out` are as long as
/// the matrix has rows.
MatmulJob product_of(const Matrix& weights, const ActivationSet& input, size_t token_count,
                     float* out);

struct CpuContext {
  const ModelConfig& config;
  const WeightMap& map;
  const kernels::KernelTable& kernels;
  ComputePool& pool;
  CpuLimits limits;

  /// f(token) for each of them, on the pool; a single one is not worth waking the team for.
  template <typename F>
  void for_tokens(size_t token_count, const F& f) const {
    pool.run_ranges(token_count, 1, [&](size_t begin, size_t end) {
      for (size_t token = begin; token < end; ++token) f(token);
    });
  }

  void multiply(std::span<const MatmulJob> jobs) const { run_matmuls(pool, kernels, jobs); }
  void multiply(const MatmulJob& job) const { run_matmuls(pool, kernels, {&job, 1}); }

  /// row += bias; an absent bias is nothing.
  void add_bias(const Matrix& bias, float* row) const {
    if (bias.present()) kernels.add(floats_of(bias), bias.cols, row);
  }
  /// The same to each of so many rows.
  void add_bias(const Matrix& bias, size_t token_count, float* rows) const;

  /// A row as long as the norm, in place; an absent norm is nothing.
  void normalise_if_any(const Matrix& norm, float* row) const {
    if (norm.present()) normalise_rows(row, 1, norm.cols, norm);
  }
  /// Each of `count` rows of `size` floats, in place.
  void normalise_rows(float* rows, size_t count, size_t size, const Matrix& norm) const;
};

}  // namespace sluice
