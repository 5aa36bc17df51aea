// How fast each kernel of each usable instruction set runs on the shapes of real models, on one
// thread, beside what the machine can do.
//
// A matrix times one token is bound by reading weights: its GB/s stand against a plain pass over
// the same memory ("read"). Its weights rotate through a pool far larger than the last-level cache,
// as streamed experts do. A matrix times many tokens is bound by arithmetic: its GOP/s (one
// multiply-add is two) stand against a loop of nothing else ("multiply"). Both limits are measured
// first; of_read_% and of_multiply_% are what a kernel reaches of them. (Float weights stand beside
// the multiplication of integers, too.) Each matrix product is compared with the reference before
// it is timed. The best instruction set comes first, the reference, which is slow, last.
//
//   bench_kernels --benchmark_filter='mat(vec|mul)/Q4_K/'
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "bench/machine_limits.h"
#include "kernels/kernels.h"
#include "os/arena.h"
#include "os/clock.h"
#include "quant/activation.h"
#include "quant/encode.h"
#include "testing/moderate_blocks.h"

namespace sluice::kernels {
namespace {

constexpr size_t kPoolBytes = size_t{128} << 20;  ///< four times a last-level cache of 32 MiB

struct alignas(64) Line {
  std::byte bytes[64];
};

std::vector<Line> make_lines(size_t bytes) {
  return std::vector<Line>((bytes + 63) / 64);
}

std::vector<float> random_floats(size_t count) {
  Random random(count);
  std::vector<float> x(count);
  for (float& value : x) value = static_cast<float>(random.uniform() * 2 - 1);
  return x;
}

/// In huge pages, as the slots of the expert cache are.
os::Arena make_pool_arena() {
  auto arena = os::Arena::allocate(kPoolBytes, "the weights to multiply");
  CHECK(bool(arena));
  return std::move(*arena);
}

/// The pool, filled with copies of one random row. Only one lives at a time.
struct WeightPool {
  Dtype dtype;
  size_t matrix_bytes;
  os::Arena arena = make_pool_arena();

  static const WeightPool& of(Dtype dtype, size_t rows, size_t cols) {
    static std::unique_ptr<WeightPool> pool;
    const size_t bytes = rows * dtype_bytes(dtype, cols);
    if (pool != nullptr && pool->dtype == dtype && pool->matrix_bytes == bytes) return *pool;
    pool.reset();
    pool = std::make_unique<WeightPool>(WeightPool{dtype, bytes});
    const std::vector<std::byte> row =
        moderate_blocks(dtype, cols / dtype_info(dtype).block_elements, 1);
    for (size_t i = 0; i < pool->matrix_count() * rows; ++i)
      std::ranges::copy(row,
                        pool->arena.begin() + i / rows * pool->stride() + i % rows * row.size());
    return *pool;
  }

  size_t stride() const { return (matrix_bytes + 63) / 64 * 64; }
  size_t matrix_count() const { return kPoolBytes / stride(); }
  const std::byte* matrix(size_t i) const { return arena.begin() + i % matrix_count() * stride(); }
};

std::vector<Line> make_activations(const KernelTable& table, ActivationFormat format, size_t cols,
                                   size_t tokens) {
  const size_t stride = activation_layout(format, cols).row_bytes;
  std::vector<Line> lines = make_lines(stride * tokens);
  const std::vector<float> x = random_floats(cols);
  for (size_t t = 0; t < tokens; ++t) {
    std::byte* row = lines.front().bytes + t * stride;
    if (format == ActivationFormat::f32) encode_f32(x.data(), cols, row);
    const QuantizedRow quantized = quantized_row(format, cols, row);
    if (format == ActivationFormat::q8_256) table.quantize_q8_256(x.data(), cols, quantized);
    if (format == ActivationFormat::q8_32) table.quantize_q8_32(x.data(), cols, quantized);
  }
  return lines;
}

struct MatmulShape {
  size_t rows;
  size_t cols;
  size_t tokens;
};

/// What a rate is to be seen beside: "GB/s" of a plain read, "GOP/s" of nothing but
/// multiplications.
struct Limits {
  double read;
  double multiply;
};

/// Runs `step` again and again; gives the seconds of one run. By the wall clock, as the limits are.
template <class Step>
double seconds_of(benchmark::State& state, Step step) {
  const uint64_t start = os::now_ns();
  for (auto _ : state) {
    step();
    benchmark::ClobberMemory();
  }
  return os::seconds_between(start, os::now_ns()) / static_cast<double>(state.iterations());
}

/// Plain counters: the library would print "/s" behind one that it divides by the time itself.
void report_rates(benchmark::State& state, double seconds, double bytes, double operations) {
  state.counters["GB/s"] = bytes / seconds / 1e9;
  state.counters["GOP/s"] = operations / seconds / 1e9;
}

/// Which limit binds: one token waits for its weights, many for their products.
void report_share(benchmark::State& state, double seconds, double weight_bytes, double operations,
                  const MatmulShape& shape, const Limits& limits) {
  if (shape.tokens == 1)
    state.counters["of_read_%"] = 100 * weight_bytes / seconds / limits.read;
  else if (limits.multiply > 0)
    state.counters["of_multiply_%"] = 100 * operations / seconds / limits.multiply;
}

/// Ends the program if the kernel and the reference differ.
void check_matmul(MatmulFn kernel, Dtype dtype, MatmulArgs args, MatmulShape shape) {
  std::vector<float> wanted(shape.rows * shape.tokens);
  kernel(args);
  const std::span<const float> got(args.out, wanted.size());
  args.out = wanted.data();
  kernel_table(Isa::ref).matvec[static_cast<size_t>(dtype)](args);
  CHECK(std::memcmp(got.data(), wanted.data(), got.size_bytes()) == 0);
}

void run_matmul(benchmark::State& state, const KernelTable& table, MatmulFn kernel, Dtype dtype,
                MatmulShape shape, const Limits& limits) {
  const WeightPool& pool = WeightPool::of(dtype, shape.rows, shape.cols);
  const ActivationFormat format = dtype_info(dtype).activation;
  const std::vector<Line> x = make_activations(table, format, shape.cols, shape.tokens);
  std::vector<float> out(shape.rows * shape.tokens);
  MatmulArgs args = {.weights = pool.matrix(0),
                     .row_bytes = dtype_bytes(dtype, shape.cols),
                     .row_count = shape.rows,
                     .cols = shape.cols,
                     .activations = x.front().bytes,
                     .activation_stride = activation_layout(format, shape.cols).row_bytes,
                     .token_rows = nullptr,
                     .token_count = shape.tokens,
                     .out = out.data(),
                     .out_stride = shape.rows};
  check_matmul(kernel, dtype, args, shape);
  size_t turn = 0;
  const double seconds = seconds_of(state, [&] {
    args.weights = pool.matrix(turn++);
    kernel(args);
  });
  const auto bytes = static_cast<double>(pool.matrix_bytes);
  const auto operations = 2.0 * static_cast<double>(shape.rows * shape.cols * shape.tokens);
  report_rates(state, seconds, bytes, operations);
  report_share(state, seconds, bytes, operations, shape, limits);
}

struct AttentionShape {
  size_t head_dim;
  size_t group_size;
  size_t first_position;
  size_t tokens;
};

constexpr KvType kKvTypes[] = {KvType::f16, KvType::f32, KvType::q8_0};
constexpr const char* kKvNames[] = {"f16", "f32", "q8_0"};

/// Keys and values of one head after another, all the same, enough of them to fill the pool: as
/// decoding goes from layer to layer, they come from memory.
struct HeadPool {
  HeadPool(const KernelTable& table, KvType type, AttentionShape shape)
      : tile_count((shape.first_position + shape.tokens + kKeyTile - 1) / kKeyTile),
        key_lines((tile_count * kv_tile_bytes(type, shape.head_dim) + 63) / 64) {
    const std::vector<float> row = random_floats(shape.head_dim);
    lines = make_lines(std::max(kPoolBytes, 2 * 64 * key_lines));
    for (size_t p = 0; p < tile_count * kKeyTile; ++p) {
      const auto index = static_cast<size_t>(type);
      table.store_key[index](row.data(), shape.head_dim, p, keys(0));
      table.store_value[index](row.data(), shape.head_dim, p, shape.head_dim, values(0));
    }
    for (size_t head = 1; head < head_count(); ++head)
      std::copy_n(lines.begin(), 2 * key_lines,
                  lines.begin() + static_cast<std::ptrdiff_t>(head * 2 * key_lines));
  }

  size_t head_count() const { return lines.size() / (2 * key_lines); }
  Line* keys(size_t turn) { return lines.data() + turn % head_count() * 2 * key_lines; }
  Line* values(size_t turn) { return keys(turn) + key_lines; }

  size_t tile_count;
  size_t key_lines;  ///< of a head; its values take as many
  std::vector<Line> lines;
};

void run_attention(benchmark::State& state, const KernelTable& table, KvType type,
                   AttentionShape shape) {
  HeadPool pool(table, type, shape);
  const size_t stride = shape.group_size * shape.head_dim;
  const std::vector<float> queries = random_floats(shape.tokens * stride);
  std::vector<float> out(queries.size());
  AttentionArgs args = {.queries = queries.data(),
                        .query_stride = stride,
                        .token_count = shape.tokens,
                        .group_size = shape.group_size,
                        .first_position = shape.first_position,
                        .keys = nullptr,
                        .values = nullptr,
                        .key_dim = shape.head_dim,
                        .value_dim = shape.head_dim,
                        .value_stride = shape.head_dim,
                        .scale = 0.088f,
                        .out = out.data(),
                        .out_stride = stride};
  size_t turn = 0;
  const double seconds = seconds_of(state, [&] {
    args.keys = pool.keys(turn);
    args.values = pool.values(turn++);
    table.attention[static_cast<size_t>(type)](args);
  });
  const auto pairs = static_cast<double>(shape.tokens * shape.group_size *
                                         (shape.first_position + shape.tokens / 2 + 1));
  report_rates(state, seconds,
               2.0 * static_cast<double>(pool.tile_count * kv_tile_bytes(type, shape.head_dim)),
               4.0 * pairs * static_cast<double>(shape.head_dim));
}

/// A pass over the hidden state, `bytes_per_element` read and written.
template <class Pass>
void run_pass(benchmark::State& state, size_t n, double bytes_per_element, Pass pass) {
  std::vector<float> x = random_floats(n), y = random_floats(n);
  std::vector<Line> row = make_lines(8 * n);
  const double seconds = seconds_of(state, [&] { pass(x.data(), y.data(), row.front().bytes); });
  report_rates(state, seconds, static_cast<double>(n) * bytes_per_element, static_cast<double>(n));
}

/// A limit as a line of the report.
void register_limit(const std::string& name, const char* unit, double rate) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(rate);
    state.counters[unit] = rate / 1e9;
  })->Iterations(1);
}

double measure_read_limit() {
  const os::Arena arena = make_pool_arena();
  std::memset(arena.begin(), 1, kPoolBytes);  // untouched pages would all be one page of zeros
  return bench::measure_read_rate({arena.begin(), kPoolBytes});
}

void register_matmuls(Isa isa, const Limits& limits) {
  const KernelTable& table = kernel_table(isa);
  constexpr MatmulShape kMatvecShapes[] = {{768, 2048, 1}, {2048, 768, 1}, {2048, 2048, 2}};
  constexpr MatmulShape kMatmulShapes[] = {{768, 2048, 16}, {2048, 1024, 64}};
  for (uint32_t id = 0; id < kDtypeIdCount; ++id) {
    if (table.matvec[id] == nullptr) continue;
    const DtypeInfo& info = *find_dtype(id);
    const auto add = [&](const char* entry, MatmulFn kernel, MatmulShape shape) {
      const std::string name = fmt::format("{}/{}/{}/{}x{}/tokens:{}", entry, info.name,
                                           isa_name(isa), shape.rows, shape.cols, shape.tokens);
      benchmark::RegisterBenchmark(name.c_str(), run_matmul, table, kernel, info.dtype, shape,
                                   limits);
    };
    for (const MatmulShape shape : kMatvecShapes) add("matvec", table.matvec[id], shape);
    for (const MatmulShape shape : kMatmulShapes) add("matmul", table.matmul[id], shape);
  }
}

void register_attention(Isa isa) {
  constexpr AttentionShape kShapes[] = {
      {128, 8, 4095, 1}, {64, 4, 4095, 1}, {128, 1, 4095, 1}, {64, 4, 1024, 64}};
  for (const KvType type : kKvTypes) {
    for (const AttentionShape& shape : kShapes) {
      const std::string name = fmt::format(
          "attention/{}/{}/head:{}/group:{}/keys:{}/tokens:{}", kKvNames[static_cast<size_t>(type)],
          isa_name(isa), shape.head_dim, shape.group_size, shape.first_position + 1, shape.tokens);
      benchmark::RegisterBenchmark(name.c_str(), run_attention, kernel_table(isa), type, shape);
    }
  }
}

void register_passes(Isa isa) {
  constexpr size_t kHidden = 2048;
  const KernelTable& table = kernel_table(isa);
  const auto add = [&](const char* entry, double bytes_per_element, auto pass) {
    benchmark::RegisterBenchmark(
        fmt::format("{}/{}/{}", entry, isa_name(isa), kHidden).c_str(),
        [=](benchmark::State& state) { run_pass(state, kHidden, bytes_per_element, pass); });
  };
  add("quantize_q8_256", 5, [&table](float* x, float*, std::byte* row) {
    table.quantize_q8_256(x, kHidden, quantized_row(ActivationFormat::q8_256, kHidden, row));
  });
  add("quantize_q8_32", 5, [&table](float* x, float*, std::byte* row) {
    table.quantize_q8_32(x, kHidden, quantized_row(ActivationFormat::q8_32, kHidden, row));
  });
  add("rms_norm", 12, [&table](float* x, float* weight, std::byte* row) {
    table.rms_norm(x, weight, 1e-6f, kHidden, reinterpret_cast<float*>(row));
  });
  add("silu_multiply", 12, [&table](float* gate, float* up, std::byte* row) {
    table.silu_multiply(gate, up, kHidden, reinterpret_cast<float*>(row));
  });
  add("gelu_multiply", 12, [&table](float* gate, float* up, std::byte* row) {
    table.gelu_multiply(gate, up, kHidden, reinterpret_cast<float*>(row));
  });
  add("soft_cap", 8, [&table](float* x, float*, std::byte*) { table.soft_cap(30.0f, kHidden, x); });
  add("softmax", 8, [&table](float* x, float*, std::byte*) { table.softmax(x, kHidden); });
  add("add_scaled", 12,
      [&table](float* x, float* y, std::byte*) { table.add_scaled(1e-9f, x, kHidden, y); });
  add("rope_neox", 12, [&table](float* x, float* angles, std::byte*) {
    table.rope_neox(x, angles, angles + kHidden / 2, kHidden / 2);
  });
}

void register_all() {
  const double read = measure_read_limit();
  register_limit("limit/read", "GB/s", read);
  const auto isas = usable_isas();
  for (const Isa isa : std::vector<Isa>(isas.rbegin(), isas.rend())) {
    const double multiply = bench::measure_multiply_rate(kernel_table(isa));
    if (multiply > 0)
      register_limit(fmt::format("limit/multiply/{}", isa_name(isa)), "GOP/s", multiply);
    register_matmuls(isa, {read, multiply});
    register_attention(isa);
    register_passes(isa);
  }
}

}  // namespace
}  // namespace sluice::kernels

int main(int argument_count, char** arguments) {
  benchmark::Initialize(&argument_count, arguments);
  if (benchmark::ReportUnrecognizedArguments(argument_count, arguments)) return 1;
  sluice::kernels::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
