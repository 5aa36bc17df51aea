#include "engine/logits_base.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice {
namespace {

/// What rounding may add to a probability of one.
constexpr double kLogProbabilityMax = 0.01;

}  // namespace

Result<LogitsBaseReader> LogitsBaseReader::open(const std::string& path) {
  auto file = os::File::open(path, os::DirectMode::off);
  if (!file) return file.error();
  LogitsBaseReader reader;
  reader.name_ = path;
  reader.bytes_ = file->bytes();
  reader.file_ = std::make_unique<os::File>(std::move(*file));
  return check(std::move(reader));
}

Result<LogitsBaseReader> LogitsBaseReader::parse(std::span<const std::byte> bytes,
                                                 std::string name) {
  LogitsBaseReader reader;
  reader.name_ = std::move(name);
  reader.memory_ = bytes;
  reader.bytes_ = bytes.size();
  return check(std::move(reader));
}

Result<LogitsBaseReader> LogitsBaseReader::check(LogitsBaseReader reader) {
  LogitsBaseHeader header{};
  const bool has_header = reader.bytes_ >= sizeof(header);
  if (has_header)
    if (Status read = reader.read(0, std::as_writable_bytes(std::span(&header, 1))); !read)
      return read.error();
  if (!has_header || std::string_view(header.magic, sizeof(header.magic)) != kLogitsBaseMagic)
    return make_error(ErrorKind::corrupt,
                      "{}: not a file of logits; llama-perplexity --kl-divergence-base and sluice "
                      "perplexity --save-logits write them",
                      reader.name_);
  if (Status fine = reader.check_counts(header); !fine) return fine.error();
  for (uint32_t chunk = 0; chunk < reader.shape_.chunk_count; ++chunk)
    if (auto tokens = reader.tokens(chunk); !tokens) return tokens.error();
  reader.row_.resize(logits_base_row_bytes(reader.shape_.vocabulary_size) / sizeof(uint16_t));
  return reader;
}

/// The counts are believed when they account for every byte. No product overflows: a chunk takes
/// less than 2^57 bytes.
Status LogitsBaseReader::check_counts(const LogitsBaseHeader& header) {
  if (header.context_tokens < static_cast<int32_t>(ChunkShape::kContextMin) ||
      header.context_tokens > static_cast<int32_t>(ChunkShape::kContextMax) ||
      header.vocabulary_size < 1 || header.chunk_count < 1)
    return make_error(ErrorKind::corrupt,
                      "{}: {} chunks of {} tokens with a vocabulary of {} are not possible", name_,
                      header.chunk_count, header.context_tokens, header.vocabulary_size);
  shape_ = {.context_tokens = static_cast<uint32_t>(header.context_tokens),
            .vocabulary_size = static_cast<uint32_t>(header.vocabulary_size),
            .chunk_count = static_cast<uint32_t>(header.chunk_count)};
  const uint64_t chunk_bytes =
      chunk_tokens_bytes() + shape_.scored_count() * logits_base_row_bytes(shape_.vocabulary_size);
  const uint64_t bytes = bytes_ - sizeof(header);
  if (bytes % chunk_bytes == 0 && bytes / chunk_bytes == shape_.chunk_count) return {};
  const bool short_of = bytes / chunk_bytes < shape_.chunk_count;
  return make_error(
      ErrorKind::corrupt,
      "{}: {} bytes are {} than {} chunks of {} tokens with a vocabulary of {} take{}", name_,
      bytes_, short_of ? "fewer" : "more", shape_.chunk_count, shape_.context_tokens,
      shape_.vocabulary_size, short_of ? "; is it cut short?" : "");
}

uint64_t LogitsBaseReader::chunk_tokens_bytes() const {
  return uint64_t{shape_.context_tokens} * sizeof(text::TokenId);
}

Result<std::vector<text::TokenId>> LogitsBaseReader::tokens(uint32_t chunk) const {
  CHECK(chunk < shape_.chunk_count);
  std::vector<text::TokenId> tokens(shape_.context_tokens);
  const uint64_t offset = sizeof(LogitsBaseHeader) + chunk * chunk_tokens_bytes();
  if (Status done = read(offset, std::as_writable_bytes(std::span(tokens))); !done)
    return done.error();
  for (const text::TokenId token : tokens)
    if (token < 0 || static_cast<uint32_t>(token) >= shape_.vocabulary_size)
      return make_error(ErrorKind::corrupt, "{}: chunk {}: token {} of a vocabulary of {}", name_,
                        chunk, token, shape_.vocabulary_size);
  return tokens;
}

Result<BaseRow> LogitsBaseReader::row(uint32_t chunk, uint32_t index) {
  CHECK(chunk < shape_.chunk_count && index < shape_.scored_count());
  const uint64_t before = uint64_t{chunk} * shape_.scored_count() + index;
  const uint64_t offset = sizeof(LogitsBaseHeader) + shape_.chunk_count * chunk_tokens_bytes() +
                          before * logits_base_row_bytes(shape_.vocabulary_size);
  if (Status done = read(offset, std::as_writable_bytes(std::span(row_))); !done)
    return done.error();
  LogitsBaseRowHead head{};
  std::memcpy(&head, row_.data(), sizeof(head));
  const BaseRow row{
      .scale = head.scale,
      .lowest = head.lowest,
      .codes = std::span(row_).subspan(sizeof(head) / sizeof(uint16_t), shape_.vocabulary_size)};
  // A NaN fails both comparisons, and so does an endless scale.
  const bool possible = std::isfinite(row.lowest) && row.scale >= 0 &&
                        row.scale * std::ranges::max(row.codes) + row.lowest <= kLogProbabilityMax;
  if (possible) return row;
  return make_error(ErrorKind::corrupt,
                    "{}: chunk {}, position {}: log-probabilities from {} in steps of {} are not "
                    "possible",
                    name_, chunk, shape_.first_scored() + index, row.lowest, row.scale);
}

Status LogitsBaseReader::read(uint64_t offset, std::span<std::byte> buffer) const {
  if (file_ != nullptr) {
    const auto count = file_->read_at(offset, buffer.data(), buffer.size(), buffer.size());
    return count.ok() ? Status() : count.error();
  }
  std::ranges::copy(memory_.subspan(offset, buffer.size()), buffer.begin());
  return {};
}

}  // namespace sluice
