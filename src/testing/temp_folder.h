// A folder for the files of one test, removed with all it holds when the object dies. Tests only;
// any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

class TempFolder {
 public:
  /// A fresh folder below `parent`, or below the system's place for such (TMPDIR, /tmp).
  explicit TempFolder(const std::string& parent = {});
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

  /// Writes a file, with the folders in its name ("proc/self/cgroup"), and returns its path.
  std::string write(std::string_view name, std::string_view text) const;
  std::string write(std::string_view name, std::span<const std::byte> bytes) const;

 private:
  std::string path_;
};

}  // namespace sluice
