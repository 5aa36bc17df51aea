#include "gguf/header_parser.h"

#include <bit>

#include "gguf/format.h"
#include "gguf/head_reader.h"
#include "gguf/quoted.h"
#include "gguf/tensor_table.h"
#include "gguf/value_lookup.h"
#include "gguf/value_parser.h"

namespace sluice::gguf {
namespace {

/// The three sections in order. Each returns an error for what it has read and judged wrong; when
/// bytes are missing it returns without one, and the reader's state tells.
class HeaderParser {
 public:
  HeaderParser(std::span<const std::byte> head, uint64_t file_bytes)
      : reader_(head, file_bytes), file_bytes_(file_bytes) {}

  Result<std::optional<ShardHeader>> parse();

 private:
  Status parse_preamble();
  Status parse_values();
  Status parse_tensors();
  Status place_data();

  HeadReader reader_;
  const uint64_t file_bytes_;
  uint64_t value_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::string_view last_name_;  ///< the key or tensor read last, to say where a file breaks off
  ShardHeader header_;
};

Result<std::optional<ShardHeader>> HeaderParser::parse() {
  using Section = Status (HeaderParser::*)();
  for (const Section section : {&HeaderParser::parse_preamble, &HeaderParser::parse_values,
                                &HeaderParser::parse_tensors, &HeaderParser::place_data}) {
    if (Status status = (this->*section)(); !status.ok()) return status.error();
    if (reader_.state() == HeadState::needs_more) return std::optional<ShardHeader>{};
    if (reader_.state() == HeadState::past_end)
      return make_error(ErrorKind::corrupt,
                        "the header claims more than the {} bytes of the file, near {}; it is cut "
                        "short or damaged, fetch it again",
                        file_bytes_, last_name_.empty() ? "its start" : quoted(last_name_));
  }
  return std::optional<ShardHeader>(std::move(header_));
}

Status check_magic(std::string_view magic) {
  if (magic == kMagic) return {};
  if (magic == "vers")  // "version https://git-lfs…"
    return make_error(ErrorKind::unsupported,
                      "not a GGUF file but a Git LFS pointer to one; fetch it with 'git lfs pull'");
  return make_error(ErrorKind::unsupported, "not a GGUF file: it starts with {}", quoted(magic));
}

Status check_version(uint32_t version) {
  if (version >= kVersionMin && version <= kVersionMax) return {};
  if ((version & 0xffff) == 0 && version != 0)  // the version's bytes stand the other way round
    return make_error(ErrorKind::unsupported,
                      "a big-endian GGUF file; only little-endian files are supported");
  return make_error(ErrorKind::unsupported,
                    "GGUF version {} is not supported, only {} to {}; convert the model again",
                    version, kVersionMin, kVersionMax);
}

Status HeaderParser::parse_preamble() {
  const auto magic = reader_.take(kMagic.size());
  if (!reader_.ok()) return {};
  Status status = check_magic({reinterpret_cast<const char*>(magic.data()), magic.size()});
  if (!status.ok()) return status;
  header_.version = reader_.read<uint32_t>();
  if (!reader_.ok()) return {};
  status = check_version(header_.version);
  if (!status.ok()) return status;
  tensor_count_ = reader_.read<uint64_t>();
  value_count_ = reader_.read<uint64_t>();
  return {};
}

Status HeaderParser::parse_values() {
  if (!reader_.can_hold(value_count_, kKeyValueBytesMin)) return {};
  for (uint64_t i = 0; i < value_count_; ++i) {
    const std::string_view key = reader_.read_text();
    const auto type_id = reader_.read<uint32_t>();
    if (!reader_.ok()) return {};
    last_name_ = key;
    Result<Value> value = parse_value(reader_, type_id);
    if (!value.ok()) return value.error().at(fmt::format("key {}", quoted(key)));
    if (!reader_.ok()) return {};
    if (!header_.values.emplace(key, std::move(*value)).second)
      return make_error(ErrorKind::corrupt, "key {} appears twice", quoted(key));
  }
  return {};
}

Status HeaderParser::parse_tensors() {
  if (!reader_.can_hold(tensor_count_, kTensorBytesMin)) return {};
  header_.tensors.reserve(static_cast<size_t>(tensor_count_));
  for (uint64_t i = 0; i < tensor_count_; ++i) {
    const std::string_view name = reader_.read_text();
    if (!reader_.ok()) return {};
    last_name_ = name;
    Result<Tensor> tensor = parse_tensor(reader_, name);
    if (!tensor.ok()) return tensor.error();
    if (!reader_.ok()) return {};
    header_.tensors.push_back(std::move(*tensor));
  }
  return {};
}

Status HeaderParser::place_data() {
  const auto stored = find_uint(header_.values, kKeyAlignment);
  if (!stored.ok()) return stored.error();
  const uint64_t alignment = stored->value_or(kAlignmentDefault);
  if (!std::has_single_bit(alignment) || alignment > kAlignmentMax)
    return make_error(ErrorKind::corrupt, "key '{}': {} is not a power of two up to {}",
                      kKeyAlignment, alignment, kAlignmentMax);
  header_.data_begin = round_up(reader_.position(), alignment);
  return place_tensors(header_.tensors, {header_.data_begin, alignment, file_bytes_});
}

}  // namespace

Result<std::optional<ShardHeader>> parse_header(std::span<const std::byte> head,
                                                uint64_t file_bytes) {
  return HeaderParser(head, file_bytes).parse();
}

}  // namespace sluice::gguf
