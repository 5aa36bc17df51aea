#include "gguf/tensor_table.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "gguf/format.h"
#include "gguf/quoted.h"

namespace sluice::gguf {
namespace {

Error tensor_error(ErrorKind kind, std::string_view name, std::string_view problem) {
  return make_error(kind, "tensor {}: {}", quoted(name), problem);
}

Error corrupt(std::string_view name, std::string_view problem) {
  return tensor_error(ErrorKind::corrupt, name, problem);
}

/// a · b, or nothing when it does not fit 64 bits.
std::optional<uint64_t> checked_product(uint64_t a, uint64_t b) {
  if (b != 0 && a > std::numeric_limits<uint64_t>::max() / b) return {};
  return a * b;
}

uint32_t highest_known_id() {
  uint32_t highest = 0;
  for (uint32_t id = 0; id < kDtypeIdCount; ++id)
    if (find_dtype(id) != nullptr) highest = id;
  return highest;
}

Error unknown_dtype(std::string_view name, uint32_t id) {
  constexpr uint32_t kOldMxfp4 = 4;  // before that, and for everybody else, the id of Q4_2
  const std::string_view hint =
      id == kOldMxfp4 ? " (Q4_2, long retired; some early gpt-oss files mean MXFP4 by it: take a "
                        "newer conversion, which uses id 39)"
      : id < highest_known_id() ? " (retired, or never stored in files)"
                                : "";
  return tensor_error(ErrorKind::unsupported, name,
                      fmt::format("type id {}{} is not among the known ids, {} to {}", id, hint, 0,
                                  highest_known_id()));
}

/// Bytes of a tensor, by shape and block format.
Result<uint64_t> tensor_bytes(const Tensor& tensor) {
  uint64_t elements = 1;
  for (const uint64_t dimension : tensor.shape) {
    if (dimension == 0) return corrupt(tensor.name, "a dimension is 0");
    const auto product = checked_product(elements, dimension);
    if (!product) return corrupt(tensor.name, "its shape overflows 64 bits");
    elements = *product;
  }
  const DtypeInfo& info = dtype_info(tensor.dtype);
  if (tensor.shape[0] % info.block_elements != 0)
    return corrupt(tensor.name, fmt::format("its rows of {} elements are not whole {} blocks of {}",
                                            tensor.shape[0], info.name, info.block_elements));
  const auto bytes = checked_product(elements / info.block_elements, info.block_bytes);
  if (!bytes) return corrupt(tensor.name, "its size overflows 64 bits");
  return *bytes;
}

/// Checks one extent by subtraction: nothing in here can wrap around.
Status place(Tensor& tensor, const DataRange& range) {
  FileExtent& extent = tensor.extent;
  if (extent.offset % range.alignment != 0)
    return corrupt(tensor.name, fmt::format("its offset {} is not a multiple of the alignment {}",
                                            extent.offset, range.alignment));
  const uint64_t data_bytes = range.file_bytes - std::min(range.begin, range.file_bytes);
  if (extent.offset > data_bytes || extent.bytes > data_bytes - extent.offset)
    return corrupt(tensor.name,
                   fmt::format("its {} bytes at data offset {} reach past the end of the file, "
                               "which is cut short or damaged; fetch it again",
                               extent.bytes, extent.offset));
  extent.offset += range.begin;
  return {};
}

/// REQUIRES: every extent lies inside the file.
Status check_overlaps(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> by_offset;
  by_offset.reserve(tensors.size());
  for (const Tensor& tensor : tensors) by_offset.push_back(&tensor);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const Tensor* a, const Tensor* b) { return a->extent.offset < b->extent.offset; });
  for (size_t i = 1; i < by_offset.size(); ++i)
    if (by_offset[i]->extent.offset < by_offset[i - 1]->extent.end())
      return corrupt(by_offset[i]->name,
                     fmt::format("its bytes overlap those of {}", quoted(by_offset[i - 1]->name)));
  return {};
}

}  // namespace

Result<Tensor> parse_tensor(HeadReader& reader, std::string_view name) {
  Tensor tensor{std::string(name), Dtype::f32, {}, {}};
  const auto dimension_count = reader.read<uint32_t>();
  if (!reader.ok()) return tensor;
  if (dimension_count < 1 || dimension_count > kDimensionsMax)
    return corrupt(
        name, fmt::format("{} dimensions; 1 to {} are possible", dimension_count, kDimensionsMax));
  for (uint32_t i = 0; i < dimension_count; ++i) tensor.shape.push_back(reader.read<uint64_t>());
  const auto type_id = reader.read<uint32_t>();
  tensor.extent.offset = reader.read<uint64_t>();
  if (!reader.ok()) return tensor;

  const DtypeInfo* info = find_dtype(type_id);
  if (info == nullptr) return unknown_dtype(name, type_id);
  tensor.dtype = info->dtype;
  const auto bytes = tensor_bytes(tensor);
  if (!bytes.ok()) return bytes.error();
  tensor.extent.bytes = *bytes;
  return tensor;
}

Status place_tensors(std::vector<Tensor>& tensors, const DataRange& range) {
  for (Tensor& tensor : tensors)
    if (Status placed = place(tensor, range); !placed.ok()) return placed;
  return check_overlaps(tensors);
}

}  // namespace sluice::gguf
