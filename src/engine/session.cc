#include <algorithm>
#include <cmath>

#include "engine/engine_impl.h"

namespace sluice {

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}
Session::~Session() = default;

Status Session::prefill(std::span<const text::TokenId> tokens) {
  return state_->append(tokens, LogitsWanted::last, nullptr);
}

Status Session::prefill(std::span<const text::TokenId> tokens, const LogitsReceiver& receiver) {
  return state_->append(tokens, LogitsWanted::all, &receiver);
}

Status Session::decode(text::TokenId token) {
  return state_->append({&token, 1}, LogitsWanted::last, nullptr);
}

std::span<const float> Session::logits() const {
  return state_->tokens.empty() ? std::span<const float>{} : std::span<const float>(state_->logits);
}

std::span<const text::TokenId> Session::tokens() const {
  return state_->tokens;
}
size_t Session::keep_prefix(std::span<const text::TokenId> tokens) {
  const auto wanted = tokens.first(tokens.empty() ? 0 : tokens.size() - 1);
  const auto common = std::ranges::mismatch(state_->tokens, wanted);
  state_->tokens.erase(common.in1, state_->tokens.end());
  return state_->tokens.size();
}

void Session::reset() {
  state_->tokens.clear();
}

/// Runs the tokens in steps. If one fails, the session stands where it stood before the call:
/// keys and values beyond its tokens are never looked at.
Status SessionState::append(std::span<const text::TokenId> added, LogitsWanted wanted,
                            const LogitsReceiver* receiver) {
  CHECK(!added.empty());
  const size_t before = tokens.size();
  if (added.size() > kv.context_token_max() - before)
    return make_error(ErrorKind::usage,
                      "a prompt of {} tokens{} does not fit the context of {}; raise --ctx or "
                      "shorten the prompt",
                      added.size(), before > 0 ? fmt::format(" behind {} others", before) : "",
                      kv.context_token_max());
  for (const text::TokenId token : added)
    if (token < 0 || static_cast<size_t>(token) >= engine.facts.vocabulary_size)
      return make_error(ErrorKind::usage, "{} is not a token of this model", token);
  const IdleFill::Request request(*engine.idle_fill);
  if (added.size() > 1) engine.store->mark();
  bool finite = true;
  const auto sink = [&](std::span<const float> rows, size_t count) {
    finite &= std::ranges::all_of(rows, [](float value) { return std::isfinite(value); });
    if (!finite) return;
    std::ranges::copy(rows.last(next_logits.size()), next_logits.begin());
    if (receiver != nullptr) (*receiver)(rows, count);
  };
  const size_t step_max = engine.forward->limits().step_token_max;
  for (size_t first = 0; first < added.size(); first += step_max) {
    const auto step = added.subspan(first, std::min(step_max, added.size() - first));
    const bool last = first + step.size() == added.size();
    const LogitsWanted now = last || wanted == LogitsWanted::all ? wanted : LogitsWanted::none;
    engine.working_memory->make_room(step.size());
    Status done = engine.forward->step(step, tokens.size(), kv, now, sink, engine.stop);
    if (done.ok() && !finite)
      done = make_error(ErrorKind::corrupt,
                        "{}: the logits at position {} are not finite; the "
                        "file may be damaged",
                        engine.facts.file_name, tokens.size());
    if (!done) {
      tokens.resize(before);
      return done;
    }
    tokens.insert(tokens.end(), step.begin(), step.end());
  }
  logits.swap(next_logits);
  return {};
}

}  // namespace sluice
