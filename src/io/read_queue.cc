#include "io/read_queue.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "io/window.h"

namespace sluice::io {
namespace {

std::string errno_text(int64_t number) {
  return std::generic_category().message(static_cast<int>(number));
}

Error cut_short(const std::string& path, uint64_t end) {
  return make_error(
      ErrorKind::io,
      "{}: the file ends inside a weight, at byte {} or before; it was cut short while in use",
      path, end);
}

}  // namespace

ReadQueue::ReadQueue(os::AsyncReader& reader, std::vector<FileFacts> files,
                     ReadQueueOptions options)
    : reader_(reader),
      files_(std::move(files)),
      options_(options),
      live_(options.request_count_max),
      waiting_{FixedRing<uint32_t>(live_.size()), FixedRing<uint32_t>(live_.size()),
               FixedRing<uint32_t>(live_.size())},
      pieces_(reader.depth_max()),
      done_(reader.depth_max()) {
  for (uint32_t i = 0; i < live_.size(); ++i) free_requests_.push_back(i);
  for (uint32_t i = 0; i < pieces_.size(); ++i) free_pieces_.push_back(i);
  ops_.reserve(pieces_.size());
}

ReadQueue::~ReadQueue() {
  for (auto& queue : waiting_) queue.clear();
  while (free_pieces_.size() < pieces_.size()) {
    const size_t count = reader_.poll(done_, true);
    for (size_t i = 0; i < count; ++i) free_pieces_.push_back(static_cast<uint32_t>(done_[i].tag));
  }
}

void ReadQueue::push(const ReadRequest& request) {
  CHECK(has_room());
  CHECK(request.wanted.bytes > 0);
  const uint32_t index = free_requests_.back();
  free_requests_.pop_back();
  const auto window = window_of(request.wanted, alignment(request.wanted.file));
  live_[index] = {.request = request,
                  .window_offset = window.offset,
                  .window_bytes = window.bytes,
                  .needed_bytes = window.head + request.wanted.bytes,
                  .error = std::nullopt};
  waiting_[static_cast<size_t>(request.read_class)].push_back(index);
  ++live_count_;
  ++stats_.of(request.read_class).started_count;
}

void ReadQueue::pump() {
  start_reads();
  if (free_pieces_.size() == pieces_.size()) return;
  // Whatever finished makes room for more, which is started before we go back to computing.
  while (deliver(false) > 0) start_reads();
}

void ReadQueue::wait() {
  CHECK(live_count_ > 0);
  const size_t ended_before = ended_count_;
  start_reads();
  while (ended_count_ == ended_before) {
    deliver(true);
    start_reads();
  }
}

void ReadQueue::drain() {
  while (live_count_ > 0) wait();
}

void ReadQueue::give_up_waiting() {
  for (const auto& queue : waiting_)
    for (size_t i = 0; i < queue.size(); ++i)
      fail(live_[queue[i]], make_error(ErrorKind::interrupted, "given up before it was read"));
  // Whoever waits for a free piece stands in the queue; those with an error need none.
  start_reads();
}

void ReadQueue::start_reads() {
  for (auto& queue : waiting_) {
    while (!queue.empty() && !free_pieces_.empty()) {
      const uint32_t index = queue.front();
      Live& live = live_[index];
      if (!live.error) submit_next(live, index);
      if (!live.error && live.next_bytes < live.window_bytes) continue;
      queue.pop_front();
      if (live.piece_count == 0) end_request(index);
    }
  }
  if (ops_.empty()) return;
  reader_.submit(ops_);
  ops_.clear();
}

void ReadQueue::submit_next(Live& live, uint32_t live_index) {
  const uint32_t piece_index = free_pieces_.back();
  free_pieces_.pop_back();
  const bool whole = live.request.read_class == ReadClass::demand;
  const uint64_t limit = whole ? options_.demand_read_bytes_max : options_.load_chunk_bytes;
  Piece& piece = pieces_[piece_index];
  piece = {.live = live_index,
           .stuck_count = 0,
           .begin = live.next_bytes,
           .end = std::min(live.next_bytes + limit, live.window_bytes)};
  live.next_bytes = piece.end;
  ++live.piece_count;
  ops_.push_back(make_op(live, piece, piece_index));
}

os::ReadOp ReadQueue::make_op(const Live& live, const Piece& piece, uint32_t piece_index) const {
  return {.file = live.request.wanted.file,
          .offset = live.window_offset + piece.begin,
          .buffer = live.request.buffer + piece.begin,
          .bytes = static_cast<uint32_t>(piece.end - piece.begin),
          .tag = piece_index};
}

size_t ReadQueue::deliver(bool block) {
  const size_t count = reader_.poll(done_, block);
  for (size_t i = 0; i < count; ++i) on_piece(static_cast<uint32_t>(done_[i].tag), done_[i].result);
  if (!ops_.empty()) {
    reader_.submit(ops_);
    ops_.clear();
  }
  return count;
}

void ReadQueue::on_piece(uint32_t piece_index, int64_t result) {
  Piece& piece = pieces_[piece_index];
  const uint32_t live_index = piece.live;
  Live& live = live_[live_index];
  if (continue_piece(live, piece, piece_index, result)) return;
  free_pieces_.push_back(piece_index);
  --live.piece_count;
  const bool all_started = live.next_bytes >= live.window_bytes || live.error;
  // A failed request that still waits for its turn is ended by start_reads, which owns the queue.
  const auto& queue = waiting_[static_cast<size_t>(live.request.read_class)];
  const bool queued = !queue.empty() && queue.front() == live_index;
  if (live.piece_count == 0 && all_started && !queued) end_request(live_index);
}

bool ReadQueue::continue_piece(Live& live, Piece& piece, uint32_t piece_index, int64_t result) {
  const std::string& path = files_[live.request.wanted.file].path;
  const uint64_t offset = live.window_offset + piece.begin;
  const uint64_t needed_end = std::min(piece.end, live.needed_bytes);
  uint64_t reached = piece.begin;  // where to go on, an aligned position of the window
  if (result == -EINTR || result == -EAGAIN) {
    ++stats_.retried_count;
  } else if (result < 0) {
    fail(live, make_error(ErrorKind::io, "{}: reading {} bytes at {}: {}", path,
                          piece.end - piece.begin, offset, errno_text(-result)));
    return false;
  } else {
    const uint64_t end = piece.begin + static_cast<uint64_t>(result);
    if (end >= needed_end) return false;  // complete, whatever is missing behind
    if (result == 0) {
      fail(live, cut_short(path, offset));
      return false;
    }
    ++stats_.resumed_count;
    reached = round_down(end, files_[live.request.wanted.file].alignment);
  }
  piece.stuck_count = reached > piece.begin ? 0 : piece.stuck_count + 1;
  if (piece.stuck_count > options_.stuck_read_count_max) {
    // Bytes that end within a sector, again and again: so does the file.
    fail(live, result > 0 ? cut_short(path, offset + static_cast<uint64_t>(result))
                          : make_error(ErrorKind::io, "{}: reading at {} makes no progress: {}",
                                       path, offset, errno_text(-result)));
    return false;
  }
  piece.begin = reached;
  ops_.push_back(make_op(live, piece, piece_index));
  return true;
}

void ReadQueue::fail(Live& live, Error error) {
  if (!live.error) live.error = std::move(error);
}

void ReadQueue::end_request(uint32_t live_index) {
  Live& live = live_[live_index];
  const ReadRequest request = live.request;
  const std::optional<Error> error = std::move(live.error);
  ClassStats& stats = stats_.of(request.read_class);
  if (error) {
    ++stats.failed_count;
  } else {
    ++stats.finished_count;
    stats.wanted_bytes += request.wanted.bytes;
    stats.window_bytes += live.window_bytes;
  }
  free_requests_.push_back(live_index);
  --live_count_;
  ++ended_count_;
  request.sink.on_complete(request.sink.context, request.tag, error ? &*error : nullptr);
}

}  // namespace sluice::io
