#include "jinja/text.h"

#include <algorithm>

namespace sluice::jinja {

void Text::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().origin == origin)
    runs_.back().end = bytes_.size();
  else
    runs_.push_back({bytes_.size(), origin});
}

void Text::append(const Text& text, size_t begin, size_t end) {
  while (begin < end) {
    const Run run = text.runs_[text.run_at(begin)];
    const size_t run_end = std::min(run.end, end);
    append(std::string_view(text.bytes_).substr(begin, run_end - begin), run.origin);
    begin = run_end;
  }
}

Text Text::part(size_t begin, size_t end) const {
  Text cut;
  cut.append(*this, begin, end);
  return cut;
}

Origin Text::origin() const {
  const bool written =
      std::ranges::all_of(runs_, [](const Run& run) { return run.origin == Origin::written; });
  return written ? Origin::written : Origin::message;
}

std::vector<Span> Text::spans() const {
  std::vector<Span> spans;
  size_t begin = 0;
  for (const Run& run : runs_) {
    spans.push_back({bytes_.substr(begin, run.end - begin), run.origin == Origin::written});
    begin = run.end;
  }
  return spans;
}

size_t Text::run_at(size_t at) const {
  const auto run = std::ranges::upper_bound(runs_, at, {}, &Run::end);
  return static_cast<size_t>(run - runs_.begin());
}

}  // namespace sluice::jinja
