// sluice eval MODEL --tokens LIST --logits OUT: the logits of every position, for comparing engines.
#include <cstdio>

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
  explicit LogitsFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    failed_ = file_ == nullptr;
  }
  ~LogitsFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  LogitsFile(const LogitsFile&) = delete;
  LogitsFile& operator=(const LogitsFile&) = delete;

  void add(std::span<const float> rows) {
    if (failed_) return;
    failed_ = std::fwrite(rows.data(), sizeof(float), rows.size(), file_) != rows.size();
  }
  Status close() {
    if (file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) != 0) failed_ = true;
    if (failed_) return make_error(ErrorKind::io, "{}: cannot write the logits", path_);
    return {};
  }
  bool failed() const { return failed_; }

 private:
  const std::string path_;
  std::FILE* file_;
  bool failed_ = false;
};

Result<std::vector<text::TokenId>> read_tokens(const EvalOptions& options, size_t token_count) {
  if (options.tokens_file.empty()) return parse_tokens(options.tokens, token_count);
  auto list = read_input(options.tokens_file);
  if (!list) return list.error();
  return parse_tokens(*list, token_count);
}

Status evaluate(Session& session, std::span<const text::TokenId> tokens, bool steps,
                const LogitsReceiver& receiver) {
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
  auto session = (*engine)->new_session();
  if (!session) return report(session.error());

  LogitsFile file(options.logits);
  if (file.failed()) return report(file.close().error());
  Hash128 hash;
  const auto receive = [&](std::span<const float> rows, size_t) {
    hash.add(rows);
    file.add(rows);
  };
  if (Status done = evaluate(**session, *tokens, options.steps, receive); !done)
    return report(done.error());
  if (Status closed = file.close(); !closed) return report(closed.error());
  if (options.common.json)
    fmt::print("{{\"tokens\": {}, \"vocabulary\": {}, \"hash\": \"{}\"}}\n", tokens->size(),
               (*engine)->facts().vocabulary_size, hash.hex());
  else
    fmt::print("hash: {}\n", hash.hex());
  return kExitDone;
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "write the logits of every position");
  add_common_options(*command, options->common);
  command->add_option("--tokens", options->tokens, "token ids: 1,2,3");
  command->add_option("--tokens-file", options->tokens_file, "token ids from a file");
  command->add_option("--logits", options->logits, "output: raw float32 [tokens][vocabulary]")
      ->required();
  command->add_flag("--steps", options->steps, "token by token instead of in one batch");
  command->callback([options, &exit_code] { exit_code = eval(*options); });
}

}  // namespace sluice::cli
