#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "os/descriptor_linux.h"
#include "os/file.h"
#include "os/small_file.h"

namespace sluice::os {
namespace {

namespace fs = std::filesystem;

Error small_file_error(const std::string& path, const char* what, int reason) {
  return make_error(ErrorKind::io, "{}: cannot {}: {}", path, what, std::strerror(reason));
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// A lock on the folder, which leaves no file behind; released with the descriptor. Where a file
/// system has no locks we do without: an update may then be lost, but no file is ever torn.
Descriptor lock_folder(const std::string& folder) {
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (descriptor.is_open() && flock(descriptor.number(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return descriptor;
}

/// 0, or the errno of the failure.
int write_all(int descriptor, const std::string& content) {
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t count = ::write(descriptor, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    done += static_cast<size_t>(count);
  }
  return 0;
}

/// Writes a new file beside `path` and puts it in its place.
Status replace_file(const std::string& path, const std::string& content, const Descriptor& folder) {
  constexpr mode_t kMode = 0644;  // mkostemp makes files that only their owner may read
  std::string temporary = path + ".XXXXXX";
  const Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.is_open()) return small_file_error(path, "write beside it", errno);
  int reason = write_all(file.number(), content);
  if (reason == 0 && fchmod(file.number(), kMode) != 0) reason = errno;
  if (reason == 0 && fsync(file.number()) != 0) reason = errno;
  if (reason == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) reason = errno;
  if (reason != 0) {
    ::unlink(temporary.c_str());
    return small_file_error(path, "write", reason);
  }
  if (folder.is_open()) fsync(folder.number());  // the name; the content is safe already
  return {};
}

/// Putting a file in its place would do away with a device (as /dev/null) or a pipe.
bool is_something_else(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode);
}

}  // namespace

Status update_file(const std::string& path, uint64_t bytes_max, NextContent next) {
  if (is_something_else(path))
    return make_error(ErrorKind::usage, "{} is no regular file and stays as it is", path);
  const Descriptor folder = lock_folder(folder_of(path));
  std::string present;
  if (file_exists(path)) {
    auto text = read_text_file(path, bytes_max);
    if (!text) return text.error();
    present = std::move(text).value();
  }
  const Result<std::string> content = next(present);
  if (!content) return content.error();
  return replace_file(path, *content, folder);
}

bool may_create(const std::string& path) {
  return access(folder_of(path).c_str(), W_OK | X_OK) == 0;
}

Status make_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  if (access(folder.c_str(), F_OK) == 0) return {};
  if (Status above = make_folder_of(folder); !above) return above;
  constexpr mode_t kOwnerOnly = 0700;
  if (mkdir(folder.c_str(), kOwnerOnly) != 0 && errno != EEXIST)
    return small_file_error(folder, "make this folder", errno);
  return {};
}

bool file_exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  const fs::path found = fs::weakly_canonical(path, failed);
  if (!failed) return fs::absolute(found, failed).string();
  return path;
}

std::optional<std::string> user_cache_folder() {
  // A relative path here is to be taken for a mistake (XDG base directory specification).
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache);
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return std::nullopt;
  return std::string(home) + "/.cache";
}

}  // namespace sluice::os
