// Ends a stream of text at the first of some strings, without ever showing a part of one: bytes
// that may be the beginning of a stop string are held back until that is decided. One per stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::text {

class StopStrings {
 public:
  /// Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> strings);

  /// The bytes that may be shown now. Once a stop string is complete, the bytes before it are the
  /// last and stopped() is true.
  std::string push(std::string_view bytes);
  bool stopped() const { return stopped_; }
  /// What is held back, when the stream ends for another reason.
  std::string flush();

 private:
  size_t held_count() const;

  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace sluice::text
