#include "backend/cpu/matmul_jobs.h"

#include <algorithm>

#include "backend/cpu/unit_ranges.h"
#include "base/units.h"

namespace sluice {
namespace {

/// Up to this many tokens are few (kernels.h); beyond one it is up to the kernel what it does with
/// them.
constexpr size_t kMatvecTokensMax = 3;

/// The rows of a task: what is worth starting over for, and what keeps other things waiting for
/// the end of a task no longer than a millisecond or so.
constexpr size_t kRowUnit = 64;
constexpr size_t kTaskRowsMax = 4096;
constexpr size_t kTaskResultsMax = 16384;

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
  const auto units_of = [](const MatmulJob& job) { return ceil_div(job.weights.rows, kRowUnit); };
  size_t unit_count = 0;
  size_t token_max = 1;
  for (const MatmulJob& job : jobs) {
    unit_count += units_of(job);
    token_max = std::max(token_max, job.token_count);
  }
  const size_t task_rows = std::min(kTaskRowsMax, kTaskResultsMax / token_max);
  const size_t longest = std::max<size_t>(1, task_rows / kRowUnit);
  pool.run_guided(unit_count, longest, [&](size_t begin, size_t end, size_t) {
    for_units(jobs, begin, end, units_of, [&](const MatmulJob& job, size_t first, size_t last) {
      const size_t first_row = first * kRowUnit;
      const size_t end_row = std::min(last * kRowUnit, job.weights.rows);
      compute_rows(kernels, job, first_row, end_row - first_row);
    });
  });
}

}  // namespace sluice
