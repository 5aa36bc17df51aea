// A file that appears as a whole or not at all: written under another name in the same folder,
// synced and renamed at the end. Whoever gives up before commit(), by an error or by ending, leaves
// nothing behind and what had the name before as it was. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace sluice::os {

class NewFile {
 public:
  /// Folders, devices and pipes of that name are refused: renaming would do away with them.
  static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  ~NewFile();

  /// Appends.
  Status write(std::span<const std::byte> bytes);
  /// Puts the file in its place. REQUIRES: not called before; every write succeeded.
  Status commit();

 private:
  struct State;
  explicit NewFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::os
