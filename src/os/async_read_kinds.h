// The kinds of asynchronous reader that make_async_reader chooses from. For os/*.cc and the tests
// that run each of them; the others see AsyncReader only.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "base/result.h"
#include "os/async_read.h"

namespace sluice::os {

/// The error's message is the reason alone, fit to follow "io_uring: ".
Result<std::unique_ptr<AsyncReader>> make_uring_reader(std::span<const File* const> files,
                                                       size_t depth_max);

Result<std::unique_ptr<AsyncReader>> make_thread_reader(std::span<const File* const> files,
                                                        size_t depth_max, size_t thread_count);

/// What every kind refuses before the system sees it: 0, or −errno. (The system would take an
/// offset of 2^64 − 1 for "where the file stands".)
inline int64_t refuse_op(const ReadOp& op, size_t file_count) {
  if (op.file >= file_count) return -EBADF;
  if (op.offset > uint64_t{std::numeric_limits<int64_t>::max()}) return -EINVAL;
  return 0;
}

}  // namespace sluice::os
