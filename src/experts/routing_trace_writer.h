// Writes a record of routing (experts/routing_trace) while a model runs. Records are gathered in a
// buffer that is allocated once and written out a block at a time, so a call costs a copy of some
// bytes and, every hundred tokens or so, a write to the page cache. The first write that fails ends
// the recording and never the run: status() tells, and every later call does nothing.
//
//   begin(decode, 1) { routing(layer, ids) predicted(later layer, distance, ids) }… end()
//
// One thread at a time: the one that runs the forward pass.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "experts/routing_trace.h"

namespace sluice {

class RoutingTraceWriter {
 public:
  /// Makes the file, or empties it; one that does not begin as a trace does is refused and stays as
  /// it is. REQUIRES: a header within the limits of the format.
  static Result<std::unique_ptr<RoutingTraceWriter>> create(const std::string& path,
                                                            TraceHeader header);
  /// Writes what is left. A step that has not ended is lost.
  ~RoutingTraceWriter();
  RoutingTraceWriter(const RoutingTraceWriter&) = delete;
  RoutingTraceWriter& operator=(const RoutingTraceWriter&) = delete;

  const TraceHeader& header() const { return header_; }

  /// A step begins. REQUIRES: none is open; at least one token.
  void begin(StepKind kind, uint32_t token_count);
  /// What a layer's router chose, [token][used], the strongest first.
  void routing(uint32_t layer, std::span<const int32_t> experts);
  /// What was expected of a layer `distance` layers before it, [token][width], the likeliest first.
  void predicted(uint32_t layer, uint32_t distance, std::span<const uint32_t> experts);
  /// What a layer's router said, [token][expert]: its own turn (distance 0), or asked early.
  /// Nothing is written unless the header has scores.
  void scores(uint32_t layer, uint32_t distance, std::span<const float> scores);
  /// The weights of a layer's routing, [token][used]. Only with scores.
  void weights(uint32_t layer, std::span<const float> weights);
  /// The step is complete. REQUIRES: one is open.
  void end();
  /// The step failed half way: it is left without an end, and readers skip it.
  void abandon();

  /// Writes out what is in the buffer, as before a pause. Also what close() begins with.
  void flush();
  /// Writes everything and closes the file; nothing can be recorded afterwards.
  Status close();
  /// The first failure, if any.
  const Status& status() const { return status_; }
  /// The same once, to be told to the user: later calls give success.
  Status take_error();

 private:
  static constexpr size_t kBufferBytes = 256 * 1024;

  RoutingTraceWriter(std::string path, TraceHeader header);
  void write_header();
  bool recording() const { return file_ != nullptr && status_.ok(); }
  void put(const void* bytes, size_t count);
  void put_head(TraceRecord record, uint32_t layer, uint32_t distance, uint32_t count);
  template <typename Id>
  void put_ids(std::span<const Id> ids);
  void put_halves(std::span<const float> values);
  void fail();

  const std::string path_;
  const TraceHeader header_;
  std::FILE* file_ = nullptr;
  std::vector<std::byte> buffer_;
  size_t filled_ = 0;
  uint32_t step_tokens_ = 0;  ///< 0: no step is open
  bool told_ = false;
  Status status_;
};

}  // namespace sluice
