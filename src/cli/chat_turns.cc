#include "cli/chat_turns.h"

#include <ctime>

#include "engine/console.h"

namespace sluice::cli {
namespace {

double ratio(double a, double b) {
  return b > 0 ? a / b : 0.0;
}

ChatStats stats_of(const GenerateResult& result, size_t prompt_tokens, size_t reused_tokens) {
  ChatStats stats{.turns = 1, .prompt_tokens = prompt_tokens, .reused_tokens = reused_tokens};
  stats.generated_tokens = result.tokens.size();
  stats.prefill_s = result.prefill_s;
  stats.decode_s = result.decode_s;
  stats.decode_steps = result.decode_steps;
  stats.lookups = result.decode_moe.lookups;
  stats.hits = result.decode_moe.hits;
  stats.stall_s = result.prefill_moe.stall_s + result.decode_moe.stall_s;
  return stats;
}

}  // namespace

void ChatStats::add(const ChatStats& turn) {
  turns += turn.turns;
  prompt_tokens += turn.prompt_tokens;
  reused_tokens += turn.reused_tokens;
  generated_tokens += turn.generated_tokens;
  prefill_s += turn.prefill_s;
  decode_s += turn.decode_s;
  decode_steps += turn.decode_steps;
  lookups += turn.lookups;
  hits += turn.hits;
  stall_s += turn.stall_s;
}

double ChatStats::hit_rate() const {
  return ratio(double(hits), double(lookups));
}

std::string ChatStats::text() const {
  return fmt::format(
      "prompt {} tokens, {} of them reused, {:.1f} tokens/s; answer {} tokens, {:.1f} tokens/s; "
      "hit rate {:.1f} %, stall {:.2f} s",
      prompt_tokens, reused_tokens, ratio(double(prompt_tokens - reused_tokens), prefill_s),
      generated_tokens, ratio(double(decode_steps), decode_s), 100 * hit_rate(), stall_s);
}

ChatTurns::ChatTurns(Engine& engine, Session& session, chat::ChatTemplate chat_template,
                     const ChatFacts& facts, GenerateRequest request)
    : engine_(engine),
      session_(session),
      template_(std::move(chat_template)),
      request_(std::move(request)) {
  conversation_.bos_token = facts.bos_token;
  conversation_.eos_token = facts.eos_token;
  conversation_.arguments["add_generation_prompt"] = true;
}

void ChatTurns::reset() {
  history_ = jinja::Json::array();
}

void ChatTurns::set_system(std::string text) {
  system_ = std::move(text);
}

bool ChatTurns::set_thinking(bool on) {
  if (!template_.mentions("enable_thinking")) return false;
  conversation_.arguments["enable_thinking"] = on;
  return true;
}

jinja::Json ChatTurns::messages_with(const std::string& text) const {
  jinja::Json messages = jinja::Json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  messages.insert(messages.end(), history_.begin(), history_.end());
  messages.push_back({{"role", "user"}, {"content", text}});
  return messages;
}

/// A template that has a word for thinking gets it apart; any other takes what the model wrote, and
/// cuts it as it likes.
jinja::Json ChatTurns::answer_message(const std::string& raw, const ChatTurn& turn) const {
  if (turn.thinking.empty() || !template_.mentions("reasoning_content"))
    return {{"role", "assistant"}, {"content", raw}};
  return {{"role", "assistant"}, {"content", turn.answer}, {"reasoning_content", turn.thinking}};
}

Result<ChatTurn> ChatTurns::ask(const std::string& text, const PieceReceiver& on_piece) {
  conversation_.messages = messages_with(text);
  const std::time_t now = std::time(nullptr);
  const auto spans = template_.render(conversation_, {.now = *std::localtime(&now)});
  if (!spans) return spans.error();
  const auto tokens = chat::tokens_of(*spans, engine_.tokenizer());
  if (tokens.empty()) return make_error(ErrorKind::usage, "the template makes an empty prompt");
  if (tokens.size() >= engine_.mode().context_tokens)
    return make_error(ErrorKind::usage,
                      "the conversation has {} tokens, the context {}; /reset begins anew, a "
                      "larger --ctx holds more",
                      tokens.size(), engine_.mode().context_tokens);
  const size_t reused = session_.keep_prefix(tokens);
  request_.prompt.assign(tokens.begin() + static_cast<ptrdiff_t>(reused), tokens.end());

  ChatTurn turn;
  std::string raw;
  chat::ThinkingStream stream(spans->back().is_template ? spans->back().text : "");
  const auto show = [&](const std::vector<chat::ThinkingStream::Piece>& pieces) -> Status {
    for (const auto& piece : pieces) {
      (piece.is_thinking ? turn.thinking : turn.answer) += piece.text;
      if (const Status shown = on_piece(piece); !shown) return shown;
    }
    return {};
  };
  const auto result = generate(engine_, session_, request_, [&](std::string_view ready) -> Status {
    raw += ready;
    return show(stream.push(ready));
  });
  if (const Status shown = show(stream.flush()); !shown) return shown.error();
  if (!result) {
    const bool by_user = result.error().kind == ErrorKind::interrupted;
    if (!by_user || !go_on_after_interrupt()) return result.error();
    turn.interrupted = true;
    if (raw.empty()) return turn;  // nothing was said
  } else {
    turn.finish = result->finish;
    turn.stats = stats_of(*result, tokens.size(), reused);
    last_ = turn.stats;
    all_.add(last_);
  }
  ++request_.sampling.seed;  // not the same draws for each answer
  history_.push_back({{"role", "user"}, {"content", text}});
  history_.push_back(answer_message(raw, turn));
  return turn;
}

}  // namespace sluice::cli
