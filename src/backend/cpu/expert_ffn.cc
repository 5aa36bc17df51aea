// The expert FFN on the CPU. All works of a call share one queue of tiles, so that no core idles
// while another has rows left; gate, up, activation and quantisation of a tile are one task.
#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/expert_tiles.h"
#include "base/elementary.h"

namespace sluice {
namespace {

/// Calls f(tile, thread) for tiles that cover all rows and tokens of the works.
template <typename F>
void run_tiles(ComputePool& pool, const ExpertTiles& tiles, const F& f) {
  pool.run_guided(tiles.unit_count(), tiles.units_per_tile(),
                  [&](size_t begin, size_t end, size_t thread) {
                    tiles.for_tiles(begin, end, [&](const ExpertTile& tile) { f(tile, thread); });
                  });
}

auto activation_kernel(const kernels::KernelTable& kernels, FfnActivation activation) {
  if (activation == FfnActivation::gelu) return kernels.gelu_multiply;
  if (activation == FfnActivation::relu) return kernels.relu_multiply;
  if (activation == FfnActivation::clamped_silu) return kernels.swiglu_clamped;
  return kernels.silu_multiply;
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
  if (works.empty()) return;
  run_tiles(cpu_.pool, ExpertTiles(works, works.front().view.gate.rows, kGateUpRowUnit),
            [&](const ExpertTile& tile, size_t thread) { gate_up_tile(tile, thread, batch); });
}

void CpuBackend::gate_up_tile(const ExpertTile& tile, size_t thread, const BatchBuffers& batch) {
  const ExpertWork& work = *tile.work;
  float* gate_out = scratch_.per_thread + thread * thread_floats_;  // [token][row of the tile]
  float* up_out = gate_out + kTileResultsMax;                       // [token][row of the tile]
  const auto multiply = [&](const Matrix& weights, float* out) {
    MatmulJob job = work_job(weights.rows_from(tile.first_row, tile.row_count), batch.ffn_input);
    job.token_rows = work.tokens + tile.first_token;
    job.token_count = tile.token_count;
    job.out = out;
    job.out_stride = tile.row_count;
    compute_rows(cpu_.kernels, job, 0, tile.row_count);
  };
  multiply(work.view.gate, gate_out);
  multiply(work.view.up, up_out);
  const ExpertBiases& biases = cpu_.map.dense.layers[work.layer].expert_biases;
  add_expert_bias(biases.gate, tile, gate_out, tile.row_count);
  add_expert_bias(biases.up, tile, up_out, tile.row_count);

  const auto activate = activation_kernel(cpu_.kernels, cpu_.config.architecture->activation);
  const ActivationFormat format = dtype_info(work.view.down.dtype).activation;
  const ActivationRows& activated = batch.activated[static_cast<size_t>(format)];
  for (size_t token = 0; token < tile.token_count; ++token) {
    float* row = gate_out + token * tile.row_count;
    activate(row, up_out + token * tile.row_count, tile.row_count, row);
    write_activations(cpu_.kernels, format, row, tile.first_row, tile.row_count,
                      work.view.down.cols,
                      activated.row(work.first_pair + tile.first_token + token));
  }
}

void CpuBackend::expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) {
  if (works.empty()) return;
  const size_t hidden_size = cpu_.config.hidden_size;
  run_tiles(cpu_.pool, ExpertTiles(works, works.front().view.down.rows, kDownRowUnit),
            [&](const ExpertTile& tile, size_t) {
              const size_t pair = tile.work->first_pair + tile.first_token;
              MatmulJob job = work_job(tile.work->view.down, batch.activated);
              job.activations += pair * job.activation_stride;
              job.token_count = tile.token_count;
              job.out = batch.expert_output + pair * hidden_size;
              job.out_stride = hidden_size;
              compute_rows(cpu_.kernels, job, tile.first_row, tile.row_count);
              add_expert_bias(cpu_.map.dense.layers[tile.work->layer].expert_biases.down, tile,
                              job.out + tile.first_row, hidden_size);
            });
}

/// To a tile's results, [token][stride]. Only experts have biases.
void CpuBackend::add_expert_bias(const Matrix& biases, const ExpertTile& tile, float* out,
                                 size_t stride) const {
  if (!biases.present() || tile.work->expert == kNoExpert) return;
  const std::byte* row = biases.row(static_cast<size_t>(tile.work->expert));
  for (size_t token = 0; token < tile.token_count; ++token)
    cpu_.kernels.add(reinterpret_cast<const float*>(row) + tile.first_row, tile.row_count,
                     out + token * stride);
}

void CpuBackend::combine(size_t layer, size_t token_count, const BatchBuffers& batch) {
  const size_t size = cpu_.config.hidden_size;
  const size_t used = batch.routing.used_count;
  const LayerWeights& weights = cpu_.map.dense.layers[layer];
  cpu_.pool.run_queue(token_count, [&](size_t token, size_t thread) {
    float* sum = scratch_.per_thread + thread * thread_floats_;  // [hidden_size]
    std::fill_n(sum, size, 0.0f);
    for (size_t rank = 0; rank < used; ++rank) {
      const size_t entry = token * used + rank;
      const auto pair = static_cast<size_t>(batch.pair_of[entry]);
      cpu_.kernels.add_scaled(batch.routing.weights[entry], batch.expert_output + pair * size, size,
                              sum);
    }
    cpu_.normalise_if_any(weights.norm_after_experts, sum);
    if (weights.shared.present()) {
      float* shared = batch.shared_output + token * size;
      cpu_.normalise_if_any(weights.norm_after_shared, shared);
      cpu_.kernels.add_scaled(shared_share(layer, token, batch), shared, size, sum);
    }
    add_to_hidden(weights, sum, batch.hidden + token * size);
  });
}

/// A row that the FFN of a layer gives; nothing comes after it in the layer.
void CpuBackend::add_to_hidden(const LayerWeights& weights, float* row, float* hidden) const {
  const size_t size = cpu_.config.hidden_size;
  cpu_.normalise_if_any(weights.norm_after_ffn, row);
  cpu_.kernels.add_scaled(cpu_.config.residual_scale, row, size, hidden);
  if (!weights.output_scale.present()) return;
  for (float& value : std::span(hidden, size)) value *= *floats_of(weights.output_scale);
}

/// How much of the shared expert's output a token gets.
float CpuBackend::shared_share(size_t layer, size_t token, const BatchBuffers& batch) const {
  const Matrix& gate = cpu_.map.dense.layers[layer].shared_gate;
  if (!gate.present()) return 1.0f;
  float logit = 0.0f;
  MatmulJob job = work_job(gate, batch.shared_input);
  job.activations += token * job.activation_stride;
  job.token_count = 1;
  job.out = &logit;
  job.out_stride = 1;
  compute_rows(cpu_.kernels, job, 0, 1);
  return sigmoid_f32(logit);
}

void CpuBackend::add_ffn(size_t layer, size_t token_count, const BatchBuffers& batch) {
  const size_t size = cpu_.config.hidden_size;
  cpu_.for_tokens(token_count, [&](size_t token) {
    add_to_hidden(cpu_.map.dense.layers[layer], batch.expert_output + token * size,
                  batch.hidden + token * size);
  });
}

}  // namespace sluice
