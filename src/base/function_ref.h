// A reference to something callable, for callbacks that live only during a call: two pointers, no
// allocation, unlike std::function. Does not own what it refers to.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace sluice {

template <typename Signature>
class FunctionRef;

template <typename Returned, typename... Args>
class FunctionRef<Returned(Args...)> {
 public:
  /// REQUIRES: the callable outlives every call.
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<Returned, F&, Args...>) FunctionRef(F&& callable)
      : context_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* context, Args... args) -> Returned {
          return (*static_cast<std::remove_reference_t<F>*>(context))(std::forward<Args>(args)...);
        }) {}

  Returned operator()(Args... args) const { return call_(context_, std::forward<Args>(args)...); }

 private:
  void* context_;
  Returned (*call_)(void* context, Args... args);
};

}  // namespace sluice
