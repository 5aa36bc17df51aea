// Reads by a pool of threads, each in one pread at a time: the way where io_uring cannot be had.
// As many reads are in service as there are threads; the others wait in a queue.
//
// One mutex guards the queue and the list of finished reads. That is cheap enough: a read of half a
// megabyte takes a hundred times longer than passing it on. A look for finished reads that finds
// none takes no lock.
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/fixed_ring.h"
#include "os/async_read_kinds.h"
#include "os/descriptor_linux.h"

namespace sluice::os {
namespace {

// Own descriptors per worker keep them off each other's reference counts; a model in many shards
// must not use up the process's allowance for that.
constexpr size_t kOwnDescriptorsMax = 256;

/// The same file opened once more; closed where that is not possible.
Descriptor reopen(const File& file) {
  const std::string name = fmt::format("/proc/self/fd/{}", file.native_handle());
  return Descriptor(open(name.c_str(), O_RDONLY | O_CLOEXEC | (file.is_direct() ? O_DIRECT : 0)));
}

class ThreadReader final : public AsyncReader {
 public:
  ThreadReader(std::span<const File* const> files, size_t depth_max)
      : depth_max_(depth_max),
        files_(files.begin(), files.end()),
        queue_(depth_max),
        done_(depth_max) {}
  ~ThreadReader() override;

  /// False when the system allows not even one thread.
  bool start(size_t thread_count);

  std::string_view name() const override { return "threads"; }
  size_t depth_max() const override { return depth_max_; }
  void submit(std::span<const ReadOp> ops) override;
  size_t poll(std::span<ReadCompletion> done, bool wait) override;

 private:
  /// Descriptors by file: the worker's own where it has them, else the File's.
  struct Worker {
    std::vector<Descriptor> own;
    std::vector<int> descriptors;
  };

  Worker make_worker(bool with_own_descriptors) const;
  void work(const Worker& worker);

  const size_t depth_max_;
  const std::vector<const File*> files_;
  size_t in_flight_ = 0;  ///< the caller's count; the threads do not touch it

  std::mutex mutex_;  ///< guards all that follows, but for reading done_count_
  std::condition_variable work_ready_, read_done_;
  FixedRing<ReadOp> queue_;
  FixedRing<ReadCompletion> done_;
  std::atomic<size_t> done_count_{0};
  bool stop_ = false;

  std::vector<std::thread> threads_;
};

bool ThreadReader::start(size_t thread_count) {
  const bool own_descriptors = thread_count * files_.size() <= kOwnDescriptorsMax;
  threads_.reserve(thread_count);
  try {
    for (size_t i = 0; i < thread_count; ++i)
      threads_.emplace_back([this, worker = make_worker(own_descriptors)] { work(worker); });
  } catch (const std::system_error&) {
    // The system's limit of threads: those that did start do the work.
  }
  return !threads_.empty();
}

ThreadReader::Worker ThreadReader::make_worker(bool with_own_descriptors) const {
  Worker worker;
  for (const File* file : files_) {
    if (with_own_descriptors) worker.own.push_back(reopen(*file));
    const bool is_own = with_own_descriptors && worker.own.back().is_open();
    worker.descriptors.push_back(is_own ? worker.own.back().number() : file->native_handle());
  }
  return worker;
}

/// Reads that have not begun are dropped: nobody will ask for them. Those in service are waited
/// for, since they write into the caller's buffers.
ThreadReader::~ThreadReader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    queue_.clear();
  }
  work_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadReader::work(const Worker& worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    work_ready_.wait(lock, [this] { return stop_ || queue_.size() > 0; });
    if (stop_) return;
    const ReadOp op = queue_.pop_front();
    lock.unlock();
    int64_t result = refuse_op(op, worker.descriptors.size());
    if (result == 0)
      result = read_once(worker.descriptors[op.file], op.buffer, op.bytes, op.offset);
    lock.lock();
    done_.push_back({op.tag, result});
    done_count_.store(done_.size(), std::memory_order_release);
    read_done_.notify_one();
  }
}

void ThreadReader::submit(std::span<const ReadOp> ops) {
  CHECK(ops.size() <= depth_max_ - in_flight_);
  in_flight_ += ops.size();
  {
    const std::lock_guard lock(mutex_);
    for (const ReadOp& op : ops) queue_.push_back(op);
  }
  const size_t wake_count = std::min(ops.size(), threads_.size());
  for (size_t i = 0; i < wake_count; ++i) work_ready_.notify_one();
}

size_t ThreadReader::poll(std::span<ReadCompletion> done, bool wait) {
  CHECK(!wait || (in_flight_ > 0 && !done.empty()));
  if (!wait && done_count_.load(std::memory_order_acquire) == 0) return 0;
  std::unique_lock lock(mutex_);
  if (wait) read_done_.wait(lock, [this] { return done_.size() > 0; });
  const size_t count = std::min(done.size(), done_.size());
  for (size_t i = 0; i < count; ++i) done[i] = done_.pop_front();
  done_count_.store(done_.size(), std::memory_order_release);
  in_flight_ -= count;
  return count;
}

}  // namespace

Result<std::unique_ptr<AsyncReader>> make_thread_reader(std::span<const File* const> files,
                                                        size_t depth_max, size_t thread_count) {
  auto reader = std::make_unique<ThreadReader>(files, depth_max);
  if (!reader->start(thread_count))
    return make_error(ErrorKind::memory, "cannot start a thread for reading: raise ulimit -u");
  return std::unique_ptr<AsyncReader>(std::move(reader));
}

}  // namespace sluice::os
