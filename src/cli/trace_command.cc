// sluice trace info FILE, sluice trace replay FILE: recordings of routing, looked at and replayed.
#include "cli/command.h"
#include "cli/trace_report.h"

namespace sluice::cli {
namespace {

/// The file, and how it lies there where it is bare ids.
struct TraceSource {
  std::string path;
  RawTraceLayout raw;
  bool json = false;

  void add_to(CLI::App& command) {
    command.add_option("FILE", path, "a recording made with --moe-stream-trace")
        ->required()
        ->group("Arguments");
    const char* group = "Bare ids, [token][layer][used], strongest first";
    CLI::Option* layers = add_number(command, "--layers", raw.layer_count, {1, kTraceLayersMax},
                                     "layers with experts in the file");
    CLI::Option* experts = add_number(command, "--experts", raw.expert_count, {1, kTraceExpertsMax},
                                      "experts of a layer; up to 256 take a byte, more take two");
    CLI::Option* used =
        add_number(command, "--used", raw.used_count, {1, kTraceUsedMax}, "experts a token uses");
    for (CLI::Option* option : {layers, experts, used}) option->group(group)->default_str("");
    layers->needs(experts)->needs(used);
    experts->needs(layers);
    used->needs(layers);
    command.add_flag("--json", json, "print one JSON object")->group("Options");
  }
  std::optional<RawTraceLayout> layout() const {
    if (raw.layer_count == 0) return std::nullopt;
    return raw;
  }
};

struct ReplayOptions {
  TraceSource source;
  ReplayRequest request;
};

int info(const TraceSource& source) {
  const auto facts = describe_trace(source.path, source.layout());
  if (!facts) return report(facts.error());
  if (source.json) return report(print_json(trace_info_json(*facts)));
  return report(write_output(trace_info_text(*facts)));
}

int replay(ReplayOptions& options) {
  options.request.path = options.source.path;
  options.request.raw = options.source.layout();
  const auto replayed = replay_trace(options.request);
  if (!replayed) return report(replayed.error());
  if (options.source.json) return report(print_json(replay_json(*replayed)));
  return report(write_output(replay_text(*replayed)));
}

/// The words between commas.
std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// What is wrong with the first word that is not `allowed`; empty when all are.
template <typename Check>
std::string check_list(const std::string& list, const Check& check) {
  for (const std::string& word : split_list(list))
    if (std::string problem = check(word); !problem.empty()) return problem;
  return {};
}

constexpr Bounds<uint32_t> kSlotBounds = {1, kTraceExpertsMax};

void add_slots(CLI::App& command, std::vector<uint32_t>& slot_counts) {
  const auto check = [](const std::string& list) {
    return check_list(list, [](const std::string& word) {
      const auto number = parse_number(word, kSlotBounds);
      return number.ok() ? std::string() : number.error().message;
    });
  };
  const auto set = [&slot_counts](const std::string& list) {
    slot_counts.clear();
    for (const std::string& word : split_list(list))
      slot_counts.push_back(*parse_number(word, kSlotBounds));
  };
  command.add_option_function<std::string>("--slots", set, "slots for each layer")
      ->check(check)
      ->type_name("N,N,...")
      ->default_str("shares of the experts")
      ->group("Options");
}

void add_policies(CLI::App& command, std::vector<std::string>& policies) {
  const auto check = [](const std::string& list) {
    return check_list(list, [](const std::string& word) {
      const auto names = replay_policy_names();
      if (std::ranges::find(names, word) != names.end()) return std::string();
      return fmt::format("'{}' is not allowed; give some of {}", word, fmt::join(names, ", "));
    });
  };
  const auto set = [&policies](const std::string& list) { policies = split_list(list); };
  command
      .add_option_function<std::string>(
          "--evict", set,
          "which expert leaves: " + fmt::format("{}", fmt::join(replay_policy_names(), ", ")))
      ->check(check)
      ->type_name("P,P,...")
      ->default_str("all")
      ->group("Options");
}

void add_pool(CLI::App& command, PoolKind& pool) {
  const auto check = [](const std::string& word) {
    if (word == "layer" || word == "ring") return std::string();
    return fmt::format("'{}' is not allowed; give layer or ring", word);
  };
  const auto set = [&pool](const std::string& word) {
    pool = word == "ring" ? PoolKind::ring : PoolKind::layer;
  };
  command
      .add_option_function<std::string>(
          "--pool", set, "each layer its own slots, or as many for all layers together")
      ->check(check)
      ->type_name("layer|ring")
      ->default_str("layer")
      ->group("Options");
}

void add_info(CLI::App& trace, int& exit_code) {
  auto source = std::make_shared<TraceSource>();
  CLI::App* command = trace.add_subcommand("info", "say what a recording holds");
  source->add_to(*command);
  set_help(*command, {.arguments = "FILE [options]",
                      .notes = {},
                      .examples = {"sluice trace info routing.trace"}});
  command->callback([source, &exit_code] { exit_code = info(*source); });
}

void add_replay(CLI::App& trace, int& exit_code) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command =
      trace.add_subcommand("replay", "count the misses of each eviction policy and cache size");
  options->source.add_to(*command);
  add_slots(*command, options->request.slot_counts);
  add_policies(*command, options->request.policies);
  add_pool(*command, options->request.pool);
  add_number(*command, "--half-life", options->request.half_life_tokens, {1, 1u << 20},
             "tokens after which decay counts a use half")
      ->group("Options");
  set_help(*command, {.arguments = "FILE [options]",
                      .notes = {"belady knows the future: no policy can miss less."},
                      .examples = {"sluice trace replay routing.trace --slots 8,16,24",
                                   "sluice trace replay ids.u8 --layers 8 --experts 32 --used 4"}});
  command->callback([options, &exit_code] { exit_code = replay(*options); });
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("trace", "look at a recording of routing, or replay it");
  command->require_subcommand(1);
  add_info(*command, exit_code);
  add_replay(*command, exit_code);
  set_help(*command, {.arguments = "info|replay FILE [options]",
                      .notes = {"--moe-stream-trace FILE makes a recording while a model runs."},
                      .examples = {"sluice trace info routing.trace",
                                   "sluice trace replay routing.trace --slots 8,16,24"}});
}

}  // namespace sluice::cli
