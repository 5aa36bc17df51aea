// How model files are named. A model split in three is stored as NAME-00001-of-00003.gguf and so
// on. Names are worked out from the path as the user typed it: a symbolic link is opened, but its
// target's name means nothing (download caches link to files named by a checksum). Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::gguf {

struct ShardName {
  std::string prefix;   ///< folder and NAME
  uint32_t number = 0;  ///< counts from 1
  uint32_t count = 0;

  /// PREFIX-00001-of-00003.gguf
  std::string path() const;
  friend bool operator==(const ShardName&, const ShardName&) = default;
};

/// The parts of a path of that form; nothing when it is of another form.
std::optional<ShardName> parse_shard_name(std::string_view path);

/// The one model in a folder: a file, or any shard of a set. Several or none is a usage error that
/// lists what was found.
Result<std::string> find_model(const std::string& folder);

}  // namespace sluice::gguf
