// Tells what a model thinks from what it answers, while its text comes: <think>…</think> at the
// start, or without the first mark where the prompt has written it. What may yet become a mark is
// held back; the marks themselves are not passed on. One per answer, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::chat {

class ThinkingStream {
 public:
  struct Piece {
    std::string text;
    bool is_thinking;

    bool operator==(const Piece&) const = default;
  };

  /// `prompt_tail`: the end of the rendered prompt, which may have opened the thinking.
  explicit ThinkingStream(std::string_view prompt_tail);

  std::vector<Piece> push(std::string_view text);
  /// What is still held back, at the end.
  std::vector<Piece> flush();

 private:
  enum class State : uint8_t { before, thinking, after_mark, answer };
  bool step(std::vector<Piece>& out);

  State state_ = State::before;
  std::string held_;
};

}  // namespace sluice::chat
