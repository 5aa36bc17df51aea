#include "experts/routing_trace_writer.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/half.h"

namespace sluice {
namespace {

/// Whether a name, given in error perhaps, is that of a file with other content.
bool is_someone_elses(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;
  const auto bytes = std::filesystem::file_size(path, failed);
  std::FILE* const file = failed || bytes == 0 ? nullptr : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  auto magic = kTraceMagic;
  const bool whole = std::fread(magic.data(), 1, magic.size(), file) == magic.size();
  std::fclose(file);
  return !whole || magic != kTraceMagic;
}

}  // namespace

Result<std::unique_ptr<RoutingTraceWriter>> RoutingTraceWriter::create(const std::string& path,
                                                                       TraceHeader header) {
  CHECK(header.layer_count() <= kTraceLayersMax && header.expert_count_max() <= kTraceExpertsMax);
  CHECK(header.used_count >= 1 && header.used_count <= kTraceUsedMax);
  CHECK(header.distance_max <= kTraceDistanceMax);
  if (is_someone_elses(path))
    return make_error(ErrorKind::usage,
                      "{} is no routing trace and stays as it is; give --moe-stream-trace "
                      "another name",
                      path);
  header.name.resize(std::min<size_t>(header.name.size(), kTraceNameBytesMax));
  std::unique_ptr<RoutingTraceWriter> writer(new RoutingTraceWriter(path, std::move(header)));
  if (!writer->status_.ok()) return writer->status_.error();
  writer->write_header();
  writer->flush();
  if (!writer->status_.ok()) return writer->status_.error();
  return writer;
}

RoutingTraceWriter::RoutingTraceWriter(std::string path, TraceHeader header)
    : path_(std::move(path)), header_(std::move(header)), buffer_(kBufferBytes) {
  file_ = std::fopen(path_.c_str(), "wb");
  if (file_ == nullptr)
    fail();
  else
    std::setvbuf(file_, nullptr, _IONBF, 0);  // the buffer is ours
}

RoutingTraceWriter::~RoutingTraceWriter() {
  (void)close();
}

void RoutingTraceWriter::write_header() {
  const TraceHeaderBytes head = {.magic = kTraceMagic,
                                 .version = kTraceVersion,
                                 .layer_count = header_.layer_count(),
                                 .used_count = header_.used_count,
                                 .distance_max = header_.distance_max,
                                 .flags = header_.has_scores ? kTraceFlagScores : 0,
                                 .name_bytes = static_cast<uint32_t>(header_.name.size()),
                                 .model_hash = header_.model_hash};
  put(&head, sizeof(head));
  put(header_.expert_counts.data(), header_.expert_counts.size() * sizeof(uint32_t));
  put(header_.name.data(), header_.name.size());
}

void RoutingTraceWriter::begin(StepKind kind, uint32_t token_count) {
  if (!recording()) return;
  CHECK(step_tokens_ == 0 && token_count >= 1 && token_count <= kTraceStepTokensMax);
  step_tokens_ = token_count;
  put_head(kind == StepKind::prompt ? TraceRecord::prompt : TraceRecord::decode, 0, 0, token_count);
}

void RoutingTraceWriter::routing(uint32_t layer, std::span<const int32_t> experts) {
  if (!recording()) return;
  CHECK(step_tokens_ > 0 && experts.size() == size_t{step_tokens_} * header_.used_count);
  put_head(TraceRecord::routing, layer, 0, 0);
  put_ids(experts);
}

void RoutingTraceWriter::predicted(uint32_t layer, uint32_t distance,
                                   std::span<const uint32_t> experts) {
  if (!recording()) return;
  CHECK(step_tokens_ > 0 && experts.size() % step_tokens_ == 0);
  CHECK(distance >= 1 && distance <= header_.distance_max);
  put_head(TraceRecord::predicted, layer, distance,
           static_cast<uint32_t>(experts.size() / step_tokens_));
  put_ids(experts);
}

void RoutingTraceWriter::scores(uint32_t layer, uint32_t distance, std::span<const float> scores) {
  if (!recording() || !header_.has_scores) return;
  CHECK(scores.size() == size_t{step_tokens_} * header_.expert_counts[layer]);
  CHECK(step_tokens_ > 0 && distance <= header_.distance_max);
  put_head(TraceRecord::scores, layer, distance, 0);
  put_halves(scores);
}

void RoutingTraceWriter::weights(uint32_t layer, std::span<const float> weights) {
  if (!recording() || !header_.has_scores) return;
  CHECK(step_tokens_ > 0 && weights.size() == size_t{step_tokens_} * header_.used_count);
  put_head(TraceRecord::weights, layer, 0, 0);
  put_halves(weights);
}

void RoutingTraceWriter::end() {
  if (!recording()) return;
  CHECK(step_tokens_ > 0);
  step_tokens_ = 0;
  put_head(TraceRecord::end, 0, 0, 0);
}

void RoutingTraceWriter::abandon() {
  step_tokens_ = 0;
}

void RoutingTraceWriter::put_head(TraceRecord record, uint32_t layer, uint32_t distance,
                                  uint32_t count) {
  const TraceRecordHead head = {.record = record,
                                .distance = static_cast<uint8_t>(distance),
                                .layer = static_cast<uint16_t>(layer),
                                .count = count};
  put(&head, sizeof(head));
}

template <typename Id>
void RoutingTraceWriter::put_ids(std::span<const Id> ids) {
  if (header_.id_bytes() == 1) {
    for (const Id id : ids) {
      const auto byte = static_cast<uint8_t>(id);
      put(&byte, sizeof(byte));
    }
    return;
  }
  for (const Id id : ids) {
    const auto word = static_cast<uint16_t>(id);
    put(&word, sizeof(word));
  }
}

void RoutingTraceWriter::put_halves(std::span<const float> values) {
  for (const float value : values) {
    const uint16_t half = f32_to_f16(value);
    put(&half, sizeof(half));
  }
}

void RoutingTraceWriter::put(const void* bytes, size_t count) {
  const auto* from = static_cast<const std::byte*>(bytes);
  while (count > 0) {
    if (filled_ == buffer_.size()) flush();
    if (!recording()) return;
    const size_t piece = std::min(count, buffer_.size() - filled_);
    std::memcpy(buffer_.data() + filled_, from, piece);
    filled_ += piece;
    from += piece;
    count -= piece;
  }
}

void RoutingTraceWriter::flush() {
  if (!recording()) return;
  if (std::fwrite(buffer_.data(), 1, filled_, file_) != filled_) fail();
  filled_ = 0;
}

Status RoutingTraceWriter::close() {
  flush();
  if (file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) != 0 && status_.ok()) fail();
  return status_;
}

void RoutingTraceWriter::fail() {
  status_ = make_error(ErrorKind::io, "{}: cannot write the trace: {}; it ends here", path_,
                       std::generic_category().message(errno));
}

Status RoutingTraceWriter::take_error() {
  if (status_.ok() || told_) return {};
  told_ = true;
  return status_;
}

}  // namespace sluice
