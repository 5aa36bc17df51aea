#include "chat/thinking.h"

#include <algorithm>

namespace sluice::chat {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const size_t last = text.find_last_not_of(kBlanks);
  return last == text.npos ? std::string_view() : text.substr(0, last + 1);
}

/// How many bytes at the end of the text may be the beginning of the mark.
size_t beginning_of(std::string_view mark, std::string_view text) {
  size_t count = std::min(mark.size() - 1, text.size());
  while (count > 0 && !text.ends_with(mark.substr(0, count))) --count;
  return count;
}

}  // namespace

ThinkingStream::ThinkingStream(std::string_view prompt_tail) {
  if (trimmed(prompt_tail).ends_with(kOpen)) state_ = State::thinking;
}

std::vector<ThinkingStream::Piece> ThinkingStream::push(std::string_view text) {
  held_ += text;
  std::vector<Piece> out;
  while (step(out)) {
  }
  return out;
}

/// Passes on what is decided. False: what is left waits for more.
bool ThinkingStream::step(std::vector<Piece>& out) {
  const auto pass = [&](size_t count, bool is_thinking) {
    if (count > 0) out.push_back({held_.substr(0, count), is_thinking});
    held_.erase(0, count);
  };
  switch (state_) {
    case State::before: {
      const size_t start = std::min(held_.find_first_not_of(kBlanks), held_.size());
      const std::string_view rest = std::string_view(held_).substr(start);
      if (rest.starts_with(kOpen)) {
        held_.erase(0, start + kOpen.size());
        state_ = State::thinking;
        return true;
      }
      if (kOpen.starts_with(rest)) return false;
      state_ = State::answer;
      return true;
    }
    case State::thinking: {
      const size_t end = held_.find(kClose);
      if (end == held_.npos) {
        pass(held_.size() - beginning_of(kClose, held_), true);
        return false;
      }
      pass(end, true);
      held_.erase(0, kClose.size());
      state_ = State::after_mark;
      return true;
    }
    case State::after_mark: {
      held_.erase(0, std::min(held_.find_first_not_of('\n'), held_.size()));
      if (held_.empty()) return false;
      state_ = State::answer;
      return true;
    }
    case State::answer:
      pass(held_.size(), false);
  }
  return false;
}

std::vector<ThinkingStream::Piece> ThinkingStream::flush() {
  std::vector<Piece> out;
  if (!held_.empty()) out.push_back({std::move(held_), state_ == State::thinking});
  held_.clear();
  return out;
}

}  // namespace sluice::chat
