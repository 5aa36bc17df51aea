// A model's GGUF files, parsed: key/values and the place of every tensor, for a single file or a
// split set seen as one. Only headers are read; weights stay on the drive. The format is the
// ecosystem's (versions 2 and 3, little-endian); nothing in a file is trusted: every count is
// bounded by the bytes that are left, every tensor's range is checked against its own shard, and
// an error names the file, the key or the tensor. Immutable after open(); any thread may read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/extent.h"
#include "base/result.h"
#include "quant/dtype.h"

namespace sluice::gguf {

/// A value as stored, integers widened. Arrays of integers, floats, booleans and strings are flat
/// vectors; an array of arrays is kept only as its presence (nothing we implement uses one).
struct NestedArray {
  friend bool operator==(const NestedArray&, const NestedArray&) = default;
};
using Value = std::variant<uint64_t, int64_t, double, bool, std::string, std::vector<uint64_t>,
                           std::vector<int64_t>, std::vector<double>, std::vector<bool>,
                           std::vector<std::string>, NestedArray>;

struct Tensor {
  std::string name;
  Dtype dtype;
  std::vector<uint64_t> shape;  ///< fastest-varying dimension first, 1 to 4 of them, all > 0
  FileExtent extent;            ///< absolute place in its shard

  uint64_t element_count() const;
  /// "[2048, 768, 128]"
  std::string shape_text() const;
};

class GgufFile {
 public:
  /// Opens a file, any shard of a split set, or a folder that holds exactly one model. Names of
  /// siblings are built from the path as typed.
  static Result<GgufFile> open(const std::string& path);

  /// The paths of the shards in order; FileExtent::file indexes it.
  const std::vector<std::string>& paths() const { return paths_; }
  const std::vector<uint64_t>& file_bytes() const { return file_bytes_; }
  uint32_t version() const { return version_; }
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* find_tensor(std::string_view name) const;

  /// Typed access. A missing key is an empty optional; a key of another type is an error that
  /// names the key, the type found and the type wanted. Integers of any width and sign are taken
  /// when the value fits.
  Result<std::optional<uint64_t>> find_uint(std::string_view key) const;
  Result<std::optional<double>> find_float(std::string_view key) const;
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string>> find_text(std::string_view key) const;
  /// A scalar is given as a vector of one: hyper-parameters may be either.
  Result<std::vector<uint64_t>> find_uints(std::string_view key) const;
  Result<std::vector<double>> find_floats(std::string_view key) const;
  /// Null when missing. The pointer lives as long as the GgufFile.
  Result<const std::vector<std::string>*> find_texts(std::string_view key) const;

 private:
  friend class SetReader;
  std::vector<std::string> paths_;
  std::vector<uint64_t> file_bytes_;
  uint32_t version_ = 0;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<Tensor> tensors_;  ///< in file order, shard by shard
  std::map<std::string, size_t, std::less<>> tensor_index_;
};

}  // namespace sluice::gguf
