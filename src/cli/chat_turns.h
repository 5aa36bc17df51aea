// A conversation with a model: the messages so far, and the session that holds what of them is
// computed. A turn renders the whole conversation anew, keeps the session's common beginning and
// computes the rest. A turn that fails leaves the messages as they were. One thread.
#pragma once

#include <functional>
#include <string>

#include "chat/prompt.h"
#include "chat/thinking.h"
#include "engine/chat_facts.h"
#include "engine/generate.h"

namespace sluice::cli {

/// Sums over one turn or all.
struct ChatStats {
  size_t turns = 0;
  size_t prompt_tokens = 0;  ///< of the whole conversation, each turn
  size_t reused_tokens = 0;  ///< of them, those that were computed already
  size_t generated_tokens = 0;
  double prefill_s = 0;
  double decode_s = 0;
  size_t decode_steps = 0;
  uint64_t lookups = 0;
  uint64_t hits = 0;
  double stall_s = 0;

  void add(const ChatStats& turn);
  double hit_rate() const;
  /// One line.
  std::string text() const;
};

struct ChatTurn {
  std::string thinking;
  std::string answer;
  bool interrupted = false;  ///< by Ctrl-C; what came before is kept
  FinishReason finish = FinishReason::length;
  ChatStats stats;
};

using PieceReceiver = std::function<Status(const chat::ThinkingStream::Piece&)>;

class ChatTurns {
 public:
  /// `request`: how to sample and how long; its prompt is not looked at.
  ChatTurns(Engine& engine, Session& session, chat::ChatTemplate chat_template,
            const ChatFacts& facts, GenerateRequest request);

  /// The user says something and the model answers. An interruption that comes with a part of the
  /// answer is no error.
  Result<ChatTurn> ask(const std::string& text, const PieceReceiver& on_piece);

  void reset();                       ///< forgets all but the system prompt
  void set_system(std::string text);  ///< empty: none
  bool set_thinking(bool on);         ///< false: the template does not know it
  const ChatStats& all() const { return all_; }
  const ChatStats& last() const { return last_; }

 private:
  jinja::Json messages_with(const std::string& text) const;
  jinja::Json answer_message(const std::string& raw, const ChatTurn& turn) const;

  Engine& engine_;
  Session& session_;
  const chat::ChatTemplate template_;
  GenerateRequest request_;
  jinja::Conversation conversation_;
  std::string system_;
  jinja::Json history_ = jinja::Json::array();  ///< what was said, in turns
  ChatStats all_;
  ChatStats last_;
};

}  // namespace sluice::cli
