#include "model/tensor_planner.h"

#include <charconv>

namespace sluice {
namespace {

/// Floats are read where they lie; files with a general.alignment below this do not exist in the
/// wild (32 is usual).
constexpr uint64_t kOffsetMultiple = 8;

/// A tensor seen as a matrix: dimension 0 runs along a row, the others are rows.
Matrix matrix_of(const gguf::Tensor& tensor, uint64_t rows) {
  const uint64_t cols = tensor.shape[0];
  return {.dtype = tensor.dtype,
          .rows = rows,
          .cols = cols,
          .row_bytes = dtype_bytes(tensor.dtype, cols),
          .data = nullptr};
}

Status check_decodable(const gguf::Tensor& tensor) {
  const DtypeInfo& info = dtype_info(tensor.dtype);
  if (info.decode != nullptr) return {};
  return make_error(ErrorKind::unsupported, "tensor '{}' has type {}; supported: {}", tensor.name,
                    info.name, supported_dtypes());
}

Error wrong_shape(const gguf::Tensor& tensor, const std::string& expected) {
  return make_error(ErrorKind::corrupt, "tensor '{}' has shape {}, expected [{}]", tensor.name,
                    tensor.shape_text(), expected);
}

/// N of "blk.N.…"; 0 for tensors of the whole model.
size_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  size_t layer = 0;
  std::from_chars(name.data(), name.data() + name.size(), layer);
  return layer;
}

}  // namespace

const gguf::Tensor* TensorPlanner::find(const std::string& name) {
  used_.insert(name);
  const gguf::Tensor* tensor = file_.find_tensor(name);
  if (tensor == nullptr) {
    fail(make_error(ErrorKind::corrupt, "tensor '{}' is missing", name));
    return nullptr;
  }
  if (tensor->extent.offset % kOffsetMultiple != 0) {
    fail(make_error(ErrorKind::unsupported, "tensor '{}' begins at {}, not a multiple of {}", name,
                    tensor->extent.offset, kOffsetMultiple));
    return nullptr;
  }
  if (auto decodable = check_decodable(*tensor); !decodable) {
    fail(decodable.error());
    return nullptr;
  }
  return tensor;
}

void TensorPlanner::enter(const gguf::Tensor& tensor, uint64_t rows, Matrix& matrix) {
  matrix = matrix_of(tensor, rows);
  map_.dense_tensors.push_back({tensor.name, tensor.extent, &matrix});
}

void TensorPlanner::dense(const std::string& name, uint64_t rows, uint64_t cols, Matrix& matrix) {
  const gguf::Tensor* tensor = find(name);
  if (tensor == nullptr) return;
  const uint64_t found_rows = tensor->shape.size() == 1 ? 1 : tensor->shape[1];
  const bool flat = tensor->shape.size() <= 2;
  if (!flat || tensor->shape[0] != cols || (rows != 0 && found_rows != rows))
    return fail(wrong_shape(*tensor,
                            fmt::format("{}, {}", cols, rows == 0 ? "any" : std::to_string(rows))));
  enter(*tensor, found_rows, matrix);
}

void TensorPlanner::stacked(const std::string& name, uint64_t count, uint64_t rows, uint64_t cols,
                            Matrix& matrix) {
  const gguf::Tensor* tensor = find(name);
  if (tensor == nullptr) return;
  if (tensor->shape != std::vector<uint64_t>{cols, rows, count})
    return fail(wrong_shape(*tensor, fmt::format("{}, {}, {}", cols, rows, count)));
  enter(*tensor, count * rows, matrix);
}

void TensorPlanner::slice(const std::string& name, uint64_t first, uint64_t rows, uint64_t all_rows,
                          uint64_t cols, Matrix& matrix) {
  dense(name, all_rows, cols, matrix);
  if (error_) return;
  DenseTensor& tensor = map_.dense_tensors.back();
  matrix.rows = rows;
  tensor.extent.offset += first * matrix.row_bytes;
  tensor.extent.bytes = matrix.bytes();
}

void TensorPlanner::floats(const std::string& name, uint64_t rows, uint64_t cols, Matrix& matrix) {
  dense(name, rows, cols, matrix);
  if (!error_ && matrix.dtype != Dtype::f32)
    fail(make_error(ErrorKind::unsupported, "tensor '{}' has type {}; norms and biases must be F32",
                    name, dtype_info(matrix.dtype).name));
}

void TensorPlanner::squeezed_floats(const std::string& name, uint64_t rows, uint64_t cols,
                                    Matrix& matrix) {
  const gguf::Tensor* tensor = find(name);
  if (tensor == nullptr) return;
  std::vector<uint64_t> wanted{cols, rows}, found = tensor->shape;
  std::erase(wanted, 1u);
  std::erase(found, 1u);
  if (found != wanted || tensor->dtype != Dtype::f32)
    return fail(wrong_shape(*tensor, fmt::format("{}, {}, of F32", cols, rows)));
  enter(*tensor, rows, matrix);
  matrix.cols = cols;
  matrix.row_bytes = cols * sizeof(float);
}

void TensorPlanner::optional_floats(const std::string& name, uint64_t rows, uint64_t cols,
                                    Matrix& matrix) {
  if (has(name)) floats(name, rows, cols, matrix);
}

void TensorPlanner::projection(const std::string& name, uint64_t rows, uint64_t cols,
                               Projection& projection) {
  dense(name + ".weight", rows, cols, projection.weight);
  optional_vector(name + ".bias", rows, projection.bias);
}

void TensorPlanner::dense_ffn(const std::string& prefix, std::string_view kind, uint64_t hidden,
                              DenseFfn& ffn) {
  const auto name = [&](std::string_view part) {
    return fmt::format("{}ffn_{}{}.weight", prefix, part, kind);
  };
  dense(name("gate"), 0, hidden, ffn.gate);
  dense(name("up"), ffn.gate.rows, hidden, ffn.up);
  dense(name("down"), hidden, ffn.gate.rows, ffn.down);
}

ExpertPart TensorPlanner::expert_part(const std::string& name, ExpertPartKind kind, uint64_t rows,
                                      uint64_t cols, uint64_t experts) {
  const gguf::Tensor* tensor = find(name);
  if (tensor == nullptr) return {};
  if (tensor->shape != std::vector<uint64_t>{cols, rows, experts}) {
    fail(wrong_shape(*tensor, fmt::format("{}, {}, {}", cols, rows, experts)));
    return {};
  }
  FileExtent first = tensor->extent;
  first.bytes = tensor->extent.bytes / experts;
  return {.kind = kind, .shape = matrix_of(*tensor, rows), .first_expert = first};
}

uint64_t TensorPlanner::expert_count(const std::string& name) {
  const gguf::Tensor* tensor = find(name);
  if (tensor == nullptr) return 1;
  if (tensor->shape.size() == 3) return tensor->shape[2];
  fail(make_error(ErrorKind::corrupt, "tensor '{}' has shape {}, expected three dimensions", name,
                  tensor->shape_text()));
  return 1;
}

void TensorPlanner::refuse_unused(size_t layer_count) {
  for (const gguf::Tensor& tensor : file_.tensors()) {
    if (used_.contains(tensor.name) || layer_of(tensor.name) >= layer_count) continue;
    fail(make_error(ErrorKind::unsupported,
                    "tensor '{}' is not part of what this version computes for this architecture",
                    tensor.name));
  }
}

}  // namespace sluice
