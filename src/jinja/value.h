// What template variables hold. Values are immutable, as in the sandbox that such templates are
// written for, and share what is large, so copying one is cheap. Only a namespace can be changed;
// it belongs to the run that made it, is held by pointer, and so can neither leak nor nest without
// end. Lists and dictionaries know how deep they are, and `Run` refuses to build what is too deep:
// code that walks a value, and the destructor, may recurse. Values without a namespace or function
// may be read by several threads.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/text.h"

namespace sluice::jinja {

class Value;
struct List;
class Dict;
struct Function;
struct Loop;

/// What a missing name or attribute gives; says in an error what was missing.
struct Undefined {
  std::shared_ptr<const std::string> what;
};
struct None {};
struct Namespace {
  std::map<std::string, Value, std::less<>> attributes;
};

class Value {
 public:
  Value() : held_(Undefined{}) {}
  Value(None none) : held_(none) {}
  Value(bool boolean) : held_(boolean) {}
  Value(int64_t number) : held_(number) {}
  Value(double number) : held_(number) {}
  Value(Text text) : held_(std::make_shared<const Text>(std::move(text))) {}
  Value(std::shared_ptr<const List> list) : held_(std::move(list)) {}
  Value(std::shared_ptr<const Dict> dict) : held_(std::move(dict)) {}
  Value(std::shared_ptr<const Loop> loop) : held_(std::move(loop)) {}
  Value(Namespace* space) : held_(space) {}
  Value(const Function* function) : held_(function) {}
  static Value missing(std::string what) {
    Value value;
    value.held_ = Undefined{std::make_shared<const std::string>(std::move(what))};
    return value;
  }

  bool is_undefined() const { return std::holds_alternative<Undefined>(held_); }
  bool is_none() const { return std::holds_alternative<None>(held_); }
  bool is_bool() const { return std::holds_alternative<bool>(held_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(held_); }
  bool is_real() const { return std::holds_alternative<double>(held_); }
  /// As Python counts, a boolean is a number.
  bool is_number() const { return is_bool() || is_integer() || is_real(); }
  bool is_whole() const { return is_bool() || is_integer(); }

  /// Null when it is something else.
  const Text* text() const { return shared<Text>(); }
  const List* list() const { return shared<List>(); }
  const Dict* dict() const { return shared<Dict>(); }
  /// REQUIRES: list() != nullptr
  std::shared_ptr<const List> shared_list() const {
    return std::get<std::shared_ptr<const List>>(held_);
  }
  const Loop* loop() const { return shared<Loop>(); }
  Namespace* space() const { return plain<Namespace*>(); }
  const Function* function() const { return plain<const Function*>(); }

  /// REQUIRES: is_whole()
  int64_t integer() const;
  /// REQUIRES: is_number()
  double real() const;

  bool truthy() const;
  /// 0 for what holds nothing.
  uint32_t depth() const;
  /// "dict object", as errors call it.
  std::string_view kind_name() const;
  /// Of an undefined value: what was missing.
  std::string what() const;

 private:
  template <typename T>
  const T* shared() const {
    const auto* held = std::get_if<std::shared_ptr<const T>>(&held_);
    return held == nullptr ? nullptr : held->get();
  }
  template <typename T>
  T plain() const {
    const auto* held = std::get_if<T>(&held_);
    return held == nullptr ? nullptr : *held;
  }

  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>,
               std::shared_ptr<const Loop>, Namespace*, const Function*>
      held_;
};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  uint32_t depth = 1;
};

/// The variable `loop`: over what, and where it is, which only the loop itself changes.
struct Loop {
  std::shared_ptr<const List> over;
  size_t index = 0;
};

/// Keys in the order of their insertion.
class Dict {
 public:
  /// Null when there is none.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  /// A key that is there keeps its place and takes the value.
  void set(const Value& key, Value value);

  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  uint32_t depth() const { return depth_; }

 private:
  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_map<std::string, size_t> places_;  ///< by a spelling that equal keys share
  uint32_t depth_ = 1;
};

/// Whether it can be a key of a dictionary: a scalar, or a tuple of such.
bool is_hashable(const Value& value);

}  // namespace sluice::jinja
