// The expert FFN on the CPU. All works of a call share one queue of tiles, so that no core idles
// while another has rows left; gate, up, activation and quantisation of a tile are one task.
#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/expert_tiles.h"

namespace sluice {
namespace {

size_t ceil_div(size_t a, size_t b) {
  return (a + b - 1) / b;
}

/// A work's tokens are cut into tiles of nearly the same size: the fewer tokens a tile has, the
/// more the unpacking of its weights costs each.
size_t tile_tokens(const ExpertWork& work) {
  return ceil_div(work.token_count, ceil_div(work.token_count, kExpertTileTokens));
}

/// Calls f(work, first_token, token_count, first_row, row_count, thread) for every tile.
template <typename RowsOf, typename F>
void run_tiles(ComputePool& pool, std::span<const ExpertWork> works, size_t tile_rows,
               const RowsOf& rows_of, const F& f) {
  const auto tiles_of = [&](const ExpertWork& work) {
    return ceil_div(work.token_count, tile_tokens(work)) * ceil_div(rows_of(work), tile_rows);
  };
  size_t tile_count = 0;
  for (const ExpertWork& work : works) tile_count += tiles_of(work);
  pool.run_queue(tile_count, [&](size_t tile, size_t thread) {
    size_t index = 0;
    for (; tile >= tiles_of(works[index]); ++index) tile -= tiles_of(works[index]);
    const ExpertWork& work = works[index];
    const size_t row_tiles = ceil_div(rows_of(work), tile_rows);
    const size_t tokens = tile_tokens(work);
    const size_t first_token = tile / row_tiles * tokens;
    const size_t first_row = tile % row_tiles * tile_rows;
    f(work, first_token, std::min(tokens, work.token_count - first_token), first_row,
      std::min(tile_rows, rows_of(work) - first_row), thread);
  });
}

/// The rows of an input that a matrix wants, as a job over some of a work's tokens.
MatmulJob work_job(const Matrix& weights, const ActivationRows* rows_by_format) {
  const auto format = static_cast<size_t>(dtype_info(weights.dtype).activation);
  return {.weights = weights,
          .activations = rows_by_format[format].begin,
          .activation_stride = rows_by_format[format].stride};
}

}  // namespace

void CpuBackend::expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers& batch) {
  run_tiles(
      pool_, works, kExpertTileRows, [](const ExpertWork& work) { return work.view.gate.rows; },
      [&](const ExpertWork& work, size_t first_token, size_t token_count, size_t first_row,
          size_t row_count, size_t thread) {
        gate_up_rows(work, first_token, token_count, first_row, row_count, thread, batch);
      });
}

void CpuBackend::gate_up_rows(const ExpertWork& work, size_t first_token, size_t token_count,
                              size_t first_row, size_t row_count, size_t thread,
                              const BatchBuffers& batch) {
  float* gate_out = scratch_.per_thread + thread * thread_floats_;  // [token][kExpertTileRows]
  float* up_out = gate_out + kExpertTileTokens * kExpertTileRows;   // [token][kExpertTileRows]
  const auto multiply = [&](const Matrix& weights, float* out) {
    MatmulJob job = work_job(weights.rows_from(first_row, row_count), batch.ffn_input);
    job.token_rows = work.tokens + first_token;
    job.token_count = token_count;
    job.out = out;
    job.out_stride = kExpertTileRows;
    compute_rows(kernels_, job, 0, row_count);
  };
  multiply(work.view.gate, gate_out);
  multiply(work.view.up, up_out);

  const ActivationFormat format = dtype_info(work.view.down.dtype).activation;
  const ActivationRows& activated = batch.activated[static_cast<size_t>(format)];
  for (size_t token = 0; token < token_count; ++token) {
    float* row = gate_out + token * kExpertTileRows;
    kernels_.silu_multiply(row, up_out + token * kExpertTileRows, row_count, row);
    write_activations(kernels_, format, row, first_row, row_count, work.view.down.cols,
                      activated.row(work.first_pair + first_token + token));
  }
}

void CpuBackend::expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) {
  const size_t hidden_size = config_.hidden_size;
  run_tiles(
      pool_, works, kExpertTileRows, [](const ExpertWork& work) { return work.view.down.rows; },
      [&](const ExpertWork& work, size_t first_token, size_t token_count, size_t first_row,
          size_t row_count, size_t) {
        const size_t pair = work.first_pair + first_token;
        MatmulJob job = work_job(work.view.down, batch.activated);
        job.activations += pair * job.activation_stride;
        job.token_count = token_count;
        job.out = batch.expert_output + pair * hidden_size;
        job.out_stride = hidden_size;
        compute_rows(kernels_, job, first_row, row_count);
      });
}

void CpuBackend::combine(size_t token_count, const BatchBuffers& batch) {
  const size_t size = config_.hidden_size;
  const size_t used = batch.routing.used_count;
  pool_.run_queue(token_count, [&](size_t token, size_t thread) {
    float* sum = scratch_.per_thread + thread * thread_floats_;  // [hidden_size]
    std::fill_n(sum, size, 0.0f);
    for (size_t rank = 0; rank < used; ++rank) {
      const size_t entry = token * used + rank;
      const auto pair = static_cast<size_t>(batch.pair_of[entry]);
      kernels_.add_scaled(batch.routing.weights[entry], batch.expert_output + pair * size, size,
                          sum);
    }
    kernels_.add(sum, size, batch.hidden + token * size);
  });
}

}  // namespace sluice
