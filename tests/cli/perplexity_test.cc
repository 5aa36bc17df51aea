// sluice perplexity: against the logits that eval writes, against a base of its own, and its
// refusals.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr size_t kContext = 24;

class Perplexity : public ::testing::Test {
 protected:
  Outcome measure(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"perplexity", model_path()};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  json measured(std::vector<std::string> more) const {
    more.insert(more.end(), {"--json", "--quiet"});
    const Outcome outcome = measure(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return json::parse(outcome.out);
  }
  void expect_refusal(std::vector<std::string> more, int exit_code, const std::string& part) const {
    more.push_back("--quiet");
    const Outcome outcome = measure(more);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
  /// A base of the text, made by the program.
  std::string saved_base() const {
    const std::string path = folder_.path() + "/base.kld";
    measured({"-f", text_, "--ctx", std::to_string(kContext), "--save-logits", path});
    return path;
  }

  const TempFolder folder_;
  const std::string text_ = folder_.write(
      "text.txt",
      "The old man went down to the sea in the morning, and he looked over the water for a long "
      "time. There was no wind, and the boats lay still upon the sand. He thought of his brother, "
      "who had gone out on such a day, many years before, and had not come home again.\n");
};

/// The sum of −ln p over what is scored in a chunk, from logits as eval writes them.
double nll_by_hand(const std::string& logits, const std::vector<int32_t>& tokens) {
  const size_t vocabulary = logits.size() / sizeof(float) / tokens.size();
  double sum = 0;
  for (size_t position = tokens.size() / 2; position + 1 < tokens.size(); ++position) {
    std::vector<float> row(vocabulary);
    std::memcpy(row.data(), logits.data() + position * vocabulary * sizeof(float),
                vocabulary * sizeof(float));
    double total = 0;
    for (const float logit : row) total += std::exp(static_cast<double>(logit));
    sum -= row[static_cast<size_t>(tokens[position + 1])] - std::log(total);
  }
  return sum;
}

TEST_F(Perplexity, IsWhatTheLogitsSay) {
  const json ids = json::parse(run({"tokenize", model_path(), "-f", text_, "--json"}).out);
  const std::vector<int32_t> tokens = ids["tokens"];
  ASSERT_GT(tokens.size(), 2 * kContext);
  double nll = 0;
  const std::string logits = folder_.path() + "/logits";
  for (size_t chunk = 0; chunk < 2; ++chunk) {
    const auto first = tokens.begin() + static_cast<ptrdiff_t>(chunk * kContext);
    const std::vector<int32_t> part(first, first + kContext);
    const std::string list = fmt::format("{}", fmt::join(part, ","));
    ASSERT_EQ(run({"eval", model_path(), "--tokens", list, "--logits", logits}).exit_code, 0);
    nll += nll_by_hand(file_bytes(logits), part);
  }
  const json object = measured({"-f", text_, "--ctx", std::to_string(kContext), "--chunks", "2"});
  const double scored = 2 * (kContext / 2 - 1);
  EXPECT_EQ(object["chunks"], 2);
  EXPECT_EQ(object["tokens"], 2 * kContext);
  EXPECT_EQ(object["scored_tokens"], scored);
  EXPECT_NEAR(object["nll"], nll / scored, 1e-9);
  EXPECT_NEAR(object["perplexity"], std::exp(nll / scored), 1e-6);
  EXPECT_GT(object["perplexity_error"], 0);
}

TEST_F(Perplexity, SaysHowFarItIs) {
  const Outcome outcome = measure({"-f", text_, "--ctx", std::to_string(kContext)});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("chunk 1 of "));
  EXPECT_THAT(outcome.err, HasSubstr(" left\n"));
  EXPECT_TRUE(outcome.out.starts_with("  perplexity    ")) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr(" of 24 tokens, 11 of each scored; "));
}

TEST_F(Perplexity, ASavedBaseIsItsOwnModels) {
  const std::string base = saved_base();
  const json object = measured({"--logits-base", base});
  EXPECT_EQ(object["context"], kContext);
  EXPECT_NEAR(object["base"]["kld"]["mean"], 0, 1e-4);
  EXPECT_NEAR(object["base"]["kld"]["max"], 0, 1e-3);
  EXPECT_NEAR(object["base"]["delta_p_rms"]["value"], 0, 1e-3);
  EXPECT_EQ(object["base"]["same_top"]["value"], 1);
  EXPECT_GT(object["base"]["correlation"], 0.9);
  const json first = measured({"--logits-base", base, "--chunks", "1"});
  EXPECT_EQ(first["chunks"], 1);

  const Outcome with_text = measure({"--logits-base", base, "-f", text_});
  EXPECT_THAT(with_text.err, HasSubstr("the tokens are those of " + base));
  EXPECT_THAT(with_text.out, HasSubstr("  KL divergence "));
  const std::string again = folder_.path() + "/again.kld";
  measured({"--logits-base", base, "--save-logits", again});
  EXPECT_EQ(file_bytes(base), file_bytes(again)) << "the model's logits, not the base's";
}

TEST_F(Perplexity, RefusesWhatItCannotUse) {
  expect_refusal({}, 2, "-f FILE");
  expect_refusal({"-f", "no/such.txt"}, 1, "no/such.txt");
  expect_refusal({"-f", text_}, 2, "a chunk takes 512; give a longer text or a smaller --ctx");
  expect_refusal({"-f", text_, "--ctx", "2"}, 2, "a chunk takes at least 3 tokens");
  expect_refusal({"--logits-base", text_}, 1, "not a file of logits");
  const std::string bytes = file_bytes(saved_base());
  expect_refusal({"--logits-base", folder_.write("cut.kld", bytes.substr(0, bytes.size() - 1))}, 1,
                 "is it cut short?");
  expect_refusal({"--logits-base", folder_.path() + "/base.kld", "--ctx", "30"}, 2,
                 "have 24 tokens; leave it out");
  std::string small("_logits_\x03\0\0\0\x02\0\0\0\x01\0\0\0", 20);
  small += std::string(12 + 12, '\0');  // tokens and a row
  expect_refusal({"--logits-base", folder_.write("small.kld", small)}, 1,
                 "made with a vocabulary of 2 tokens");
  std::string wild = bytes;
  wild[wild.size() - 4096 * 2 - 5] = '\x7f';  // the exponent of the last row's scale
  expect_refusal({"--logits-base", folder_.write("wild.kld", wild)}, 1, "are not possible");
}

TEST_F(Perplexity, SavesNothingOverOtherFiles) {
  expect_refusal({"-f", text_, "--ctx", "24", "--save-logits", text_}, 2, "stays as it is");
  EXPECT_THAT(file_bytes(text_), HasSubstr("The old man"));
  expect_refusal({"-f", text_, "--ctx", "24", "--save-logits", "/dev/null"}, 2, "no regular file");
  const std::string base = saved_base();
  expect_refusal({"--logits-base", base, "--save-logits", base}, 2, "this is the base");
}

}  // namespace
}  // namespace sluice::cli_test
