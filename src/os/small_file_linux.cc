#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "os/descriptor_linux.h"
#include "os/file.h"
#include "os/new_file.h"
#include "os/small_file.h"

namespace sluice::os {
namespace {

namespace fs = std::filesystem;

Error small_file_error(const std::string& path, const char* what, int reason) {
  return make_error(ErrorKind::io, "{}: cannot {}: {}", path, what, std::strerror(reason));
}

/// A lock on the folder, which leaves no file behind; released with the descriptor. Where a file
/// system has no locks we do without: an update may then be lost, but no file is ever torn.
Descriptor lock_folder(const std::string& folder) {
  Descriptor descriptor = open_folder(folder);
  while (descriptor.is_open() && flock(descriptor.number(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return descriptor;
}

}  // namespace

Status update_file(const std::string& path, uint64_t bytes_max, NextContent next) {
  const Descriptor lock = lock_folder(folder_of(path));
  auto file = NewFile::create(path);
  if (!file) return file.error();
  std::string present;
  if (file_exists(path)) {
    auto text = read_text_file(path, bytes_max);
    if (!text) return text.error();
    present = std::move(text).value();
  }
  const Result<std::string> content = next(present);
  if (!content) return content.error();
  if (Status written = file->write(std::as_bytes(std::span(*content))); !written) return written;
  return file->commit();
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
