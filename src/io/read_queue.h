// The read queue: turns requests for bytes into aligned reads that the operating system carries
// out, most urgent first, and tells each request's sink when its bytes are complete.
//
// Policy lives here, mechanism below (os/async_read): which read starts next, how many are in
// service, what happens to a short, interrupted or failed one. A demand read is one read, since
// splitting costs more in requests than it gains; load reads are cut into chunks so that a drive
// with a deep queue is kept busy. A short read is continued from the last aligned position it
// reached; EINTR and EAGAIN are tried again; the end of the file inside wanted bytes is an error,
// missing padding behind them is not. A request completes exactly once.
//
// The queue has no thread of its own. Whoever computes calls pump() between two steps, which costs
// no system call when there is nothing to do, and wait() when it cannot go on. One thread at a
// time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fixed_ring.h"
#include "io/io_stats.h"
#include "io/read_request.h"
#include "os/async_read.h"

namespace sluice::io {

/// What the queue must know of each file, indexed by FileExtent::file.
struct FileFacts {
  std::string path;  ///< for messages
  uint32_t alignment = 4096;
};

struct ReadQueueOptions {
  size_t request_count_max = 4096;  ///< requests handed in and not ended
  uint32_t load_chunk_bytes = 1u << 20;
  uint32_t demand_read_bytes_max = 1u << 30;  ///< the kernel's own limit is just below 2 GiB
  int stuck_read_count_max =
      64;  ///< consecutive reads of a piece without progress before giving up
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
  size_t request_count() const { return live_count_; }
  bool has_room(size_t count = 1) const { return free_requests_.size() >= count; }

  /// Hands a request in; nothing starts before the next pump() or wait().
  /// REQUIRES: has_room(), wanted.bytes > 0.
  void push(const ReadRequest& request);

  /// Starts what may start and delivers what has finished. Never blocks.
  void pump();

  /// As pump(), but blocks until at least one request has ended. REQUIRES: request_count() > 0.
  void wait();

  /// wait() until nothing is left.
  void drain();

  /// Gives up what has not started: those requests end as interrupted, what is in flight goes on.
  void give_up_waiting();

  const IoStats& stats() const { return stats_; }

 private:
  /// A request that has been handed in and has not ended.
  struct Live {
    ReadRequest request;
    uint64_t window_offset = 0;
    uint64_t window_bytes = 0;
    uint64_t needed_bytes = 0;  ///< of the window, up to the last wanted byte
    uint64_t next_bytes = 0;    ///< of the window, handed out as pieces so far
    uint32_t piece_count = 0;   ///< in flight
    std::optional<Error> error;
  };
  /// One read in flight: a part of a request's window.
  struct Piece {
    uint32_t live = 0;
    int stuck_count = 0;
    uint64_t begin = 0;  ///< in the window; moves up when a short read is continued
    uint64_t end = 0;
  };

  void start_reads();
  void submit_next(Live& live, uint32_t live_index);
  os::ReadOp make_op(const Live& live, const Piece& piece, uint32_t piece_index) const;
  size_t deliver(bool block);
  void on_piece(uint32_t piece_index, int64_t result);
  bool continue_piece(Live& live, Piece& piece, uint32_t piece_index, int64_t result);
  void end_request(uint32_t live_index);
  void fail(Live& live, Error error);

  os::AsyncReader& reader_;
  const std::vector<FileFacts> files_;
  const ReadQueueOptions options_;

  std::vector<Live> live_;
  std::vector<uint32_t> free_requests_;
  size_t live_count_ = 0;
  /// Requests with pieces still to start, first come first served within a class.
  std::array<FixedRing<uint32_t>, kReadClassCount> waiting_;

  std::vector<Piece> pieces_;  ///< one per read the reader can have in flight
  std::vector<uint32_t> free_pieces_;
  std::vector<os::ReadOp> ops_;  ///< to submit, collected by one pump
  std::vector<os::ReadCompletion> done_;
  size_t ended_count_ = 0;
  IoStats stats_;
};

}  // namespace sluice::io
