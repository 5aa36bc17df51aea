// What the Linux files of this folder share: a descriptor that closes itself, pread that does not
// stop at signals, and the folder of a file. For os/*.cc only; any thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace sluice::os {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (is_open()) close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

/// One pread, begun again when a signal interrupts it: bytes read (0 at the end of the file), or
/// −errno.
inline int64_t read_once(int descriptor, std::byte* buffer, size_t bytes, uint64_t offset) {
  ssize_t count = 0;
  do {
    count = pread(descriptor, buffer, bytes, static_cast<off_t>(offset));
  } while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : count;
}

/// The folder that holds, or would hold, a file.
inline std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

inline Descriptor open_folder(const std::string& folder) {
  return Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace sluice::os
