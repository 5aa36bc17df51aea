// The JSON objects hold exactly the fields that docs/cli.md lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using nlohmann::json;
using Paths = std::set<std::string>;

/// Reads a list of fields as the document writes it: "a, b: { c, d: [ { e } ] }" is a, b.c and
/// b.d.e.
class FieldList {
 public:
  explicit FieldList(std::string_view text) : text_(text) { read(""); }
  const Paths& paths() const { return paths_; }

 private:
  void read(const std::string& prefix) {
    std::string name;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
        name += c;
        continue;
      }
      if (c == '{') {
        ++at_;
        read(prefix + name + ".");
        name.clear();
      }
      if (c == ',' && !name.empty()) {
        paths_.insert(prefix + name);
        name.clear();
      }
      if (c == '}') break;
    }
    if (!name.empty()) paths_.insert(prefix + name);
  }

  const std::string_view text_;
  size_t at_ = 0;
  Paths paths_;
};

/// The block of fields that follows a heading and a line that begins with `mark`.
Paths documented(const std::string& heading, const std::string& mark) {
  const std::string document = file_bytes(SLUICE_SOURCE_DIR "/docs/cli.md");
  const size_t section = document.find("\n" + heading + "\n");
  const size_t line = document.find("\n" + mark, section);
  const size_t begin = document.find("\n    ", line);
  const size_t end = document.find("\n\n", begin + 1);
  EXPECT_NE(end, std::string::npos) << heading;
  return FieldList(std::string_view(document).substr(begin, end - begin)).paths();
}

/// Every leaf. All elements of an array must have the same fields.
void add_leaves(const json& value, const std::string& path, Paths& paths) {
  if (value.is_array() && !value.empty() && value.front().is_structured()) {
    for (const json& element : value) {
      Paths of_element;
      add_leaves(element, path, of_element);
      Paths of_first;
      add_leaves(value.front(), path, of_first);
      EXPECT_EQ(of_element, of_first) << path;
    }
    add_leaves(value.front(), path, paths);
    return;
  }
  if (!value.is_object()) {
    paths.insert(path);
    return;
  }
  for (const auto& [key, child] : value.items())
    add_leaves(child, path.empty() ? key : path + "." + key, paths);
}

/// The fields, those of an array that may be empty folded into the array's name.
Paths folded(const Paths& paths, const std::string& array) {
  Paths result;
  for (const std::string& path : paths) result.insert(path.starts_with(array + ".") ? array : path);
  return result;
}

json object_of(const std::vector<std::string>& words) {
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1) << "one line";
  return json::parse(outcome.out);
}

Paths leaves_of(const json& object) {
  Paths paths;
  add_leaves(object, "", paths);
  return paths;
}

const Paths kRunFields =
    folded(documented("## JSON of run, demo and bench", "One object."), "moe.lookahead");

/// How far the governor looks ahead in a few steps is not known: with whatever it did.
Paths run_fields_of(const json& object) {
  return folded(leaves_of(object), "moe.lookahead");
}

json run_object() {
  static const json object = object_of({"run", model_path(), "-p", "Call me", "-n", "9", "--temp",
                                        "0", "--json", "--quiet", "--moe-stream-cache", "6s"});
  return object;
}

TEST(Json, RunHasTheDocumentedFields) {
  EXPECT_GT(kRunFields.size(), 50u);
  EXPECT_EQ(run_fields_of(run_object()), kRunFields);
}

TEST(Json, DemoHasTheSame) {
  EXPECT_EQ(run_fields_of(object_of({"demo", "--json", "-n", "2"})), kRunFields);
}

TEST(Json, LookaheadHasARowForEachDistance) {
  const json object =
      object_of({"run", model_path(), "-p", "Call me", "-n", "40", "--temp", "0", "--json",
                 "--quiet", "--moe-stream-cache", "6s", "--moe-stream-governor", "off"});
  EXPECT_EQ(leaves_of(object), documented("## JSON of run, demo and bench", "One object."));
  const json& moe = object["moe"];
  ASSERT_EQ(moe["lookahead"].size(), 2u);
  uint64_t started = 0, useful = 0, wasted = 0;
  for (const json& row : moe["lookahead"]) {
    EXPECT_GT(row["recall"], 0.4) << "chance is an eighth";
    EXPECT_LE(row["recall"], 1.0);
    EXPECT_GT(row["miss_coverage"], 0.3);
    EXPECT_LE(row["useful"].get<uint64_t>() + row["wasted"].get<uint64_t>(), row["started"]);
    started += row["started"].get<uint64_t>();
    useful += row["useful"].get<uint64_t>();
    wasted += row["wasted"].get<uint64_t>();
  }
  EXPECT_GT(useful, 0u);
  EXPECT_EQ(moe["prefetch_useful"], useful);
  EXPECT_EQ(moe["prefetch_wasted"].get<uint64_t>() + moe["cancelled"].get<uint64_t>(), wasted);
  EXPECT_EQ(moe["prefetch_reads"], 3 * started) << "parts";
}

TEST(Json, BenchLeavesOutTheTextAndAddsTheRepetitions) {
  Paths expected = kRunFields;
  expected.erase("text");
  expected.erase("tokens");
  expected.insert({"reps.prefill_tok_s", "reps.decode_tok_s"});
  const json object = object_of(
      {"bench", model_path(), "--prompt", "510", "--gen", "4", "--reps", "2", "--json", "--quiet"});
  EXPECT_EQ(run_fields_of(object), expected);
  EXPECT_EQ(object["reps"].size(), 2u);
  EXPECT_EQ(object["generated_tokens"], 5) << "all steps are done, beyond the trained context too";
}

TEST(Json, InspectHasTheDocumentedFields) {
  const json object = object_of({"inspect", model_path(), "--json"});
  EXPECT_EQ(leaves_of(object), documented("### inspect", "JSON: one object."));
  EXPECT_EQ(object["tensors"].size(), 98u);
  EXPECT_EQ(object["can_run"], true);
  EXPECT_EQ(object["floors"]["cache_experts"], 32);
  EXPECT_EQ(object["floors"]["slots_per_layer"], 4);
}

TEST(Json, PerplexityHasTheDocumentedFields) {
  const TempFolder folder;
  const std::string text = folder.write("text", "In the beginning was the word");
  const std::string base = folder.path() + "/base";
  const Paths fields = documented("### perplexity", "JSON: one object.");
  const json alone = object_of({"perplexity", model_path(), "-f", text, "--ctx", "4",
                                "--save-logits", base, "--json", "--quiet"});
  Paths without_base = fields;
  std::erase_if(without_base, [](const std::string& path) { return path.starts_with("base."); });
  EXPECT_EQ(leaves_of(alone), without_base);
  EXPECT_EQ(leaves_of(object_of(
                {"perplexity", model_path(), "--logits-base", base, "--json", "--quiet"})),
            fields);
}

TEST(Json, RunGivesTheTextItsIdsAndTheirHash) {
  const json object = run_object();
  EXPECT_EQ(object["model"], "demo-q4_k_m.gguf");
  EXPECT_EQ(object["architecture"], "qwen3moe");
  EXPECT_EQ(object["text"], ", and I will give thee a reward for");
  EXPECT_EQ(object["tokens"], json({11, 279, 302, 465, 884, 823, 258, 3705, 329}));
  EXPECT_EQ(object["prompt_tokens"], 3);
  EXPECT_EQ(object["generated_tokens"], 9);
  EXPECT_EQ(object["logits_hash"].get<std::string>().size(), 32u);
}

TEST(Json, NumbersAgreeWithEachOther) {
  const json object = run_object();
  const json& moe = object["moe"];
  for (const json& counters : {moe, moe["prefill"]}) {
    const uint64_t lookups = counters["lookups"], hits = counters["hits"],
                   joins = counters["joins"], misses = counters["misses"];
    EXPECT_EQ(lookups, hits + joins + misses);
    EXPECT_NEAR(counters["hit_rate"], double(hits) / double(lookups), 1e-12);
  }
  constexpr double kSteps = 8;  // the first of nine tokens comes with the prompt
  EXPECT_EQ(moe["lookups"], 8 * 8 * 4) << "steps, layers, experts";
  const double read_bytes = moe["demand_bytes"].get<double>() + moe["prefetch_bytes"].get<double>();
  EXPECT_NEAR(moe["bytes_per_token"], read_bytes / kSteps, 1e-6);
  EXPECT_NEAR(moe["stall_s_per_token"], moe["stall_s"].get<double>() / kSteps, 1e-9);
  EXPECT_NEAR(object["decode_tok_s"], kSteps / object["decode_s"].get<double>(), 1e-6);
  EXPECT_EQ(moe["slots_per_layer"], 6);
  EXPECT_EQ(moe["reads_per_distinct_expert"], 1.0);
  EXPECT_LE(object["prefill_s"], object["ttft_s"]);
  const json& roofline = object["roofline"];
  EXPECT_GE(roofline["floor_s"], roofline["drive_s"]);
  EXPECT_GE(roofline["floor_s"], roofline["ram_s"]);
  EXPECT_GE(roofline["floor_s"], roofline["compute_s"]);
  EXPECT_GT(roofline["reached"], 0.0);
  EXPECT_LE(roofline["reached"], 1.0);
  EXPECT_GT(object["memory"]["rss_peak"], 1u << 20);
}

}  // namespace
}  // namespace sluice::cli_test
