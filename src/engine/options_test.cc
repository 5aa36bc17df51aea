#include "engine/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace sluice {
namespace {

using ::testing::HasSubstr;

/// Every field, for comparing.
auto fields(const EngineOptions& options) {
  return std::tuple(options.threads, options.context_tokens, options.kv, options.isa,
                    options.ubatch_tokens, options.ram_bytes, options.stream, options.cache.bytes,
                    options.cache.slots_per_layer, options.headroom_bytes, options.evict,
                    options.direct, options.io, options.io_threads, options.pool,
                    options.ring_slots, options.half_life_tokens, options.prefetch_chunk_bytes,
                    options.prefetch_cap, options.prefetch_cap_demand, options.lookahead_layers,
                    options.lookahead_width, options.lookahead_first, options.correction_path,
                    options.spec_count, options.governor, options.readahead_layers, options.prewarm,
                    options.census, options.trace_path, options.trace_scores);
}

EngineOptions with(std::string_view name, std::string_view text) {
  EngineOptions options;
  const Status set = set_option(options, name, text);
  EXPECT_TRUE(set.ok()) << name << " " << text << ": " << set.error().message;
  return options;
}

TEST(Options, DefaultOfEachRowIsThatOfTheStruct) {
  for (const OptionSpec& spec : option_table())
    EXPECT_EQ(fields(with(spec.name, spec.fallback)), fields(EngineOptions{})) << spec.name;
}

TEST(Options, EachRowSaysWhatItDoesInOneLine) {
  std::set<std::string_view> names;
  for (const OptionSpec& spec : option_table()) {
    EXPECT_TRUE(spec.name.starts_with("--")) << spec.name;
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " is there twice";
    for (const std::string_view line : {spec.values, spec.fallback, spec.help, spec.reason}) {
      EXPECT_FALSE(line.empty()) << spec.name;
      EXPECT_EQ(line.find('\n'), std::string_view::npos) << spec.name;
    }
  }
}

TEST(Options, ValuesReachTheirFields) {
  EXPECT_EQ(with("--threads", "3").threads, 3u);
  EXPECT_EQ(with("--ctx", "16777216").context_tokens, 16777216u);
  EXPECT_EQ(with("--kv", "f32").kv, KvFormat::f32);
  EXPECT_EQ(with("--kv", "q8_0").kv, KvFormat::q8_0);
  EXPECT_EQ(with("--isa", "ref").isa, "ref");
  EXPECT_EQ(with("--ubatch", "65536").ubatch_tokens, 65536u);
  EXPECT_EQ(with("--ram", "1.5G").ram_bytes, 1610612736u);
  EXPECT_EQ(with("--moe-stream", "on").stream, StreamMode::on);
  EXPECT_EQ(with("--moe-stream", "off").stream, StreamMode::off);
  EXPECT_EQ(with("--moe-stream-headroom", "0").headroom_bytes, 0u);
  EXPECT_EQ(with("--moe-stream-direct", "on").direct, DirectReads::on);
  EXPECT_EQ(with("--moe-stream-direct", "off").direct, DirectReads::off);
  EXPECT_EQ(with("--moe-stream-io", "uring").io, ReadBackend::uring);
  EXPECT_EQ(with("--moe-stream-io", "threads").io, ReadBackend::threads);
  EXPECT_EQ(with("--moe-stream-io-threads", "256").io_threads, 256u);
  EXPECT_EQ(with("--moe-stream-pool", "ring").pool, PoolKind::ring);
  EXPECT_EQ(with("--moe-stream-ring", "4096").ring_slots, 4096u);
  EXPECT_EQ(with("--moe-stream-evict", "lru").evict, EvictionKind::lru);
  EXPECT_EQ(with("--moe-stream-evict", "decay").evict, EvictionKind::decay);
  EXPECT_EQ(with("--moe-stream-half-life", "128").half_life_tokens, 128u);
  EXPECT_EQ(with("--moe-stream-chunk", "1M").prefetch_chunk_bytes, uint64_t{1} << 20);
  EXPECT_EQ(with("--moe-stream-prefetch-cap", "8").prefetch_cap, 8u);
  EXPECT_EQ(with("--moe-stream-prefetch-cap-demand", "0").prefetch_cap_demand, 0u);
  EXPECT_EQ(with("--moe-stream-lookahead", "3").lookahead_layers, 3u);
  EXPECT_EQ(with("--moe-stream-lookahead-width", "12").lookahead_width, 12u);
  EXPECT_EQ(with("--moe-stream-lookahead-first", "off").lookahead_first, Switch::off);
  EXPECT_EQ(with("--moe-stream-correction", "c.bin").correction_path, "c.bin");
  EXPECT_EQ(with("--moe-stream-correction", "none").correction_path, "");
  EXPECT_EQ(with("--moe-stream-spec", "8").spec_count, 8u);
  EXPECT_EQ(with("--moe-stream-governor", "off").governor, Switch::off);
  EXPECT_EQ(with("--moe-stream-readahead", "0").readahead_layers, 0u);
  EXPECT_EQ(with("--moe-stream-prewarm", "off").prewarm, Switch::off);
  EXPECT_EQ(with("--moe-stream-census", "off").census, "off");
  EXPECT_EQ(with("--moe-stream-trace", "t").trace_path, "t");
  EXPECT_EQ(with("--moe-stream-trace-scores", "on").trace_scores, Switch::on);
}

TEST(Options, CacheIsBytesOrSlotsNeverBoth) {
  EngineOptions options = with("--moe-stream-cache", "300M");
  EXPECT_EQ(options.cache.bytes, uint64_t{300} << 20);
  EXPECT_FALSE(options.cache.slots_per_layer);
  ASSERT_TRUE(set_option(options, "--moe-stream-cache", "16s").ok());
  EXPECT_EQ(options.cache.slots_per_layer, 16u);
  EXPECT_FALSE(options.cache.bytes);
  ASSERT_TRUE(set_option(options, "--moe-stream-cache", "auto").ok());
  EXPECT_FALSE(options.cache.slots_per_layer);
}

/// Values that each row must refuse, beside those that every row refuses.
const std::multimap<std::string_view, std::string_view> kWrong{
    {"--threads", "0"},
    {"--threads", "1025"},
    {"--threads", "-1"},
    {"--threads", "2.5"},
    {"--threads", "4294967297"},  // 1 when cut to 32 bits
    {"--ctx", "0"},
    {"--ctx", "16777217"},
    {"--ctx", "4k"},
    {"--kv", "q4_0"},
    {"--kv", "Q8_0"},
    {"--kv", "F16"},
    {"--kv", "auto"},
    {"--ubatch", "0"},
    {"--ubatch", "65537"},
    {"--ubatch", "auto"},
    {"--ram", "-1G"},
    {"--ram", "0"},
    {"--ram", "1T"},
    {"--ram", "G"},
    {"--moe-stream", "yes"},
    {"--moe-stream-cache", "0s"},
    {"--moe-stream-cache", "65537s"},
    {"--moe-stream-cache", "s"},
    {"--moe-stream-cache", "-2s"},
    {"--moe-stream-cache", "12x"},
    {"--moe-stream-headroom", "auto"},
    {"--moe-stream-headroom", "much"},
    {"--moe-stream-evict", "fifo"},
    {"--moe-stream-direct", "maybe"},
    {"--moe-stream-io", "aio"},
    {"--moe-stream-io-threads", "0"},
    {"--moe-stream-io-threads", "257"},
    {"--moe-stream-pool", "rings"},
    {"--moe-stream-ring", "0"},
    {"--moe-stream-ring", "1048577"},
    {"--moe-stream-half-life", "0"},
    {"--moe-stream-half-life", "0.5"},
    {"--moe-stream-chunk", "0"},
    {"--moe-stream-chunk", "32K"},
    {"--moe-stream-chunk", "96K"},
    {"--moe-stream-chunk", "65M"},
    {"--moe-stream-prefetch-cap", "0"},
    {"--moe-stream-prefetch-cap", "65"},
    {"--moe-stream-prefetch-cap-demand", "-1"},
    {"--moe-stream-prefetch-cap-demand", "65"},
    {"--moe-stream-lookahead", "4"},
    {"--moe-stream-lookahead", "on"},
    {"--moe-stream-lookahead-width", "65"},
    {"--moe-stream-lookahead-first", "1"},
    {"--moe-stream-spec", "65"},
    {"--moe-stream-governor", "auto"},
    {"--moe-stream-readahead", "9"},
    {"--moe-stream-prewarm", "yes"},
    {"--moe-stream-trace-scores", "true"},
};

/// Options that take any path: whether it is good shows when it is opened.
const std::set<std::string_view> kPaths{"--moe-stream-correction", "--moe-stream-census",
                                        "--moe-stream-trace"};

TEST(Options, WrongValuesAreRefusedWithNameValueAndWhatIsAllowed) {
  for (const OptionSpec& spec : option_table()) {
    std::vector<std::string_view> wrong{"", " ", "8 ", "nonsense"};
    if (spec.name == "--isa") continue;  // any name; the engine knows which exist on the machine
    if (kPaths.contains(spec.name)) {
      EngineOptions options;
      EXPECT_FALSE(set_option(options, spec.name, "").ok()) << spec.name;
      continue;
    }
    const auto [first, last] = kWrong.equal_range(spec.name);
    EXPECT_NE(first, last) << spec.name << " has no wrong values of its own in this test";
    for (auto row = first; row != last; ++row) wrong.push_back(row->second);
    for (const std::string_view text : wrong) {
      EngineOptions options;
      const Status set = set_option(options, spec.name, text);
      ASSERT_FALSE(set.ok()) << spec.name << " takes '" << text << "'";
      EXPECT_EQ(set.error().kind, ErrorKind::usage);
      EXPECT_TRUE(set.error().message.starts_with(std::string(spec.name) + ": "))
          << set.error().message;
      EXPECT_THAT(set.error().message, HasSubstr(fmt::format("'{}'", text)));
      if (spec.values.starts_with("auto")) {
        EXPECT_THAT(set.error().message, HasSubstr("give auto")) << "the way back to the default";
      }
    }
  }
}

TEST(Options, ARefusedValueChangesNothing) {
  for (const auto& [name, text] : kWrong) {
    EngineOptions options;
    ASSERT_FALSE(set_option(options, name, text).ok());
    EXPECT_EQ(fields(options), fields(EngineOptions{})) << name << " " << text;
  }
}

TEST(Options, UnknownNamesAreRefused) {
  EngineOptions options;
  const Status set = set_option(options, "--moe-stream-magic", "on");
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().kind, ErrorKind::usage);
  EXPECT_THAT(set.error().message, HasSubstr("--moe-stream-magic"));
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string between(const std::string& text, std::string_view begin, std::string_view end) {
  const size_t first = text.find(begin);
  CHECK(first != std::string::npos);
  return text.substr(first, text.find(end, first + 1) - first);
}

/// "| `--kv f16\|f32` | `f16` |": as the row begins in a Markdown table.
std::string row_begin(const OptionSpec& spec) {
  std::string values;
  for (const char c : spec.values) values += c == '|' ? std::string("\\|") : std::string(1, c);
  return fmt::format("| `{} {}` | `{}` |", spec.name, values, spec.fallback);
}

/// Every "--name" in the text.
std::set<std::string> options_in(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz-";
  std::set<std::string> options;
  for (size_t at = text.find("--"); at != std::string_view::npos; at = text.find("--", at)) {
    const size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
    if (text.substr(at).find_first_not_of('-') == 2) options.emplace(text.substr(at, end - at));
    at = end;
  }
  return options;
}

/// The options that rows of the table are about: those in their first column.
std::set<std::string> rows_in(const std::string& section) {
  std::set<std::string> rows;
  std::istringstream lines(section);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `-")) continue;
    const std::set<std::string> options = options_in(line.substr(0, line.find(" | ")));
    rows.insert(options.begin(), options.end());
  }
  return rows;
}

TEST(Options, TheDocumentNamesThemAllAndNoOther) {
  const std::string document = file_text(SLUICE_SOURCE_DIR "/docs/cli.md");
  const std::string section = between(document, "## Options of every command", "\n## ");
  std::set<std::string> expected{"--seed", "--json", "--verbose", "--quiet"};
  for (const OptionSpec& spec : option_table()) {
    expected.insert(std::string(spec.name));
    EXPECT_THAT(section, HasSubstr(row_begin(spec)));
  }
  EXPECT_EQ(rows_in(section), expected);
  for (const std::string& option : options_in(document)) {
    if (!option.starts_with("--moe-stream")) continue;
    EXPECT_TRUE(expected.contains(option)) << option;
  }
}

TEST(Options, TheStreamingDocumentGivesTheSameDefaults) {
  const std::string document = file_text(SLUICE_SOURCE_DIR "/docs/streaming.md");
  for (const OptionSpec& spec : option_table()) {
    if (!spec.name.starts_with("--moe-stream")) continue;
    EXPECT_THAT(document, HasSubstr(row_begin(spec)));
  }
}

}  // namespace
}  // namespace sluice
