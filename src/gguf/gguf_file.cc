#include "gguf/gguf_file.h"

#include <filesystem>
#include <system_error>

#include "gguf/model_path.h"
#include "gguf/shard_set.h"
#include "gguf/value_lookup.h"

namespace sluice::gguf {
namespace {

/// The same result, an error with the file in front.
template <typename T>
Result<T> in_file(const std::vector<std::string>& paths, Result<T> found) {
  if (found.ok()) return found;
  return found.error().at(paths.front());
}

}  // namespace

uint64_t Tensor::element_count() const {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  return count;
}

std::string Tensor::shape_text() const {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is opened as a file, and that error shown
  if (!std::filesystem::is_directory(path, ignored)) return SetReader::open(path);
  const auto model = find_model(path);
  if (!model.ok()) return model.error();
  return SetReader::open(*model);
}

const Tensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Result<std::optional<uint64_t>> GgufFile::find_uint(std::string_view key) const {
  return in_file(paths_, gguf::find_uint(values_, key));
}

Result<std::optional<double>> GgufFile::find_float(std::string_view key) const {
  return in_file(paths_, gguf::find_float(values_, key));
}

Result<std::optional<bool>> GgufFile::find_bool(std::string_view key) const {
  return in_file(paths_, gguf::find_bool(values_, key));
}

Result<std::optional<std::string>> GgufFile::find_text(std::string_view key) const {
  return in_file(paths_, gguf::find_text(values_, key));
}

Result<std::vector<uint64_t>> GgufFile::find_uints(std::string_view key) const {
  return in_file(paths_, gguf::find_uints(values_, key));
}

Result<std::vector<double>> GgufFile::find_floats(std::string_view key) const {
  return in_file(paths_, gguf::find_floats(values_, key));
}

Result<const std::vector<std::string>*> GgufFile::find_texts(std::string_view key) const {
  return in_file(paths_, gguf::find_texts(values_, key));
}

}  // namespace sluice::gguf
