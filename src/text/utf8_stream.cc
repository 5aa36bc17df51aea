#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

/// How many bytes at the end are the beginning of a character that more bytes may complete.
size_t incomplete_tail_bytes(std::string_view bytes) {
  const size_t longest = std::min<size_t>(3, bytes.size());
  for (size_t tail = 1; tail <= longest; ++tail) {
    const auto lead = static_cast<uint8_t>(bytes[bytes.size() - tail]);
    if (utf8_continues(lead)) continue;
    if (utf8_length(lead) <= tail) return 0;
    const bool fits =
        tail == 1 || utf8_second_fits(lead, static_cast<uint8_t>(bytes[bytes.size() - tail + 1]));
    return fits ? tail : 0;
  }
  return 0;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  const size_t complete = held_.size() - incomplete_tail_bytes(held_);
  std::string ready = held_.substr(0, complete);
  held_.erase(0, complete);
  return ready;
}

std::string Utf8Stream::flush() {
  return std::exchange(held_, {});
}

}  // namespace sluice::text
