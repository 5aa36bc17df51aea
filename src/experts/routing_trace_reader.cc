#include "experts/routing_trace_reader.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

constexpr size_t kWindowBytes = 256 * 1024;

}  // namespace

Result<RoutingTraceReader> RoutingTraceReader::open(const std::string& path) {
  auto file = os::File::open(path, os::DirectMode::off);
  if (!file) return file.error();
  RoutingTraceReader reader;
  reader.name_ = path;
  reader.bytes_ = file->bytes();
  reader.file_ = std::make_unique<os::File>(std::move(*file));
  return parse_header(std::move(reader));
}

Result<RoutingTraceReader> RoutingTraceReader::open_raw(const std::string& path,
                                                        const RawTraceLayout& layout) {
  auto file = os::File::open(path, os::DirectMode::off);
  if (!file) return file.error();
  RoutingTraceReader reader;
  reader.name_ = path;
  reader.bytes_ = file->bytes();
  reader.file_ = std::make_unique<os::File>(std::move(*file));
  reader.raw_ = true;
  reader.header_.expert_counts.assign(std::min(layout.layer_count, kTraceLayersMax + 1),
                                      layout.expert_count);
  reader.header_.used_count = layout.used_count;
  if (Status fine = reader.check_header(); !fine) return fine.error();
  if (Status fine = reader.check_raw_layout(); !fine) return fine.error();
  return reader;
}

Result<RoutingTraceReader> RoutingTraceReader::parse(std::span<const std::byte> bytes,
                                                     std::string name) {
  RoutingTraceReader reader;
  reader.name_ = std::move(name);
  reader.bytes_ = bytes.size();
  reader.memory_ = bytes;
  return parse_header(std::move(reader));
}

Result<RoutingTraceReader> RoutingTraceReader::parse_header(RoutingTraceReader reader) {
  const auto head = reader.take(sizeof(TraceHeaderBytes));
  if (!head) return head.error();
  TraceHeaderBytes fixed{};
  if (!head->empty()) std::memcpy(&fixed, head->data(), sizeof(fixed));
  if (fixed.magic != kTraceMagic)
    return make_error(ErrorKind::corrupt,
                      "{}: not a routing trace; bare ids need --layers, --experts and --used",
                      reader.name_);
  if (fixed.version != kTraceVersion)
    return make_error(ErrorKind::unsupported, "{}: trace version {}; this program reads version {}",
                      reader.name_, fixed.version, kTraceVersion);
  if (fixed.layer_count > kTraceLayersMax || fixed.name_bytes > kTraceNameBytesMax)
    return reader.damaged("the header claims {} layers and a name of {} bytes", fixed.layer_count,
                          fixed.name_bytes);
  const size_t counts_bytes = fixed.layer_count * sizeof(uint32_t);
  const auto rest = reader.take(counts_bytes + fixed.name_bytes);
  if (!rest) return rest.error();
  if (rest->size() != counts_bytes + fixed.name_bytes)
    return reader.damaged("the header is cut short");
  TraceHeader& header = reader.header_;
  header.expert_counts.resize(fixed.layer_count);
  if (counts_bytes > 0) std::memcpy(header.expert_counts.data(), rest->data(), counts_bytes);
  header.name.assign(reinterpret_cast<const char*>(rest->data()) + counts_bytes, fixed.name_bytes);
  header.used_count = fixed.used_count;
  header.distance_max = fixed.distance_max;
  header.has_scores = (fixed.flags & kTraceFlagScores) != 0;
  header.model_hash = fixed.model_hash;
  if (Status fine = reader.check_header(); !fine) return fine.error();
  return reader;
}

Status RoutingTraceReader::check_header() const {
  const auto fits = [&](uint32_t count) {
    return count == 0 || (count >= header_.used_count && count <= kTraceExpertsMax);
  };
  if (header_.used_count == 0 || header_.used_count > kTraceUsedMax)
    return damaged("{} experts used a token; 1 to {} are possible", header_.used_count,
                   kTraceUsedMax);
  if (header_.layer_count() > kTraceLayersMax || header_.expert_count_max() == 0)
    return damaged("no layer has experts, or there are more than {} layers", kTraceLayersMax);
  if (!std::ranges::all_of(header_.expert_counts, fits))
    return damaged("a layer has {} experts; {} to {} are possible", header_.expert_count_max(),
                   header_.used_count, kTraceExpertsMax);
  if (header_.distance_max > kTraceDistanceMax)
    return damaged("predictions at distance {}; {} is the most", header_.distance_max,
                   kTraceDistanceMax);
  return {};
}

Status RoutingTraceReader::check_raw_layout() const {
  const uint64_t token_bytes =
      uint64_t{header_.layer_count()} * header_.used_count * header_.id_bytes();
  if (bytes_ == 0 || bytes_ % token_bytes != 0)
    return damaged(
        "{} bytes are not a whole number of tokens of {} bytes; check --layers and "
        "--used",
        bytes_, token_bytes);
  return {};
}

Result<bool> RoutingTraceReader::next(TraceStep& step) {
  step.routings.clear();
  step.predictions.clear();
  step.ids.clear();
  step.token_count = 0;
  step.score_records = 0;
  layer_seen_.assign(header_.layer_count(), 0);
  if (raw_) return next_raw(step);
  in_step_ = false;
  while (true) {
    const auto outcome = read_record(step);
    if (!outcome) return outcome.error();
    if (*outcome == Outcome::step) return true;
    if (*outcome == Outcome::record) continue;
    cut_short_ = in_step_ || position_ != bytes_;
    return false;
  }
}

Result<bool> RoutingTraceReader::next_raw(TraceStep& step) {
  step.kind = StepKind::decode;
  step.token_count = 1;
  for (uint32_t layer = 0; layer < header_.layer_count(); ++layer) {
    record_at_ = position_;
    const TraceRecordHead head = {TraceRecord::routing, 0, static_cast<uint16_t>(layer), 0};
    const auto outcome = read_ids(head, step);
    if (!outcome) return outcome.error();
    if (*outcome == Outcome::cut) return false;
  }
  return true;
}

Result<RoutingTraceReader::Outcome> RoutingTraceReader::read_record(TraceStep& step) {
  record_at_ = position_;
  const auto bytes = take(sizeof(TraceRecordHead));
  if (!bytes) return bytes.error();
  if (bytes->empty()) return Outcome::cut;
  TraceRecordHead head{};
  std::memcpy(&head, bytes->data(), sizeof(head));
  switch (head.record) {
    case TraceRecord::prompt:
    case TraceRecord::decode:
      // A step that was abandoned has no end; the next one begins all the same.
      if (head.count == 0 || head.count > kTraceStepTokensMax)
        return damaged("a step of {} tokens; 1 to {} are possible", head.count,
                       kTraceStepTokensMax);
      step.routings.clear();
      step.predictions.clear();
      step.ids.clear();
      step.score_records = 0;
      layer_seen_.assign(header_.layer_count(), 0);
      step.kind = head.record == TraceRecord::prompt ? StepKind::prompt : StepKind::decode;
      step.token_count = head.count;
      in_step_ = true;
      return Outcome::record;
    case TraceRecord::routing:
    case TraceRecord::predicted:
      if (Status fine = check_layer(head); !fine) return fine.error();
      return read_ids(head, step);
    case TraceRecord::scores:
    case TraceRecord::weights:
      if (Status fine = check_layer(head); !fine) return fine.error();
      return skip_scores(head, step);
    case TraceRecord::end:
      if (!in_step_) return damaged("a step ends that has not begun");
      return Outcome::step;
  }
  return damaged("unknown record {}", static_cast<int>(head.record));
}

Status RoutingTraceReader::check_layer(const TraceRecordHead& head) const {
  if (!in_step_) return damaged("a record outside of any step");
  if (head.layer >= header_.layer_count() || header_.expert_counts[head.layer] == 0)
    return damaged("layer {} has no experts", head.layer);
  const bool early = head.record == TraceRecord::predicted;
  const bool own = head.record == TraceRecord::routing || head.record == TraceRecord::weights;
  if (head.distance > header_.distance_max || (early && head.distance == 0) ||
      (own && head.distance != 0))
    return damaged("distance {}; the header allows {}", head.distance, header_.distance_max);
  return {};
}

Result<RoutingTraceReader::Outcome> RoutingTraceReader::read_ids(const TraceRecordHead& head,
                                                                 TraceStep& step) {
  const uint32_t expert_count = header_.expert_counts[head.layer];
  const bool own = head.record == TraceRecord::routing;
  const uint32_t width = own ? header_.used_count : head.count;
  if (width > expert_count) return damaged("{} of {} experts are named", width, expert_count);
  if (own && std::exchange(layer_seen_[head.layer], uint8_t{1}) != 0)
    return damaged("layer {} comes twice in a step", head.layer);
  const uint64_t count = uint64_t{step.token_count} * width;
  const auto bytes = take(count * header_.id_bytes());
  if (!bytes) return bytes.error();
  if (bytes->size() != count * header_.id_bytes()) return Outcome::cut;
  const size_t begin = step.ids.size();
  step.ids.resize(begin + count);
  for (size_t i = 0; i < count; ++i) {
    uint16_t id = 0;
    std::memcpy(&id, bytes->data() + i * header_.id_bytes(), header_.id_bytes());
    if (id >= expert_count)
      return damaged("layer {}: expert {} of {}", head.layer, id, expert_count);
    step.ids[begin + i] = id;
  }
  (own ? step.routings : step.predictions)
      .push_back({.layer = head.layer, .distance = head.distance, .width = width, .begin = begin});
  return Outcome::record;
}

Result<RoutingTraceReader::Outcome> RoutingTraceReader::skip_scores(const TraceRecordHead& head,
                                                                    TraceStep& step) {
  const uint32_t width =
      head.record == TraceRecord::scores ? header_.expert_counts[head.layer] : header_.used_count;
  const uint64_t bytes = uint64_t{step.token_count} * width * sizeof(uint16_t);
  if (bytes > bytes_ - position_) return Outcome::cut;
  position_ += bytes;
  ++step.score_records;
  return Outcome::record;
}

Result<std::span<const std::byte>> RoutingTraceReader::take(uint64_t count) {
  if (count > bytes_ - position_) return std::span<const std::byte>();
  const uint64_t from = std::exchange(position_, position_ + count);
  if (file_ == nullptr) return memory_.subspan(from, count);
  if (from < window_at_ || from + count > window_at_ + window_.size()) {
    window_.resize(std::min(std::max<uint64_t>(count, kWindowBytes), bytes_ - from));
    window_at_ = from;
    const auto read = file_->read_at(from, window_.data(), window_.size(), window_.size());
    if (!read) return read.error();
  }
  return std::span<const std::byte>(window_).subspan(from - window_at_, count);
}

}  // namespace sluice
