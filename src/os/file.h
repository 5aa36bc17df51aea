// A file opened for reading at explicit offsets, past the page cache where that is possible.
//
// Direct reads (O_DIRECT on Linux) go from the drive straight into the caller's buffer: no copy,
// and no second copy of the model in the page cache. They demand that offset, length and buffer
// are multiples of `alignment()`. Whether a file system allows them is found out by one real read,
// not by asking. One File may be read by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace sluice::os {

/// What the caller wants: `auto_detect` probes and falls back to buffered reads; `on` fails where
/// direct reads are refused; `off` never tries.
enum class DirectMode { auto_detect, on, off };

class File {
 public:
  /// Opens a regular file. Errors name the path and the reason; folders, sockets and the like are
  /// refused. A file that refuses direct reads under auto_detect is opened buffered; is_direct()
  /// tells.
  static Result<File> open(const std::string& path, DirectMode mode);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  bool is_direct() const { return direct_; }
  /// Alignment in bytes of offset, length and buffer for reads: from the kernel where it tells,
  /// else 4096; also 4096 when reading buffered, so that both ways use the same windows.
  uint32_t alignment() const { return alignment_; }
  /// The operating system's descriptor, for os/async_read only.
  int native_handle() const { return descriptor_; }

  /// Reads exactly `bytes` at `offset` into `buffer`, aligned as alignment() says when the file is
  /// direct (a range that reaches past the end of the file is cut there, and is an error when that
  /// loses wanted bytes: the result is the number of bytes read, at least `bytes_min`).
  /// Retries interrupted and short reads.
  Result<size_t> read_at(uint64_t offset, std::byte* buffer, size_t bytes, size_t bytes_min) const;

 private:
  File() = default;

  std::string path_;
  uint64_t bytes_ = 0;
  int descriptor_ = -1;
  bool direct_ = false;
  uint32_t alignment_ = 4096;
};

/// The whole of a small file (a prompt, a token list), at most `bytes_max`; larger is a usage
/// error.
Result<std::string> read_text_file(const std::string& path, uint64_t bytes_max);

}  // namespace sluice::os
