#include <algorithm>
#include <cmath>

#include "engine/engine_impl.h"

namespace sluice {
namespace {

/// A chat template may end a prompt with a few tokens that are gone when the answer has become part
/// of the next prompt: a snapshot before them is one that the next prompt can go on from.
constexpr size_t kTokensBehindSnapshot = 16;

size_t less_one(size_t count) {
  return count > 0 ? count - 1 : 0;
}

}  // namespace

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
  return state_->has_logits ? std::span<const float>(state_->logits) : std::span<const float>{};
}

std::span<const text::TokenId> Session::tokens() const {
  return state_->tokens;
}
void Session::reset() {
  keep_prefix({});
}

size_t Session::keep_prefix(std::span<const text::TokenId> wanted) {
  const auto [ours, theirs] = std::ranges::mismatch(state_->tokens, wanted);
  const auto common = static_cast<size_t>(ours - state_->tokens.begin());
  const size_t kept = state_->sequence.rewind(std::min(common, less_one(wanted.size())));
  state_->has_logits &= kept == state_->tokens.size();
  state_->tokens.resize(kept);
  return kept;
}

Status SessionState::check(std::span<const text::TokenId> added) const {
  CHECK(!added.empty());
  const size_t room = sequence.context_token_max() - tokens.size();
  if (added.size() > room)
    return make_error(ErrorKind::usage,
                      "a prompt of {} tokens{} does not fit the context of {}; raise --ctx or "
                      "shorten the prompt",
                      added.size(),
                      tokens.empty() ? "" : fmt::format(" behind {} others", tokens.size()),
                      sequence.context_token_max());
  for (const text::TokenId token : added)
    if (token < 0 || static_cast<size_t>(token) >= engine.facts.vocabulary_size)
      return make_error(ErrorKind::usage, "{} is not a token of this model", token);
  return {};
}

/// If a step fails, the session stands where it stood before the call. What the step had
/// overwritten by then is made again from the tokens, when the next step needs it.
Status SessionState::append(std::span<const text::TokenId> added, LogitsWanted wanted,
                            const LogitsReceiver* receiver) {
  if (Status valid = check(added); !valid) return valid;
  const IdleFill::Request request(*engine.idle_fill);
  const size_t before = tokens.size();
  if (added.size() > 1) {
    engine.store->mark();
    const size_t behind = std::min(added.size(), kTokensBehindSnapshot);
    sequence.plan_snapshot(before + added.size() - behind);
  }
  Status done;
  if (sequence.position() < before)
    done = run(std::span(tokens).subspan(sequence.position()), LogitsWanted::none, nullptr);
  if (done.ok()) done = run(added, wanted, receiver);
  if (!done) {
    sequence.rewind(before);
    return done;
  }
  tokens.insert(tokens.end(), added.begin(), added.end());
  logits.swap(next_logits);
  has_logits = true;
  return {};
}

/// Runs tokens behind those that the sequence has seen, in steps.
Status SessionState::run(std::span<const text::TokenId> added, LogitsWanted wanted,
                         const LogitsReceiver* receiver) {
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
    if (Status done = engine.forward->step(step, sequence, now, sink, engine.stop); !done)
      return done;
    if (!finite)
      return make_error(ErrorKind::corrupt,
                        "{}: the logits at position {} are not finite; the "
                        "file may be damaged",
                        engine.facts.file_name, sequence.position() - step.size());
  }
  return {};
}

}  // namespace sluice
