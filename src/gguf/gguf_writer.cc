#include "gguf/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/check.h"
#include "base/units.h"
#include "gguf/model_path.h"

namespace sluice::gguf {
namespace {

void append_entry(std::string& bytes, std::string_view key, ValueType type,
                  std::string_view value) {
  append_value(bytes, std::string(key));
  append_value(bytes, static_cast<uint32_t>(type));
  bytes += value;
}

template <Storable T>
void append_entry(std::string& bytes, std::string_view key, const T& value) {
  std::string encoded;
  append_value(encoded, value);
  append_entry(bytes, key, value_type_of<T>(), encoded);
}

uint64_t padding(uint64_t bytes, uint64_t alignment) {
  return round_up(bytes, alignment) - bytes;
}

/// Copies a tensor from its source to the file through a buffer of bounded size.
Status copy_tensor(const GgufWriter::TensorSource& source, uint64_t bytes, std::ostream& out) {
  constexpr uint64_t kPieceBytes = 4 * kMiB;
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(bytes, kPieceBytes)));
  for (uint64_t done = 0; done < bytes;) {
    const std::span<std::byte> piece(buffer.data(),
                                     static_cast<size_t>(std::min(bytes - done, kPieceBytes)));
    if (Status filled = source(done, piece); !filled.ok()) return filled;
    out.write(reinterpret_cast<const char*>(piece.data()),
              static_cast<std::streamsize>(piece.size()));
    done += piece.size();
  }
  return {};
}

}  // namespace

GgufWriter::GgufWriter(const WriterOptions& options) : options_(options) {
  CHECK(std::has_single_bit(options.alignment) && options.shard_count > 0);
  CHECK(options.shard_count <= std::numeric_limits<uint16_t>::max());
  if (options.alignment != kAlignmentDefault) set(kKeyAlignment, options.alignment);
}

void GgufWriter::set_encoded(std::string_view key, ValueType type, std::string_view bytes) {
  CHECK(std::find(keys_.begin(), keys_.end(), key) == keys_.end());
  keys_.emplace_back(key);
  append_entry(values_, key, type, bytes);
}

void GgufWriter::add_tensor(std::string name, Dtype dtype, std::vector<uint64_t> shape,
                            TensorSource source) {
  CHECK(!shape.empty() && shape.size() <= kDimensionsMax);
  uint64_t elements = 1;
  for (const uint64_t dimension : shape) elements *= dimension;
  CHECK(elements > 0 && shape[0] % dtype_info(dtype).block_elements == 0);
  tensors_.push_back(
      {std::move(name), dtype, std::move(shape), dtype_bytes(dtype, elements), std::move(source)});
}

void GgufWriter::add_tensor(std::string name, Dtype dtype, std::vector<uint64_t> shape,
                            std::span<const std::byte> bytes) {
  add_tensor(std::move(name), dtype, std::move(shape),
             [bytes](uint64_t offset, std::span<std::byte> piece) -> Status {
               std::memcpy(piece.data(), bytes.data() + offset, piece.size());
               return {};
             });
  CHECK(bytes.size() == tensors_.back().bytes);
}

std::vector<std::string> GgufWriter::shard_paths(const std::string& path) const {
  if (options_.shard_count == 1) return {path};
  const std::string prefix = path.ends_with(".gguf") ? path.substr(0, path.size() - 5) : path;
  std::vector<std::string> paths;
  for (uint32_t number = 1; number <= options_.shard_count; ++number)
    paths.push_back(ShardName{prefix, number, options_.shard_count}.path());
  return paths;
}

Status GgufWriter::write(const std::string& path) const {
  const auto paths = shard_paths(path);
  for (uint32_t shard = 0; shard < options_.shard_count; ++shard) {
    std::ofstream out(paths[shard], std::ios::binary | std::ios::trunc);
    if (!out) return make_error(ErrorKind::io, "{}: cannot create the file", paths[shard]);
    if (Status written = write_shard(shard, out); !written.ok())
      return written.error().at(paths[shard]);
    out.close();
    if (!out) return make_error(ErrorKind::io, "{}: cannot finish the file", paths[shard]);
  }
  return {};
}

Status GgufWriter::write_shard(uint32_t shard, std::ostream& out) const {
  CHECK(shard < options_.shard_count);
  const std::string header = encode_header(shard);
  const std::string zeros(options_.alignment, '\0');
  out << header;
  uint64_t unaligned = header.size();
  for (const PendingTensor& tensor : tensors_of(shard)) {
    out << std::string_view(zeros).substr(0, padding(unaligned, options_.alignment));
    if (Status copied = copy_tensor(tensor.source, tensor.bytes, out); !copied.ok()) return copied;
    if (!out) return make_error(ErrorKind::io, "cannot write; is the drive full?");
    unaligned = tensor.bytes;
  }
  out << std::string_view(zeros).substr(0, padding(unaligned, options_.alignment));
  return out ? Status{} : make_error(ErrorKind::io, "cannot write; is the drive full?");
}

std::vector<std::string> GgufWriter::encode() const {
  std::vector<std::string> shards;
  for (uint32_t shard = 0; shard < options_.shard_count; ++shard) {
    std::ostringstream out;
    const Status written = write_shard(shard, out);
    CHECK(written.ok());
    shards.push_back(std::move(out).str());
  }
  return shards;
}

std::span<const GgufWriter::PendingTensor> GgufWriter::tensors_of(uint32_t shard) const {
  const size_t begin = tensors_.size() * shard / options_.shard_count;
  const size_t end = tensors_.size() * (shard + 1) / options_.shard_count;
  return std::span(tensors_).subspan(begin, end - begin);
}

/// Everything before the padding. Only the first shard carries the key/values; a later one needs
/// the alignment all the same.
std::string GgufWriter::encode_header(uint32_t shard) const {
  const bool is_first = shard == 0;
  std::string split_values;
  uint64_t value_count = is_first ? keys_.size() : 0;
  if (options_.shard_count > 1) {
    append_entry(split_values, kKeySplitNumber, static_cast<uint16_t>(shard));
    append_entry(split_values, kKeySplitCount, static_cast<uint16_t>(options_.shard_count));
    append_entry(split_values, kKeySplitTensors, static_cast<int32_t>(tensors_.size()));
    value_count += 3;
    if (!is_first && options_.alignment != kAlignmentDefault) {
      append_entry(split_values, kKeyAlignment, options_.alignment);
      ++value_count;
    }
  }
  const auto tensors = tensors_of(shard);
  std::string bytes(kMagic);
  append_value(bytes, options_.version);
  append_value(bytes, uint64_t{tensors.size()});
  append_value(bytes, value_count);
  if (is_first) bytes += values_;
  bytes += split_values;
  uint64_t offset = 0;
  for (const PendingTensor& tensor : tensors) {
    append_value(bytes, tensor.name);
    append_value(bytes, static_cast<uint32_t>(tensor.shape.size()));
    for (const uint64_t dimension : tensor.shape) append_value(bytes, dimension);
    append_value(bytes, static_cast<uint32_t>(tensor.dtype));
    append_value(bytes, offset);
    offset += round_up(tensor.bytes, options_.alignment);
  }
  return bytes;
}

}  // namespace sluice::gguf
