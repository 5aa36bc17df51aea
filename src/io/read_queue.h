// The read queue: turns requests for bytes into aligned reads that the operating system carries
// out, most urgent first, and tells each request's sink when its bytes are complete.
//
// Policy lives here, mechanism below (os/async_read): which read starts next, how many are in
// service, what happens to a short, interrupted or failed one.
//
// Who goes first. Demand, always. A demand read is one read, since splitting costs more in requests
// than it gains; a prefetch is cut into chunks, so that demand slips in between two. What the drive
// has accepted cannot be overtaken, so little of it may be a guess: a prefetch chunk starts only
// while fewer than `prefetch_in_service_max` are in service, or, beside a demand read, fewer than
// `prefetch_in_service_beside_demand_max`. A demand read thus finds at most the former ahead of it,
// and from then on at most the latter are added to. Load reads come last: in chunks, and none
// starts while a demand read is waiting or in service. Some of the reader's places are kept for
// demand alone. Within a class requests start in the order in which they were handed in.
//
// Guesses end early. A prefetch that proves right is promoted: what has not started joins the
// demand line and is read at once, as one read; what is on its way counts as demand from then on.
// One that proves wrong is cancelled: what has not started is dropped, and the request ends as soon
// as nothing of it is in flight. Only then is its buffer free.
//
// What goes wrong. A short read is continued from the last aligned position it reached; EINTR and
// EAGAIN are tried again; the end of the file inside wanted bytes is an error, missing padding
// behind them is not. A request ends exactly once.
//
// The queue has no thread of its own. Whoever computes calls pump() between two steps, which costs
// no system call when there is nothing to do, and wait() when it cannot go on. One thread at a
// time. A sink may call push(), promote() and cancel(). Nothing allocates after construction unless
// a read fails.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "io/io_stats.h"
#include "io/read_request.h"
#include "io/waiting_lines.h"
#include "os/async_read.h"

namespace sluice::io {

/// What the queue must know of each file, indexed by FileExtent::file.
struct FileFacts {
  std::string path;  ///< for messages
  uint32_t alignment = 4096;
};

struct ReadQueueOptions {
  size_t request_count_max = 4096;  ///< requests handed in and not ended
  /// Chunks are multiples of every file's alignment.
  uint32_t prefetch_chunk_bytes = 512u << 10;
  uint32_t load_chunk_bytes = 1u << 20;
  uint32_t demand_read_bytes_max = 1u << 30;  ///< the kernel's own limit is just below 2 GiB
  uint32_t prefetch_in_service_max = 4;       ///< chunks; at least 1
  uint32_t prefetch_in_service_beside_demand_max = 2;  ///< chunks; may be 0
  /// Consecutive reads of a piece without progress before giving up.
  int stuck_read_count_max = 64;
};

/// Names a request until it has ended; a stale one names nothing, as does a default one.
struct RequestHandle {
  uint32_t index = 0;
  uint32_t generation = 0;
};

class ReadQueue {
 public:
  /// The reader must outlive the queue.
  ReadQueue(os::AsyncReader& reader, std::vector<FileFacts> files, ReadQueueOptions options = {});
  /// Waits for reads in flight; requests that did not start are dropped without a call.
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  uint32_t alignment(uint32_t file) const { return files_[file].alignment; }
  /// The drive's clock: virtual under a fake drive.
  uint64_t now_ns() const { return reader_.now_ns(); }
  /// Requests handed in and not ended.
  size_t request_count() const { return live_.size() - free_requests_.size(); }
  bool has_room(size_t count = 1) const { return free_requests_.size() >= count; }

  /// Lets fewer prefetch chunks be in service than the options say, in all and beside a demand
  /// read, or again as many. REQUIRES: at least 1 in all.
  void limit_prefetch(uint32_t in_service_max, uint32_t beside_demand_max);

  /// Hands a request in; nothing starts before the next pump() or wait().
  /// REQUIRES: has_room(), wanted.bytes > 0.
  RequestHandle push(const ReadRequest& request);

  /// The guess was right: what has not started yet is read as demand. Nothing is read twice. False
  /// when the request has ended, was cancelled or is demand already.
  bool promote(RequestHandle handle);

  /// The guess was wrong: what has not started is dropped. The request ends as interrupted, within
  /// this call when none of it is in flight, else when that has landed. False when it has ended.
  bool cancel(RequestHandle handle);

  /// Whether a further prefetch would start at the next pump(): there is room, no demand waits, no
  /// prefetch waits, and fewer than the cap are in service. Only then is a guess worth a slot.
  bool wants_prefetch() const;

  /// Starts what may start and delivers what has finished. Never blocks.
  void pump();

  /// As pump(), but blocks until at least one request has ended. REQUIRES: request_count() > 0.
  void wait();

  /// wait() until nothing is left.
  void drain();

  /// Cancels every request of which something has not started; what is in flight goes on.
  void give_up_waiting();

  const IoStats& stats() const { return stats_; }

 private:
  /// A request that has been handed in and has not ended. It waits while pieces are to be started,
  /// and ends when it neither waits nor has a piece in flight.
  struct Live {
    ReadRequest request;  ///< its class becomes demand by promotion
    uint64_t window_offset = 0;
    uint64_t window_bytes = 0;
    uint64_t needed_bytes = 0;  ///< of the window, up to the last wanted byte
    uint64_t next_bytes = 0;    ///< of the window, handed out as pieces so far
    uint64_t read_bytes = 0;    ///< delivered for it
    uint32_t piece_count = 0;   ///< in flight
    uint32_t generation = 1;    ///< moves on when the request ends
    bool cancelled = false;
    std::optional<Error> error;
  };
  /// One read in flight: a part of a request's window.
  struct Piece {
    uint32_t live = 0;
    int stuck_count = 0;
    uint64_t begin = 0;  ///< in the window; moves up when a short read is continued
    uint64_t end = 0;
  };

  Live* find(RequestHandle handle);
  void start_reads();
  std::optional<uint32_t> next_to_start() const;
  bool may_start(ReadClass read_class) const;
  void start_piece(uint32_t live_index);
  uint32_t piece_bytes_max(ReadClass read_class) const;
  os::ReadOp make_op(const Live& live, const Piece& piece, uint32_t piece_index) const;
  void submit_ops();
  size_t deliver(bool block);
  void on_piece(uint32_t piece_index, int64_t result);
  bool continue_piece(uint32_t piece_index, int64_t result);
  void fail(uint32_t live_index, Error error);
  void end_request(uint32_t live_index);
  void count_end(const Live& live);

  size_t in_flight_count() const { return pieces_.size() - free_pieces_.size(); }
  uint32_t& in_service(ReadClass read_class) {
    return in_service_[static_cast<size_t>(read_class)];
  }
  uint32_t in_service(ReadClass read_class) const {
    return in_service_[static_cast<size_t>(read_class)];
  }

  os::AsyncReader& reader_;
  const std::vector<FileFacts> files_;
  const ReadQueueOptions options_;
  uint32_t prefetch_in_service_max_;
  uint32_t prefetch_beside_demand_max_;
  const Error cancelled_;  ///< made once, so that cancelling does not allocate

  std::vector<Live> live_;
  std::vector<uint32_t> free_requests_;
  WaitingLines waiting_;  ///< requests with pieces still to start

  std::vector<Piece> pieces_;  ///< one for each read the reader can have in flight
  std::vector<uint32_t> free_pieces_;
  std::array<uint32_t, kReadClassCount> in_service_{};  ///< pieces in flight, by request's class
  std::vector<os::ReadOp> ops_;                         ///< to submit, collected by one pump
  std::vector<os::ReadCompletion> done_;
  uint64_t busy_since_ns_ = 0;  ///< up to when busy_ns is counted; while reads are in flight
  size_t ended_count_ = 0;
  IoStats stats_;
};

}  // namespace sluice::io
