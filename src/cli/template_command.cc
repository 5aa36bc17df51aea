// sluice template (MODEL | FILE.jinja) --messages FILE.json: the prompt as text.
#include <ctime>

#include "chat/conversation_file.h"
#include "chat/prompt.h"
#include "cli/command.h"
#include "engine/chat_facts.h"

namespace sluice::cli {
namespace {

struct TemplateCommand {
  std::string source;
  std::string messages;
};

/// The template and the tokens that go with it.
Result<ChatFacts> read_source(const std::string& path) {
  if (!path.ends_with(".jinja")) {
    auto facts = read_chat_facts(path);
    if (facts.ok() && facts->chat_template.empty())
      return make_error(ErrorKind::usage,
                        "{}: has no chat template (tokenizer.chat_template); give a FILE.jinja",
                        path);
    return facts;
  }
  auto text = read_text(path);
  if (!text) return text.error();
  ChatFacts facts;
  facts.chat_template = *std::move(text);
  return facts;
}

Result<std::string> render(const TemplateCommand& options) {
  auto facts = read_source(options.source);
  if (!facts) return facts.error();
  const auto json = read_text(options.messages);
  if (!json) return json.error();
  auto file = chat::parse_conversation(*json);
  if (!file) return file.error().at(options.messages);
  jinja::Conversation& conversation = file->conversation;
  conversation.bos_token = file->bos_token.value_or(facts->bos_token);
  conversation.eos_token = file->eos_token.value_or(facts->eos_token);
  const auto chat_template = chat::ChatTemplate::parse(std::move(facts->chat_template));
  if (!chat_template) return chat_template.error().at(options.source);
  const std::time_t now = std::time(nullptr);
  const auto spans =
      chat_template->render(conversation, {.now = file->now.value_or(*std::localtime(&now))});
  if (!spans) return spans.error().at(options.source);
  return jinja::text_of(*spans);
}

int run(const TemplateCommand& options) {
  const auto text = render(options);
  return report(text.ok() ? write_output(*text) : Status(text.error()));
}

}  // namespace

void add_template(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TemplateCommand>();
  CLI::App* command = app.add_subcommand("template", "print a conversation as the prompt it makes");
  add_model_argument(*command, options->source, "a GGUF file, or a template: FILE.jinja");
  command
      ->add_option("--messages", options->messages,
                   "JSON: {messages, tools, kwargs, bos_token, eos_token, now}, all but messages "
                   "optional; - is standard input")
      ->required()
      ->type_name("FILE")
      ->group("Options");
  set_help(*command, {.arguments = "MODEL|FILE.jinja --messages FILE.json",
                      .notes = {"The prompt goes to standard output as it is, nothing is added."},
                      .examples = {"sluice template MODEL.gguf --messages chat.json"}});
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace sluice::cli
