// sluice chat MODEL: turns with the model's own chat template.
#include "cli/chat_turns.h"
#include "cli/generation.h"
#include "engine/console.h"

namespace sluice::cli {
namespace {

struct ChatOptions {
  CommonOptions common;
  GenerationOptions generation;
  std::string system;
  const CLI::App* command = nullptr;
};

constexpr std::string_view kHelp =
    "/help          this list\n"
    "/reset         forget the conversation, keep the system prompt\n"
    "/system TEXT   another system prompt; without TEXT none\n"
    "/think on|off  let the model think before it answers, where its template knows it\n"
    "/stats         tokens, rates, hit rate and stall of the last turn and of all\n"
    "/exit          end; so does Ctrl-D. Ctrl-C stops an answer, and here it ends\n"
    "A text of several lines stands between two \"\"\".\n";

/// What the file says of sampling, where no option says otherwise.
void take_sampling_of(const ChatFacts& facts, const CLI::App& command, SamplingOptions& sampling) {
  const auto take = [&](const char* option, const auto& value, auto& target) {
    if (value && command.count(option) == 0)
      target = static_cast<std::remove_reference_t<decltype(target)>>(*value);
  };
  take("--temp", facts.temperature, sampling.temperature);
  take("--top-k", facts.top_k, sampling.top_k);
  take("--top-p", facts.top_p, sampling.top_p);
  take("--min-p", facts.min_p, sampling.min_p);
  take("--repeat-penalty", facts.repeat_penalty, sampling.repeat_penalty);
}

Result<chat::ChatTemplate> template_of(const ChatFacts& facts, const CommonOptions& common) {
  if (facts.chat_template.empty() && !facts.has_chatml)
    return make_error(ErrorKind::usage,
                      "{}: has no chat template (tokenizer.chat_template), and its vocabulary not "
                      "<|im_start|>; 'sluice run' continues plain text",
                      common.model);
  if (facts.chat_template.empty() && !common.quiet)
    write_note(
        "the file has no chat template; ChatML it is, as its vocabulary knows <|im_start|>\n");
  auto parsed = chat::ChatTemplate::parse(facts.chat_template.empty() ? std::string(chat::kChatMl)
                                                                      : facts.chat_template);
  if (!parsed) return parsed.error().at(common.model);
  return parsed;
}

std::string_view name_of(const ChatTurn& turn) {
  if (turn.interrupted) return "interrupted";
  switch (turn.finish) {
    case FinishReason::length:
      return "length";
    case FinishReason::end_of_generation:
      return "end_of_generation";
    case FinishReason::stop_string:
      return "stop_string";
    case FinishReason::context_full:
      return "context_full";
  }
  return "";
}

nlohmann::ordered_json json_of(const ChatTurn& turn) {
  const ChatStats& stats = turn.stats;
  return {{"text", turn.answer},
          {"thinking", turn.thinking},
          {"finish", name_of(turn)},
          {"prompt_tokens", stats.prompt_tokens},
          {"reused_tokens", stats.reused_tokens},
          {"generated_tokens", stats.generated_tokens},
          {"prefill_s", stats.prefill_s},
          {"decode_s", stats.decode_s},
          {"hit_rate", stats.hit_rate()},
          {"stall_s", stats.stall_s}};
}

/// An answer on its way to standard output. Thinking is dimmed on a terminal, and marked elsewhere.
class AnswerPrinter {
 public:
  Status show(const chat::ThinkingStream::Piece& piece) {
    std::string text = mark(piece.is_thinking);
    text += piece.text;
    ends_line_ = text.ends_with('\n');
    return write_output(text);
  }
  Status finish() {
    const std::string text = mark(false);
    return write_output(text + (ends_line_ && text.empty() ? "" : "\n"));
  }

 private:
  std::string mark(bool thinking) {
    if (thinking == thinking_) return {};
    thinking_ = thinking;
    if (terminal_) return thinking ? "\x1b[2m" : "\x1b[0m\n";
    return thinking ? "<think>" : "</think>\n";
  }

  const bool terminal_ = output_is_terminal();
  bool thinking_ = false;
  bool ends_line_ = false;
};

class ChatLoop {
 public:
  ChatLoop(const CommonOptions& common, ChatTurns& turns) : common_(common), turns_(turns) {}

  /// Until the input or the user ends it.
  int run() {
    for (;;) {
      auto text = next_text();
      if (!text) return report(text.error());
      if (!text->has_value()) return finish();
      if ((*text)->empty()) continue;
      if ((*text)->starts_with('/')) {
        if (**text == "/exit") return finish();
        obey(**text);
        continue;
      }
      if (const Status done = answer(**text); !done) return report(done);
    }
  }

 private:
  int finish() {
    if (is_terminal_) write_note("\n");
    return exit_code_;
  }

  Result<std::optional<std::string>> next_line(std::string_view sign) {
    if (is_terminal_) write_note(sign);
    return read_line(pending_);
  }

  /// A line, or the lines between two """; the end of the input ends those too.
  Result<std::optional<std::string>> next_text() {
    constexpr std::string_view kFence = "\"\"\"";
    auto line = next_line("> ");
    if (!line || !line->has_value() || !(*line)->starts_with(kFence)) return line;
    std::string text = (*line)->substr(kFence.size());
    while (!text.ends_with(kFence)) {
      line = next_line(". ");
      if (!line) return line;
      if (!line->has_value()) return text.empty() ? *line : std::optional(std::move(text));
      text += (text.empty() ? "" : "\n") + **line;
    }
    text.resize(text.size() - kFence.size());
    if (text.ends_with('\n')) text.pop_back();
    return std::optional(std::move(text));
  }

  void obey(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string word = line.substr(0, space);
    const std::string rest = line.substr(std::min(space + 1, line.size()));
    if (word == "/help") {
      write_note(kHelp);
    } else if (word == "/reset") {
      turns_.reset();
    } else if (word == "/system") {
      turns_.set_system(rest);
    } else if (word == "/stats") {
      write_note(fmt::format("last turn: {}\nall {}: {}\n", turns_.last().text(),
                             turns_.all().turns, turns_.all().text()));
    } else if (word == "/think" && (rest == "on" || rest == "off")) {
      if (!turns_.set_thinking(rest == "on"))
        write_note("this model's template has no switch for thinking (enable_thinking)\n");
    } else {
      write_note(fmt::format("there is no command '{}'; /help lists them\n", line));
    }
  }

  /// An error is one that ends the chat.
  Status answer(const std::string& text) {
    AnswerPrinter printer;
    bool shown_any = false;
    Status output;
    const auto show = [&](const chat::ThinkingStream::Piece& piece) {
      if (!common_.json) output = printer.show(piece);
      shown_any = true;
      return output;
    };
    const auto turn = turns_.ask(text, show);
    if (!output.ok()) return output;
    if (!common_.json && (shown_any || turn.ok()))
      if (const Status ended = printer.finish(); !ended) return ended;
    if (!turn) {
      if (turn.error().kind == ErrorKind::interrupted) return turn.error();
      const int code = report(turn.error());
      if (!is_terminal_) exit_code_ = code;
      return {};
    }
    if (common_.json) return print_json(json_of(*turn));
    if (turn->finish == FinishReason::context_full)
      write_note(
          "the context is full, the answer ends here; /reset begins anew, a larger --ctx "
          "holds more\n");
    return {};
  }

  const CommonOptions& common_;
  ChatTurns& turns_;
  const bool is_terminal_ = input_is_terminal();
  std::string pending_;
  int exit_code_ = kExitDone;  ///< of the last turn that failed, where nobody watches
};

int run(const ChatOptions& options) {
  const CommonOptions& common = options.common;
  const auto facts = read_chat_facts(common.model);
  if (!facts) return report(facts.error());
  auto chat_template = template_of(*facts, common);
  if (!chat_template) return report(chat_template.error());
  GenerateRequest request = options.generation.request;
  take_sampling_of(*facts, *options.command, request.sampling);
  request.sampling.seed = common.seed;
  if (const Status valid = check_sampling(request.sampling); !valid) return report(valid);

  auto engine = open_engine(common);
  if (!engine) return report(engine.error());
  auto session = (*engine)->new_session();
  if (!session) return report(session.error());
  ChatTurns turns(**engine, **session, *std::move(chat_template), *facts, std::move(request));
  turns.set_system(options.system);
  if (!common.quiet && input_is_terminal())
    write_note("/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends\n");
  return ChatLoop(common, turns).run();
}

}  // namespace

void add_chat(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "talk with a model, by its chat template");
  options->command = command;
  add_model_argument(*command, options->common.model,
                     "a GGUF file, any shard of a set, or the folder of one");
  command->add_option("--system", options->system, "the system prompt")
      ->type_name("TEXT")
      ->group("Conversation");
  options->generation.request.token_max = 4096;
  options->generation.add_to(*command);
  add_common_options(*command, options->common);
  set_help(*command,
           {.arguments = "MODEL [--system TEXT] [options]",
            .notes = {"One line is one turn, or the lines between two \"\"\". /help lists the "
                      "commands. Sampling follows the file's own wishes (general.sampling.*) "
                      "unless an option says otherwise. Input may come from a pipe."},
            .examples = {"sluice chat MODEL.gguf --system \"Answer in one sentence.\"",
                         "sluice chat MODEL.gguf --json --quiet < questions.txt"}});
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace sluice::cli
