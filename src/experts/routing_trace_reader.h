// Reads a record of routing (experts/routing_trace), a step at a time, from bytes that nobody has
// vouched for. Memory is that of one step, and never more than the file's bytes account for. A file
// that ends within a step is a run that was interrupted: the steps before are given, and
// is_cut_short() says so. Anything else that does not fit is an error that names the file and the
// place.
//
// Recordings of other programs, bare ids without a header ("raw"), are read too: the caller tells
// their layout, and every token is a decode step. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "experts/routing_trace.h"
#include "os/file.h"

namespace sluice {

/// One step, as recorded. The vectors are reused from step to step.
struct TraceStep {
  /// The ids of one record lie in `ids` from `begin` on, [token][width].
  struct Ids {
    uint32_t layer = 0;
    uint32_t distance = 0;  ///< 0: the routing itself
    uint32_t width = 0;
    size_t begin = 0;
  };
  StepKind kind = StepKind::decode;
  uint32_t token_count = 0;
  std::vector<Ids> routings;     ///< in the order of the file, at most one a layer
  std::vector<Ids> predictions;  ///< in the order of the file
  std::vector<uint16_t> ids;
  uint32_t score_records = 0;  ///< skipped, for those who count

  std::span<const uint16_t> ids_of(const Ids& record) const {
    return std::span(ids).subspan(record.begin, size_t{token_count} * record.width);
  }
};

/// The layout of bare ids, one byte each (two where a layer has more than 256 experts):
/// [token][layer][used].
struct RawTraceLayout {
  uint32_t layer_count = 0;
  uint32_t expert_count = 0;
  uint32_t used_count = 0;
};

class RoutingTraceReader {
 public:
  static Result<RoutingTraceReader> open(const std::string& path);
  static Result<RoutingTraceReader> open_raw(const std::string& path, const RawTraceLayout& layout);
  /// From memory, which must outlive the reader. `name` is for messages.
  static Result<RoutingTraceReader> parse(std::span<const std::byte> bytes, std::string name);

  const TraceHeader& header() const { return header_; }
  /// Reads the next step; false at the end.
  Result<bool> next(TraceStep& step);
  /// Whether the file ends within a step. Known once next() has given false.
  bool is_cut_short() const { return cut_short_; }
  uint64_t file_bytes() const { return bytes_; }

 private:
  enum class Outcome { record, step, cut };

  RoutingTraceReader() = default;
  static Result<RoutingTraceReader> parse_header(RoutingTraceReader reader);
  Status check_header() const;
  Status check_raw_layout() const;
  Result<bool> next_raw(TraceStep& step);
  Result<Outcome> read_record(TraceStep& step);
  Result<Outcome> read_ids(const TraceRecordHead& head, TraceStep& step);
  Result<Outcome> skip_scores(const TraceRecordHead& head, TraceStep& step);
  Status check_layer(const TraceRecordHead& head) const;

  /// The next bytes, valid until the next call; empty when the file does not hold so many.
  Result<std::span<const std::byte>> take(uint64_t count);
  template <typename... Args>
  Error damaged(fmt::format_string<Args...> what, Args&&... args) const {
    return make_error(ErrorKind::corrupt, "{}: at byte {}: {}", name_, record_at_,
                      fmt::format(what, std::forward<Args>(args)...));
  }

  std::string name_;
  std::unique_ptr<os::File> file_;     ///< null: bytes in memory
  std::span<const std::byte> memory_;  ///< where there is no file
  std::vector<std::byte> window_;      ///< of the file
  uint64_t window_at_ = 0;             ///< where it begins
  uint64_t position_ = 0;
  uint64_t bytes_ = 0;
  uint64_t record_at_ = 0;  ///< where the record being read begins
  TraceHeader header_;
  std::vector<uint8_t> layer_seen_;  ///< [layer], in the present step
  bool raw_ = false;
  bool in_step_ = false;
  bool cut_short_ = false;
};

}  // namespace sluice
