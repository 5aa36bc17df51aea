#include "engine/logits_base_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice {
namespace {

/// Whether a name, given in error perhaps, is that of a file with other content.
bool is_someone_elses(const std::string& path) {
  const auto file = os::File::open(path, os::DirectMode::off);
  if (!file || file->bytes() == 0) return false;
  std::string magic(kLogitsBaseMagic.size(), '\0');
  const auto bytes = std::as_writable_bytes(std::span(magic));
  const auto count = file->read_at(0, bytes.data(), bytes.size(), bytes.size());
  return !count || magic != kLogitsBaseMagic;
}

}  // namespace

Result<LogitsBaseWriter> LogitsBaseWriter::create(const std::string& path,
                                                  const ChunkShape& shape) {
  if (is_someone_elses(path))
    return make_error(ErrorKind::usage,
                      "{} is no file of logits and stays as it is; give --save-logits another name",
                      path);
  auto file = os::NewFile::create(path);
  if (!file) return file.error();
  LogitsBaseHeader header{.magic = {},
                          .context_tokens = static_cast<int32_t>(shape.context_tokens),
                          .vocabulary_size = static_cast<int32_t>(shape.vocabulary_size),
                          .chunk_count = static_cast<int32_t>(shape.chunk_count)};
  std::ranges::copy(kLogitsBaseMagic, header.magic);
  if (Status done = file->write(std::as_bytes(std::span(&header, 1))); !done) return done.error();
  return LogitsBaseWriter(std::move(*file), shape);
}

LogitsBaseWriter::LogitsBaseWriter(os::NewFile file, const ChunkShape& shape)
    : file_(std::move(file)),
      shape_(shape),
      chunks_left_(shape.chunk_count),
      rows_left_(uint64_t{shape.chunk_count} * shape.scored_count()),
      row_(logits_base_row_bytes(shape.vocabulary_size) / sizeof(uint16_t)) {}

Status LogitsBaseWriter::add_tokens(std::span<const text::TokenId> tokens) {
  CHECK(tokens.size() == shape_.context_tokens && chunks_left_ > 0);
  --chunks_left_;
  return file_.write(std::as_bytes(tokens));
}

Status LogitsBaseWriter::add_row(std::span<const float> logits, double log_sum) {
  CHECK(logits.size() == shape_.vocabulary_size && chunks_left_ == 0 && rows_left_ > 0);
  --rows_left_;
  const auto [least, most] = std::ranges::minmax(logits);
  const double low = std::max<double>(least, most - kLogitsBaseDepth);
  const LogitsBaseRowHead head{.scale = static_cast<float>((most - low) / kLogitsBaseCodeMax),
                               .lowest = static_cast<float>(low - log_sum)};
  std::memcpy(row_.data(), &head, sizeof(head));
  const auto codes = std::span(row_).subspan(sizeof(head) / sizeof(uint16_t));
  const double steps = head.scale > 0 ? 1.0 / head.scale : 0.0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double code = std::nearbyint(std::max(logits[i] - low, 0.0) * steps);
    codes[i] = static_cast<uint16_t>(std::min<double>(code, kLogitsBaseCodeMax));
  }
  return file_.write(std::as_bytes(std::span(row_)));
}

Status LogitsBaseWriter::commit() {
  CHECK(chunks_left_ == 0 && rows_left_ == 0);
  return file_.commit();
}

}  // namespace sluice
