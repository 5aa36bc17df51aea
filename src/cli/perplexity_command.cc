// sluice perplexity MODEL -f FILE: how well a model foresees a text, and how far its probabilities
// are from those that another engine stored.
#include <filesystem>
#include <system_error>

#include "cli/command.h"
#include "cli/perplexity_report.h"

namespace sluice::cli {
namespace {

struct PerplexityOptions {
  CommonOptions common;
  std::string file;
  std::string base;
  std::string save;
  uint32_t chunks = 0;
};

/// A session is as long as a chunk.
Status choose_context(uint32_t& context, const LogitsBaseReader* base) {
  constexpr uint32_t kDefault = 512;
  if (base == nullptr) {
    if (context == 0) context = kDefault;
    if (context >= ChunkShape::kContextMin) return {};
    return make_error(ErrorKind::usage, "--ctx {}: a chunk takes at least {} tokens", context,
                      ChunkShape::kContextMin);
  }
  const uint32_t wanted = base->shape().context_tokens;
  if (context == 0) context = wanted;
  if (context == wanted) return {};
  return make_error(ErrorKind::usage, "--ctx {}: the chunks of {} have {} tokens; leave it out",
                    context, base->name(), wanted);
}

Result<PerplexityResult> measure(const PerplexityOptions& options, PerplexityRequest request) {
  std::string text;
  if (request.base == nullptr) {
    auto read = read_text(options.file);
    if (!read) return read.error();
    text = *std::move(read);
  }
  auto engine = open_engine(options.common);
  if (!engine) return engine.error();
  if (request.base == nullptr) request.tokens = tokens_to_score((*engine)->tokenizer(), text);
  auto session = (*engine)->new_session();
  if (!session) return session.error();
  const Log log = options.common.log();
  return measure_perplexity(**engine, **session, request, [&](const PerplexityResult& so_far) {
    log.info("{}", progress_line(so_far));
  });
}

int perplexity(PerplexityOptions& options) {
  if (options.file.empty() && options.base.empty())
    return report(make_error(ErrorKind::usage,
                             "give a text with -f FILE, or a base with --logits-base FILE"));
  std::error_code ignored;  // a file that is not there yet is not the base
  if (std::filesystem::equivalent(options.base, options.save, ignored))
    return report(make_error(ErrorKind::usage, "{}: this is the base; save the logits elsewhere",
                             options.save));
  std::optional<LogitsBaseReader> base;
  if (!options.base.empty()) {
    auto opened = LogitsBaseReader::open(options.base);
    if (!opened) return report(opened.error());
    base.emplace(*std::move(opened));
    if (!options.file.empty())
      options.common.log().info("the tokens are those of {}; {} is not read", options.base,
                                options.file);
  }
  uint32_t& context = options.common.engine.context_tokens;
  LogitsBaseReader* const compared = base ? &*base : nullptr;
  if (Status fine = choose_context(context, compared); !fine) return report(fine);
  const auto result = measure(options, {.tokens = {},
                                        .base = compared,
                                        .context_tokens = context,
                                        .chunk_max = options.chunks,
                                        .save_path = options.save});
  if (!result) return report(result.error());
  if (options.common.json) return report(print_json(perplexity_json(*result)));
  return report(write_output(perplexity_text(*result)));
}

}  // namespace

void add_perplexity(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PerplexityOptions>();
  CLI::App* command = app.add_subcommand("perplexity", "measure how well a model foresees a text");
  add_model_argument(*command, options->common.model,
                     "a GGUF file, any shard of a set, or the folder of one");
  const char* group = "Text and base";
  command->add_option("-f,--file", options->file, "the text; - is standard input")
      ->type_name("FILE")
      ->group(group);
  command
      ->add_option("--logits-base", options->base,
                   "compare with these probabilities, as llama-perplexity "
                   "--kl-divergence-base writes them; the tokens are the file's")
      ->type_name("FILE")
      ->group(group);
  command
      ->add_option("--save-logits", options->save,
                   "write such a file, for others to compare with this model")
      ->type_name("FILE")
      ->group(group);
  add_number(*command, "--chunks", options->chunks, {0, 1u << 30}, "at most so many; 0 takes all")
      ->group(group);
  add_common_options(*command, options->common);
  set_help(*command,
           {.arguments = "MODEL (-f FILE | --logits-base FILE) [options]",
            .notes = {"Computes what llama-perplexity computes: the text is cut into chunks of "
                      "--ctx tokens (here 512 by default), and the second half of each is scored. "
                      "A base brings its own chunks."},
            .examples = {"sluice perplexity MODEL.gguf -f book.txt",
                         "sluice perplexity MODEL.gguf --logits-base book.kld --chunks 20"}});
  command->callback([options, &exit_code] { exit_code = perplexity(*options); });
}

}  // namespace sluice::cli
