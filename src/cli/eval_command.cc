// sluice eval MODEL --tokens LIST --logits OUT: the logits of every position.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cli/command.h"
#include "engine/generate.h"

namespace sluice::cli {
namespace {

struct EvalOptions {
  CommonOptions common;
  std::string tokens;
  std::string tokens_file;
  std::string logits;
  bool steps = false;
};

/// A file being written; the first failure is remembered.
class LogitsFile {
 public:
  explicit LogitsFile(const std::string& path)
      : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    note(file_ != nullptr);
  }
  ~LogitsFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  LogitsFile(const LogitsFile&) = delete;
  LogitsFile& operator=(const LogitsFile&) = delete;

  void add(std::span<const float> rows) {
    if (status_.ok())
      note(std::fwrite(rows.data(), sizeof(float), rows.size(), file_) == rows.size());
  }
  const Status& close() {
    if (file_ != nullptr) note(std::fclose(std::exchange(file_, nullptr)) == 0);
    return status_;
  }
  const Status& status() const { return status_; }

 private:
  void note(bool done) {
    if (!done && status_.ok())
      status_ = make_error(ErrorKind::io, "{}: cannot write the logits: {}", path_,
                           std::generic_category().message(errno));
  }

  const std::string path_;
  std::FILE* file_;
  Status status_;
};

Result<std::vector<text::TokenId>> read_tokens(const EvalOptions& options, size_t token_count) {
  if (options.tokens_file.empty()) return parse_tokens(options.tokens, token_count);
  auto list = read_text(options.tokens_file);
  if (!list) return list.error();
  return parse_tokens(*list, token_count);
}

/// Writing begins by emptying the file.
Status spare_model(const ModelFacts& model, const std::string& logits) {
  std::error_code ignored;  // a file that is not there yet is no model
  for (const std::string& path : model.paths)
    if (std::filesystem::equivalent(path, logits, ignored))
      return make_error(ErrorKind::usage, "{}: this is the model; write the logits elsewhere",
                        logits);
  return {};
}

Status evaluate(Session& session, std::span<const text::TokenId> tokens, bool steps,
                LogitsReceiver receiver) {
  if (!steps) return session.prefill(tokens, receiver);
  for (const text::TokenId token : tokens) {
    if (Status done = session.decode(token); !done) return done;
    receiver(session.logits(), 1);
  }
  return {};
}

int eval(const EvalOptions& options) {
  if (options.tokens.empty() == options.tokens_file.empty())
    return report(make_error(ErrorKind::usage, "give tokens: --tokens LIST or --tokens-file FILE"));
  auto engine = open_engine(options.common);
  if (!engine) return report(engine.error());
  auto tokens = read_tokens(options, (*engine)->facts().vocabulary_size);
  if (!tokens) return report(tokens.error());
  if (tokens->empty()) return report(make_error(ErrorKind::usage, "the list of tokens is empty"));
  if (Status spared = spare_model((*engine)->facts(), options.logits); !spared)
    return report(spared);
  auto session = (*engine)->new_session();
  if (!session) return report(session.error());

  LogitsFile file(options.logits);
  if (!file.status()) return report(file.status());
  Hash128 hash;
  const auto receive = [&](std::span<const float> rows, size_t) {
    hash.add(rows);
    file.add(rows);
  };
  if (Status done = evaluate(**session, *tokens, options.steps, receive); !done)
    return report(done);
  if (const Status& closed = file.close(); !closed) return report(closed);
  if (!options.common.json) return report(print_output("hash: {}\n", hash.hex()));
  return report(print_json({{"tokens", tokens->size()},
                            {"vocabulary", (*engine)->facts().vocabulary_size},
                            {"hash", hash.hex()}}));
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "write the logits of every position");
  add_model_argument(*command, options->common.model,
                     "a GGUF file, any shard of a set, or the folder of one");
  command->add_option("--tokens", options->tokens, "token ids: 1,2,3")
      ->type_name("LIST")
      ->group("Tokens (one of)");
  command->add_option("--tokens-file", options->tokens_file, "token ids from a file; - is stdin")
      ->type_name("FILE")
      ->group("Tokens (one of)");
  command->add_option("--logits", options->logits, "where the logits go: raw float32")
      ->required()
      ->type_name("OUT")
      ->group("Output");
  command->add_flag("--steps", options->steps, "token by token instead of in one batch")
      ->group("Output");
  add_common_options(*command, options->common);
  set_help(
      *command,
      {.arguments = "MODEL (--tokens LIST | --tokens-file FILE) --logits OUT [options]",
       .notes = {"OUT gets float32, little-endian, [tokens][vocabulary]. The bytes are the same "
                 "in one batch and with --steps, on any machine, at any cache size. Prints a "
                 "checksum of them."},
       .examples = {"sluice eval models/demo-q4_k_m.gguf --tokens 34,409,336 --logits out.f32"}});
  command->callback([options, &exit_code] { exit_code = eval(*options); });
}

}  // namespace sluice::cli
