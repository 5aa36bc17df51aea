#include "testing/gguf_exercise.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "gguf/header_parser.h"
#include "gguf/shard_set.h"

namespace sluice {
namespace {

using gguf::GgufFile;
using gguf::ShardHeader;
using gguf::Tensor;
using ParsedHeader = Result<std::optional<ShardHeader>>;

bool same_result(const ParsedHeader& a, const ParsedHeader& b) {
  if (a.ok() != b.ok()) return false;
  if (!a.ok()) return a.error().message == b.error().message;
  return (*a)->data_begin == (*b)->data_begin && (*a)->tensors.size() == (*b)->tensors.size() &&
         (*a)->values.size() == (*b)->values.size();
}

/// What is read of a file first must not change what is found in it.
void check_partial_heads(std::span<const std::byte> bytes, const ParsedHeader& whole) {
  for (const size_t part : {bytes.size() / 4, bytes.size() / 2, bytes.size() - bytes.size() / 8}) {
    const ParsedHeader partial = gguf::parse_header(bytes.first(part), bytes.size());
    if (!partial.ok() || *partial) CHECK(same_result(partial, whole));
  }
  // The same head of a far larger file: counts that would now fit must not be allocated for.
  constexpr uint64_t kLargerBytes = uint64_t{1} << 50;
  const ParsedHeader larger = gguf::parse_header(bytes, kLargerBytes);
  if (whole.ok()) CHECK(larger.ok() && same_result(larger, whole));
}

/// Every tensor lies inside the file, on bytes of its own.
void check_tensors(const GgufFile& file, uint64_t file_bytes) {
  std::vector<const Tensor*> tensors;
  for (const Tensor& tensor : file.tensors()) {
    CHECK(!tensor.shape.empty() && tensor.shape.size() <= 4);
    CHECK(tensor.extent.bytes == dtype_bytes(tensor.dtype, tensor.element_count()));
    CHECK(tensor.extent.bytes > 0 && tensor.extent.bytes <= file_bytes);
    CHECK(tensor.extent.offset <= file_bytes - tensor.extent.bytes);
    CHECK(file.find_tensor(tensor.name) == &tensor);
    CHECK(!tensor.shape_text().empty());
    tensors.push_back(&tensor);
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const Tensor* a, const Tensor* b) { return a->extent.offset < b->extent.offset; });
  for (size_t i = 1; i < tensors.size(); ++i)
    CHECK(tensors[i - 1]->extent.end() <= tensors[i]->extent.offset);
}

/// Each value answers to its own type; the other accessors refuse it or convert it.
void check_values(const GgufFile& file) {
  for (const auto& [key, value] : file.values()) {
    const auto number = file.find_uint(key);
    CHECK(number.ok() || !std::holds_alternative<uint64_t>(value));
    const auto real = file.find_float(key);
    CHECK(real.ok() || !std::holds_alternative<double>(value));
    CHECK(file.find_bool(key).ok() == std::holds_alternative<bool>(value));
    CHECK(file.find_text(key).ok() == std::holds_alternative<std::string>(value));
    const auto numbers = file.find_uints(key);
    if (number.ok()) CHECK(numbers.ok() && numbers->front() == **number);
    const auto reals = file.find_floats(key);
    if (real.ok()) CHECK(reals.ok() && reals->size() == 1);
    CHECK(file.find_texts(key).ok() == std::holds_alternative<std::vector<std::string>>(value));
  }
}

}  // namespace

bool exercise_gguf(std::span<const std::byte> bytes) {
  const ParsedHeader whole = gguf::parse_header(bytes, bytes.size());
  check_partial_heads(bytes, whole);
  if (!whole.ok()) return false;
  CHECK(whole->has_value());  // nothing is missing from the whole file

  const gguf::Shard shard{"fuzz.gguf", bytes.size(), **whole};
  const auto file = gguf::SetReader::join({shard});
  const auto pair = gguf::SetReader::join({shard, shard});
  CHECK(!pair.ok());  // both say that they are the same shard
  if (!file.ok()) return false;
  check_tensors(*file, bytes.size());
  check_values(*file);
  const std::string unheard_of(bytes.size() + 1, 'x');  // no room for it in the file
  CHECK(file->find_tensor(unheard_of) == nullptr && file->find_text(unheard_of).ok());
  return true;
}

}  // namespace sluice
