#include "backend/cpu/matmul_jobs.h"

#include <algorithm>

#include "base/units.h"

namespace sluice {
namespace {

/// Up to this many tokens the kernels that stream weights from memory win.
constexpr size_t kMatvecTokensMax = 3;

/// Tasks per thread: enough for the last ones to even out, few enough to cost nothing.
constexpr size_t kTasksPerThread = 6;

/// Kernels work on panels of 16 rows.
constexpr size_t kRowGrain = 16;

}  // namespace

void compute_rows(const kernels::KernelTable& kernels, const MatmulJob& job, size_t first,
                  size_t count) {
  const auto dtype = static_cast<size_t>(job.weights.dtype);
  const bool few = job.token_count <= kMatvecTokensMax;
  const kernels::MatmulFn multiply = few ? kernels.matvec[dtype] : kernels.matmul[dtype];
  multiply({.weights = job.weights.row(first),
            .row_bytes = job.weights.row_bytes,
            .row_count = count,
            .cols = job.weights.cols,
            .activations = job.activations,
            .activation_stride = job.activation_stride,
            .token_rows = job.token_rows,
            .token_count = job.token_count,
            .out = job.out + first,
            .out_stride = job.out_stride});
}

void run_matmuls(ComputePool& pool, const kernels::KernelTable& kernels,
                 std::span<const MatmulJob> jobs) {
  size_t row_count = 0;
  for (const MatmulJob& job : jobs) row_count += job.weights.rows;
  const size_t rows_per_task =
      round_up(std::max<size_t>(1, row_count / (pool.thread_count() * kTasksPerThread)), kRowGrain);
  size_t task_count = 0;
  for (const MatmulJob& job : jobs)
    task_count += (job.weights.rows + rows_per_task - 1) / rows_per_task;

  pool.run_queue(task_count, [&](size_t task, size_t) {
    for (const MatmulJob& job : jobs) {
      const size_t tasks = (job.weights.rows + rows_per_task - 1) / rows_per_task;
      if (task < tasks) {
        const size_t first = task * rows_per_task;
        return compute_rows(kernels, job, first, std::min(rows_per_task, job.weights.rows - first));
      }
      task -= tasks;
    }
  });
}

}  // namespace sluice
