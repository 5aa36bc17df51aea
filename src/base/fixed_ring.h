// A first-in first-out queue of fixed capacity that allocates once. One thread at a time.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice {

template <typename T>
class FixedRing {
 public:
  explicit FixedRing(size_t capacity) : items_(capacity) {}

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }

  /// REQUIRES: size() < capacity
  void push_back(T item) {
    CHECK(count_ < items_.size());
    items_[(first_ + count_++) % items_.size()] = std::move(item);
  }

  /// REQUIRES: !empty()
  const T& front() const {
    CHECK(count_ > 0);
    return items_[first_];
  }
  /// The item `index` places behind the front. REQUIRES: index < size()
  const T& operator[](size_t index) const {
    CHECK(index < count_);
    return items_[(first_ + index) % items_.size()];
  }
  /// REQUIRES: !empty()
  T pop_front() {
    CHECK(count_ > 0);
    T item = std::move(items_[first_]);
    first_ = (first_ + 1) % items_.size();
    --count_;
    return item;
  }

  void clear() { count_ = 0; }

 private:
  std::vector<T> items_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace sluice
