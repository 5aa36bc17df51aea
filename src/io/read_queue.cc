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
      "{}: the file ends inside a weight, at byte {} or before; it was cut short while in use: put "
      "the whole file back, and start again",
      path, end);
}

}  // namespace

ReadQueue::ReadQueue(os::AsyncReader& reader, std::vector<FileFacts> files,
                     ReadQueueOptions options)
    : reader_(reader),
      files_(std::move(files)),
      options_(options),
      prefetch_in_service_max_(options.prefetch_in_service_max),
      prefetch_beside_demand_max_(options.prefetch_in_service_beside_demand_max),
      cancelled_(make_error(ErrorKind::interrupted, "given up before it was read")),
      live_(options.request_count_max),
      waiting_(live_.size()),
      pieces_(reader.depth_max()),
      done_(reader.depth_max()) {
  CHECK(options_.prefetch_in_service_max >= 1);
  for (const FileFacts& file : files_) {
    CHECK(options_.prefetch_chunk_bytes % file.alignment == 0);
    CHECK(options_.load_chunk_bytes % file.alignment == 0);
    CHECK(options_.demand_read_bytes_max % file.alignment == 0);
  }
  for (uint32_t i = 0; i < live_.size(); ++i) free_requests_.push_back(i);
  for (uint32_t i = 0; i < pieces_.size(); ++i) free_pieces_.push_back(i);
  ops_.reserve(pieces_.size());
}

ReadQueue::~ReadQueue() {
  while (in_flight_count() > 0) {
    const size_t count = reader_.poll(done_, true);
    for (size_t i = 0; i < count; ++i) free_pieces_.push_back(static_cast<uint32_t>(done_[i].tag));
  }
}

void ReadQueue::limit_prefetch(uint32_t in_service_max, uint32_t beside_demand_max) {
  CHECK(in_service_max >= 1);
  prefetch_in_service_max_ = std::min(in_service_max, options_.prefetch_in_service_max);
  prefetch_beside_demand_max_ =
      std::min(beside_demand_max, options_.prefetch_in_service_beside_demand_max);
}

RequestHandle ReadQueue::push(const ReadRequest& request) {
  CHECK(has_room());
  CHECK(request.wanted.bytes > 0);
  const uint32_t index = free_requests_.back();
  free_requests_.pop_back();
  const auto window = window_of(request.wanted, alignment(request.wanted.file));
  const uint32_t generation = live_[index].generation;
  live_[index] = {.request = request,
                  .window_offset = window.offset,
                  .window_bytes = window.bytes,
                  .needed_bytes = window.head + request.wanted.bytes,
                  .generation = generation,
                  .error = std::nullopt};
  waiting_.push_back(request.read_class, index);
  ++stats_.of(request.read_class).started_count;
  return {index, generation};
}

/// The request of this name, if it has not ended.
ReadQueue::Live* ReadQueue::find(RequestHandle handle) {
  if (handle.index >= live_.size()) return nullptr;
  Live& live = live_[handle.index];
  return live.generation == handle.generation ? &live : nullptr;
}

bool ReadQueue::promote(RequestHandle handle) {
  Live* const live = find(handle);
  if (live == nullptr || live->cancelled) return false;
  const ReadClass guessed = live->request.read_class;
  if (guessed == ReadClass::demand) return false;
  live->request.read_class = ReadClass::demand;
  in_service(guessed) -= live->piece_count;
  in_service(ReadClass::demand) += live->piece_count;
  ++stats_.of(guessed).promoted_count;
  if (waiting_.waits(handle.index)) {
    waiting_.remove(handle.index);
    waiting_.push_back(ReadClass::demand, handle.index);
  }
  return true;
}

bool ReadQueue::cancel(RequestHandle handle) {
  Live* const live = find(handle);
  if (live == nullptr) return false;
  live->cancelled = true;
  waiting_.remove(handle.index);
  if (live->piece_count == 0) end_request(handle.index);
  return true;
}

void ReadQueue::give_up_waiting() {
  // All are marked before the first one ends: what a sink then hands in is not meant.
  for (uint32_t i = 0; i < live_.size(); ++i) live_[i].cancelled |= waiting_.waits(i);
  for (uint32_t i = 0; i < live_.size(); ++i)
    if (live_[i].cancelled && waiting_.waits(i)) cancel({i, live_[i].generation});
}

bool ReadQueue::wants_prefetch() const {
  return has_room() && waiting_.is_empty(ReadClass::demand) &&
         waiting_.is_empty(ReadClass::prefetch) && may_start(ReadClass::prefetch);
}

void ReadQueue::pump() {
  start_reads();
  if (in_flight_count() == 0) return;
  // Whatever finished makes room for more, which is started before we go back to computing.
  while (deliver(false) > 0) start_reads();
}

void ReadQueue::wait() {
  CHECK(request_count() > 0);
  const size_t ended_before = ended_count_;
  start_reads();
  while (ended_count_ == ended_before) {
    deliver(true);
    start_reads();
  }
}

void ReadQueue::drain() {
  while (request_count() > 0) wait();
}

void ReadQueue::start_reads() {
  while (const std::optional<uint32_t> index = next_to_start()) start_piece(*index);
  submit_ops();
}

/// Whose turn it is. Nobody overtakes a request of a more urgent class, even if that cannot start.
std::optional<uint32_t> ReadQueue::next_to_start() const {
  for (const ReadClass read_class : kReadClasses) {
    if (waiting_.is_empty(read_class)) continue;
    if (!may_start(read_class)) return std::nullopt;
    return waiting_.front(read_class);
  }
  return std::nullopt;
}

bool ReadQueue::may_start(ReadClass read_class) const {
  // Half of the places are for demand alone; of a single one that would be all.
  const bool has_place = free_pieces_.size() > pieces_.size() / 2;
  const bool beside_demand = in_service(ReadClass::demand) > 0;
  const uint32_t prefetch_max =
      beside_demand ? prefetch_beside_demand_max_ : prefetch_in_service_max_;
  switch (read_class) {
    case ReadClass::demand:
      return !free_pieces_.empty();
    case ReadClass::prefetch:
      return has_place && in_service(ReadClass::prefetch) < prefetch_max;
    case ReadClass::load:
      return has_place && !beside_demand;
  }
  return false;
}

uint32_t ReadQueue::piece_bytes_max(ReadClass read_class) const {
  switch (read_class) {
    case ReadClass::demand:
      return options_.demand_read_bytes_max;
    case ReadClass::prefetch:
      return options_.prefetch_chunk_bytes;
    case ReadClass::load:
      return options_.load_chunk_bytes;
  }
  return 0;
}

void ReadQueue::start_piece(uint32_t live_index) {
  Live& live = live_[live_index];
  const uint32_t piece_index = free_pieces_.back();
  free_pieces_.pop_back();
  const uint64_t end = live.next_bytes + piece_bytes_max(live.request.read_class);
  Piece& piece = pieces_[piece_index];
  piece = {.live = live_index,
           .stuck_count = 0,
           .begin = live.next_bytes,
           .end = std::min(end, live.window_bytes)};
  live.next_bytes = piece.end;
  ++live.piece_count;
  ++in_service(live.request.read_class);
  if (live.next_bytes == live.window_bytes) waiting_.remove(live_index);
  ops_.push_back(make_op(live, piece, piece_index));
}

os::ReadOp ReadQueue::make_op(const Live& live, const Piece& piece, uint32_t piece_index) const {
  const bool is_demand = live.request.read_class == ReadClass::demand;
  return {.file = live.request.wanted.file,
          .offset = live.window_offset + piece.begin,
          .buffer = live.request.buffer + piece.begin,
          .bytes = static_cast<uint32_t>(piece.end - piece.begin),
          .tag = piece_index,
          .urgency = is_demand ? os::Urgency::demand : os::Urgency::background};
}

void ReadQueue::submit_ops() {
  if (ops_.empty()) return;
  if (ops_.size() == in_flight_count()) busy_since_ns_ = reader_.now_ns();  // after a pause
  reader_.submit(ops_);
  ops_.clear();
}

size_t ReadQueue::deliver(bool block) {
  const size_t count = reader_.poll(done_, block);
  const uint64_t now_ns = reader_.now_ns();
  stats_.busy_ns += now_ns - busy_since_ns_;
  busy_since_ns_ = now_ns;
  for (size_t i = 0; i < count; ++i) on_piece(static_cast<uint32_t>(done_[i].tag), done_[i].result);
  submit_ops();
  return count;
}

void ReadQueue::on_piece(uint32_t piece_index, int64_t result) {
  const uint32_t live_index = pieces_[piece_index].live;
  Live& live = live_[live_index];
  const auto read_bytes = static_cast<uint64_t>(std::max<int64_t>(result, 0));
  live.read_bytes += read_bytes;
  stats_.read_bytes += read_bytes;
  // Of a request that has failed or was cancelled nothing is wanted any more.
  const bool is_wanted = !live.cancelled && !live.error;
  if (is_wanted && continue_piece(piece_index, result)) return;
  free_pieces_.push_back(piece_index);
  --live.piece_count;
  --in_service(live.request.read_class);
  if (live.piece_count == 0 && !waiting_.waits(live_index)) end_request(live_index);
}

/// Goes on with a piece that is not complete. False when it is, or when its request has failed.
bool ReadQueue::continue_piece(uint32_t piece_index, int64_t result) {
  Piece& piece = pieces_[piece_index];
  const Live& live = live_[piece.live];
  const std::string& path = files_[live.request.wanted.file].path;
  const uint64_t offset = live.window_offset + piece.begin;
  const uint64_t needed_end = std::min(piece.end, live.needed_bytes);
  uint64_t reached = piece.begin;  // where to go on, an aligned position of the window
  if (result == -EINTR || result == -EAGAIN) {
    ++stats_.retried_count;
  } else if (result < 0) {
    fail(piece.live, make_error(ErrorKind::io, "{}: reading {} bytes at {}: {}", path,
                                piece.end - piece.begin, offset, errno_text(-result)));
    return false;
  } else {
    const uint64_t end = piece.begin + static_cast<uint64_t>(result);
    if (end >= needed_end) return false;  // complete, whatever is missing behind
    if (result == 0) {
      fail(piece.live, cut_short(path, offset));
      return false;
    }
    ++stats_.resumed_count;
    reached = round_down(end, files_[live.request.wanted.file].alignment);
  }
  piece.stuck_count = reached > piece.begin ? 0 : piece.stuck_count + 1;
  if (piece.stuck_count > options_.stuck_read_count_max) {
    // Bytes that end within a sector, again and again: so does the file.
    fail(piece.live, result > 0
                         ? cut_short(path, offset + static_cast<uint64_t>(result))
                         : make_error(ErrorKind::io, "{}: reading at {} makes no progress: {}",
                                      path, offset, errno_text(-result)));
    return false;
  }
  piece.begin = reached;
  ops_.push_back(make_op(live, piece, piece_index));
  return true;
}

/// Nothing more of the request is started; it ends when none of it is in flight.
void ReadQueue::fail(uint32_t live_index, Error error) {
  live_[live_index].error = std::move(error);
  waiting_.remove(live_index);
}

void ReadQueue::end_request(uint32_t live_index) {
  Live& live = live_[live_index];
  count_end(live);
  const ReadRequest request = live.request;
  const bool cancelled = live.cancelled;
  const std::optional<Error> error = std::move(live.error);
  if (++live.generation == 0) live.generation = 1;  // 0 is for names of nothing
  free_requests_.push_back(live_index);
  ++ended_count_;
  // Last, since the sink may hand in a request that takes this one's place.
  const Error* const reason = cancelled ? &cancelled_ : error ? &*error : nullptr;
  request.sink.on_complete(request.sink.context, request.tag, reason);
}

void ReadQueue::count_end(const Live& live) {
  ClassStats& stats = stats_.of(live.request.read_class);
  if (live.cancelled) {
    ++stats.cancelled_count;
    stats_.cancelled_bytes += live.read_bytes;
  } else if (live.error) {
    ++stats.failed_count;
  } else {
    ++stats.finished_count;
    stats.wanted_bytes += live.request.wanted.bytes;
    stats.window_bytes += live.window_bytes;
  }
}

}  // namespace sluice::io
