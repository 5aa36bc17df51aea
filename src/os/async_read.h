// Many reads at once: the seam between the engine and the operating system's way of reading
// asynchronously. Three things stand behind it: io_uring, a pool of threads that call pread, and
// (in tests) a fake drive with virtual time and seeded faults.
//
// A reader only carries requests: it does not retry, split or hold back; that is io/read_queue. One
// thread at a time may call it. Buffers belong to the caller and must live until their completion
// has been returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/file.h"

namespace sluice::os {

/// What a reader with a queue of its own takes first. io_uring has none: it ignores this.
enum class Urgency : uint8_t {
  demand,      ///< somebody waits for it
  background,  ///< started only while no demand waits to be started
};

struct ReadOp {
  uint32_t file;    ///< index into the files the reader was made with
  uint64_t offset;  ///< aligned to the file's alignment, as are `bytes` and `buffer`
  std::byte* buffer;
  uint32_t bytes;
  uint64_t tag;  ///< comes back with the completion
  Urgency urgency = Urgency::demand;
};

struct ReadCompletion {
  uint64_t tag;
  int64_t result;  ///< bytes read (may be short; 0 at the end of the file), or −errno
};

class AsyncReader {
 public:
  virtual ~AsyncReader() = default;  ///< waits for reads in flight, then releases everything

  /// "uring", "threads", "fake"
  virtual std::string_view name() const = 0;
  /// The most reads that may be in flight.
  virtual size_t depth_max() const = 0;
  /// Starts the reads, in this order (a reader that queues them: demand first). REQUIRES: in flight
  /// + ops.size() ≤ depth_max(). A read that cannot be started completes with −errno.
  virtual void submit(std::span<const ReadOp> ops) = 0;
  /// Moves finished reads to `done` (at most its size) and returns how many. With wait = true it
  /// blocks until there is at least one. REQUIRES: for wait, a read is in flight.
  virtual size_t poll(std::span<ReadCompletion> done, bool wait) = 0;
  /// The clock by which these reads take time: os::now_ns(), and a virtual one for a fake drive.
  virtual uint64_t now_ns() const;
};

enum class ReaderKind { auto_select, uring, threads };

struct ReaderOptions {
  ReaderKind kind = ReaderKind::auto_select;
  size_t depth_max = 64;
  size_t thread_count = 8;  ///< for the thread pool
};

/// Makes a reader for these files (which must outlive it). auto_select takes io_uring where it can
/// be set up and the thread pool elsewhere; `uring_refusal`, if given, receives the reason in
/// words. Asking for uring where it is refused is an error.
Result<std::unique_ptr<AsyncReader>> make_async_reader(std::span<const File* const> files,
                                                       const ReaderOptions& options,
                                                       std::string* uring_refusal);

}  // namespace sluice::os
