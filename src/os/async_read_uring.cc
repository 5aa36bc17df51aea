// Reads through io_uring: one ring, one system call for a batch of reads, none to look for finished
// ones (the kernel writes completions into memory shared with us).
//
// The completion queue holds twice the submission queue's entries and in flight are never more than
// those, so it cannot overflow. Not used, on purpose: a polling kernel thread (it takes a core from
// the kernels), IORING_SETUP_SINGLE_ISSUER and deferred task work (they bind the ring to one thread
// and make an empty look at the queue a system call).
#include <liburing.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "os/async_read_kinds.h"

namespace sluice::os {
namespace {

constexpr std::chrono::microseconds kRetryPause{50};

class UringReader final : public AsyncReader {
 public:
  UringReader(std::span<const File* const> files, size_t depth_max) : depth_max_(depth_max) {
    for (const File* file : files) descriptors_.push_back(file->native_handle());
    refused_.reserve(depth_max);
  }
  ~UringReader() override;

  /// 0, or the errno that says why there is no io_uring here.
  int set_up();

  std::string_view name() const override { return "uring"; }
  size_t depth_max() const override { return depth_max_; }
  void submit(std::span<const ReadOp> ops) override;
  size_t poll(std::span<ReadCompletion> done, bool wait) override;

 private:
  int try_no_op();
  void queue(const ReadOp& op);
  void flush();
  void break_down(int reason);
  size_t take_refused(std::span<ReadCompletion> done);
  size_t reap(std::span<ReadCompletion> done);
  void wait_for_one();

  const size_t depth_max_;
  std::vector<int> descriptors_;
  bool files_registered_ = false;
  bool ring_exists_ = false;
  io_uring ring_ = {};

  size_t in_flight_ = 0;                 ///< submitted by the caller and not yet returned
  size_t in_kernel_ = 0;                 ///< those of them that the kernel has taken
  std::vector<ReadCompletion> refused_;  ///< those that could not be started
  int broken_reason_ = 0;                ///< errno of a failure that further calls will not mend
};

int UringReader::set_up() {
  const int result = io_uring_queue_init(static_cast<unsigned>(depth_max_), &ring_, 0);
  if (result < 0) return -result;
  ring_exists_ = true;
  io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
  const bool can_read = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
  io_uring_free_probe(probe);
  if (!can_read) return EOPNOTSUPP;
  if (const int reason = try_no_op()) return reason;
  files_registered_ = io_uring_register_files(&ring_, descriptors_.data(),
                                              static_cast<unsigned>(descriptors_.size())) == 0;
  return 0;
}

/// Sends an empty operation round: some sandboxes allow the set-up and nothing after it.
int UringReader::try_no_op() {
  io_uring_prep_nop(io_uring_get_sqe(&ring_));
  int result = 0;
  do {
    result = io_uring_submit_and_wait(&ring_, 1);
  } while (result == -EINTR);
  if (result < 0) return -result;
  io_uring_cqe* cqe = nullptr;
  if (io_uring_peek_cqe(&ring_, &cqe) != 0) return EIO;
  io_uring_cqe_seen(&ring_, cqe);
  return 0;
}

UringReader::~UringReader() {
  std::array<ReadCompletion, 16> ignored;
  while (in_kernel_ > 0) {
    if (reap(ignored) == 0) wait_for_one();
  }
  if (ring_exists_) io_uring_queue_exit(&ring_);
}

void UringReader::submit(std::span<const ReadOp> ops) {
  CHECK(ops.size() <= depth_max_ - in_flight_);
  in_flight_ += ops.size();
  for (const ReadOp& op : ops) {
    int64_t refusal = refuse_op(op, descriptors_.size());
    if (refusal == 0) refusal = -broken_reason_;
    if (refusal == 0)
      queue(op);
    else
      refused_.push_back({op.tag, refusal});
  }
  flush();
}

/// REQUIRES: in flight ≤ depth, so that the submission queue has room.
void UringReader::queue(const ReadOp& op) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  CHECK(sqe != nullptr);
  const int file = files_registered_ ? static_cast<int>(op.file) : descriptors_[op.file];
  io_uring_prep_read(sqe, file, op.buffer, op.bytes, op.offset);
  if (files_registered_) sqe->flags |= IOSQE_FIXED_FILE;
  sqe->user_data = op.tag;
}

/// Hands what is queued to the kernel. When it is short of memory the rest stays queued, and the
/// next poll tries again.
void UringReader::flush() {
  while (broken_reason_ == 0 && io_uring_sq_ready(&ring_) > 0) {
    const int count = io_uring_submit(&ring_);
    if (count > 0)
      in_kernel_ += static_cast<size_t>(count);
    else if (count == 0 || count == -EAGAIN || count == -EBUSY)
      return;
    else if (count != -EINTR)
      break_down(-count);
  }
}

/// The kernel takes no more reads: those still queued fail now, later ones when they are submitted.
void UringReader::break_down(int reason) {
  broken_reason_ = reason;
  const unsigned queued = io_uring_sq_ready(&ring_);
  for (unsigned i = 0; i < queued; ++i) {
    const unsigned position = ring_.sq.sqe_tail - queued + i;
    refused_.push_back({ring_.sq.sqes[position & *ring_.sq.kring_mask].user_data, -reason});
  }
}

size_t UringReader::poll(std::span<ReadCompletion> done, bool wait) {
  CHECK(!wait || (in_flight_ > 0 && !done.empty()));
  flush();
  size_t count = take_refused(done);
  count += reap(done.subspan(count));
  while (wait && count == 0) {
    wait_for_one();
    flush();
    count = take_refused(done);
    count += reap(done.subspan(count));
  }
  in_flight_ -= count;
  return count;
}

size_t UringReader::take_refused(std::span<ReadCompletion> done) {
  const size_t count = std::min(done.size(), refused_.size());
  const auto end = refused_.begin() + static_cast<std::ptrdiff_t>(count);
  std::copy(refused_.begin(), end, done.begin());
  refused_.erase(refused_.begin(), end);
  return count;
}

/// Finished reads that the kernel has put into the queue; no system call.
size_t UringReader::reap(std::span<ReadCompletion> done) {
  size_t total = 0;
  while (total < done.size()) {
    std::array<io_uring_cqe*, 32> cqes;
    const size_t wanted = std::min(done.size() - total, cqes.size());
    const unsigned count =
        io_uring_peek_batch_cqe(&ring_, cqes.data(), static_cast<unsigned>(wanted));
    if (count == 0) break;
    for (unsigned i = 0; i < count; ++i) done[total + i] = {cqes[i]->user_data, cqes[i]->res};
    io_uring_cq_advance(&ring_, count);
    total += count;
  }
  in_kernel_ -= total;
  return total;
}

/// Sleeps until the kernel has finished a read, or a moment where it cannot tell; may return early.
void UringReader::wait_for_one() {
  io_uring_cqe* cqe = nullptr;
  const int result = in_kernel_ > 0 ? io_uring_wait_cqe(&ring_, &cqe) : -EAGAIN;
  if (result < 0 && result != -EINTR) std::this_thread::sleep_for(kRetryPause);
}

const char* refusal_reason(int reason) {
  switch (reason) {
    case ENOSYS:
      return "this kernel has none";
    case EPERM:
      return "forbidden here, by a container's rules or kernel.io_uring_disabled";
    case EOPNOTSUPP:
      return "this kernel's is too old to read files";
    case ENOMEM:
      return "not enough lockable memory (ulimit -l)";
    default:
      return std::strerror(reason);
  }
}

}  // namespace

Result<std::unique_ptr<AsyncReader>> make_uring_reader(std::span<const File* const> files,
                                                       size_t depth_max) {
  auto reader = std::make_unique<UringReader>(files, depth_max);
  if (const int reason = reader->set_up())
    return make_error(ErrorKind::unsupported, "{}", refusal_reason(reason));
  return std::unique_ptr<AsyncReader>(std::move(reader));
}

}  // namespace sluice::os
