// Requests that wait for their turn: one line for each class of read, first come first served.
//
// A request may leave from the middle of its line, when the guess behind it was wrong, or change to
// the end of another, when it was right. So the lines are chains of links through a fixed array and
// not rings: a ring would keep what has left until its front comes by, and those could fill it.
// Every call takes constant time and none allocates after construction. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "io/read_request.h"

namespace sluice::io {

class WaitingLines {
 public:
  /// For requests with the numbers 0 … request_count_max − 1.
  explicit WaitingLines(size_t request_count_max) : links_(request_count_max + kReadClassCount) {
    for (uint32_t i = 0; i < links_.size(); ++i) links_[i] = {i, i};
  }

  bool is_empty(ReadClass read_class) const {
    const uint32_t end = end_of(read_class);
    return links_[end].next == end;
  }

  /// Whether the request stands in any line.
  bool waits(uint32_t request) const { return links_[request].next != request; }

  /// REQUIRES: !is_empty(read_class)
  uint32_t front(ReadClass read_class) const {
    CHECK(!is_empty(read_class));
    return links_[end_of(read_class)].next;
  }

  /// REQUIRES: !waits(request)
  void push_back(ReadClass read_class, uint32_t request) {
    CHECK(!waits(request));
    const uint32_t end = end_of(read_class);
    const uint32_t last = links_[end].previous;
    links_[request] = {last, end};
    links_[last].next = request;
    links_[end].previous = request;
  }

  /// Takes the request out of its line, if it stands in one.
  void remove(uint32_t request) {
    const Link link = links_[request];
    links_[link.previous].next = link.next;
    links_[link.next].previous = link.previous;
    links_[request] = {request, request};
  }

 private:
  /// Each line is a circle through its end; whoever stands in none is a circle of one.
  struct Link {
    uint32_t previous;
    uint32_t next;
  };

  /// The ends of the lines lie behind the requests.
  uint32_t end_of(ReadClass read_class) const {
    return static_cast<uint32_t>(links_.size() - kReadClassCount) +
           static_cast<uint32_t>(read_class);
  }

  std::vector<Link> links_;
};

}  // namespace sluice::io
