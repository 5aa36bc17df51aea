// Collects a model's tensors by name, checks their shapes and types, and remembers the first thing
// that is wrong, so that plans can name one tensor after the other and ask once. One thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "gguf/gguf_file.h"
#include "model/weight_map.h"

namespace sluice {

class TensorPlanner {
 public:
  TensorPlanner(const gguf::GgufFile& file, WeightMap& map) : file_(file), map_(map) {}

  /// A dense tensor of `rows` × `cols` (one dimension when rows is 1). rows 0: any number.
  void dense(const std::string& name, uint64_t rows, uint64_t cols, Matrix& matrix);
  /// `count` matrices in a tensor of three dimensions, seen as one with count · rows rows.
  void stacked(const std::string& name, uint64_t count, uint64_t rows, uint64_t cols,
               Matrix& matrix);
  /// Rows [first, first + rows) of a matrix of `all_rows`.
  void slice(const std::string& name, uint64_t first, uint64_t rows, uint64_t all_rows,
             uint64_t cols, Matrix& matrix);

  /// What is used number by number: must be F32.
  void floats(const std::string& name, uint64_t rows, uint64_t cols, Matrix& matrix);
  /// The same, but dimensions of 1 do not count, nor whether they are there.
  void squeezed_floats(const std::string& name, uint64_t rows, uint64_t cols, Matrix& matrix);
  void optional_floats(const std::string& name, uint64_t rows, uint64_t cols, Matrix& matrix);
  /// A norm, a bias, a factor for each element.
  void vector(const std::string& name, uint64_t count, Matrix& matrix) {
    floats(name, 1, count, matrix);
  }
  void optional_vector(const std::string& name, uint64_t count, Matrix& matrix) {
    optional_floats(name, 1, count, matrix);
  }

  /// `name`.weight, and `name`.bias if it is there.
  void projection(const std::string& name, uint64_t rows, uint64_t cols, Projection& projection);
  /// An FFN whose width the file says by its shape; `kind` is "" or "_shexp".
  void dense_ffn(const std::string& prefix, std::string_view kind, uint64_t hidden, DenseFfn& ffn);

  ExpertPart expert_part(const std::string& name, ExpertPartKind kind, uint64_t rows, uint64_t cols,
                         uint64_t experts);
  /// The third dimension of an expert tensor: how many experts this layer has.
  uint64_t expert_count(const std::string& name);

  /// A tensor that nobody asked for would change the arithmetic if we knew how: a bias, a scale,
  /// a factor. Only layers that do not run (for next-token prediction) may hold such.
  void refuse_unused(size_t layer_count);

  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }
  const std::optional<Error>& error() const { return error_; }
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

 private:
  const gguf::Tensor* find(const std::string& name);
  /// Enters a tensor whose shape is right.
  void enter(const gguf::Tensor& tensor, uint64_t rows, Matrix& matrix);

  const gguf::GgufFile& file_;
  WeightMap& map_;
  std::set<std::string> used_;
  std::optional<Error> error_;
};

}  // namespace sluice
