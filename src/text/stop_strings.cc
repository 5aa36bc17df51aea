#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace sluice::text {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  std::erase_if(strings_, [](const std::string& text) { return text.empty(); });
}

std::string StopStrings::push(std::string_view bytes) {
  if (stopped_) return {};
  held_ += bytes;
  size_t first = std::string::npos;
  for (const std::string& text : strings_) first = std::min(first, held_.find(text));
  if (first != std::string::npos) {
    stopped_ = true;
    held_.resize(first);
    return std::exchange(held_, {});
  }
  const size_t shown = held_.size() - held_count();
  std::string ready = held_.substr(0, shown);
  held_.erase(0, shown);
  return ready;
}

std::string StopStrings::flush() {
  return std::exchange(held_, {});
}

/// The longest tail that may still become a stop string.
size_t StopStrings::held_count() const {
  size_t longest = 0;
  for (const std::string& text : strings_) {
    size_t count = std::min(text.size() - 1, held_.size());
    while (count > longest && !held_.ends_with(std::string_view(text).substr(0, count))) --count;
    longest = std::max(longest, count);
  }
  return longest;
}

}  // namespace sluice::text
