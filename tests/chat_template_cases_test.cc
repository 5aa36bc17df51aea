// Chat templates against what Python's Jinja renders: bulk cases where SLUICE_CASES names their
// folder, byte for byte, raised errors with the template's own words.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "jinja/chat.h"

namespace sluice::jinja {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

/// "2025-06-15T12:34:56", a Sunday and the year's 166th day.
std::tm parse_time(const std::string& text) {
  std::tm time{};
  EXPECT_EQ(std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d", &time.tm_year, &time.tm_mon,
                        &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec),
            6);
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_yday = 165;
  return time;
}

class ChatTemplateCases : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* cases = std::getenv("SLUICE_CASES");
    if (cases == nullptr) GTEST_SKIP() << "SLUICE_CASES names no folder of bulk data";
    const std::string base = std::string(cases) + "/templates/" + GetParam();
    source_ = read_file(base + ".jinja");
    file_ = Json::parse(read_file(base + ".cases.json"), nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(file_["cases"].empty());
  }

  Conversation conversation_of(const Json& test_case) const {
    return {.messages = test_case["messages"],
            .tools = test_case["tools"],
            .arguments = test_case["kwargs"],
            .bos_token = file_["bos_token"].get<std::string>(),
            .eos_token = file_["eos_token"].get<std::string>()};
  }

  std::string source_;
  Json file_;
};

void expect_raised(const Json& raises, const Result<std::vector<Span>>& rendered) {
  ASSERT_FALSE(rendered.ok()) << text_of(*rendered);
  if (raises["kind"] != "raise_exception") return;  // the wording is Python's
  const auto words = raises["message"].get<std::string>();
  EXPECT_TRUE(rendered.error().message.ends_with(": " + words)) << rendered.error().message;
}

TEST_P(ChatTemplateCases, RenderByteForByte) {
  const auto chat_template = Template::parse(source_);
  ASSERT_TRUE(chat_template.ok()) << chat_template.error().message;
  const RenderOptions options{.now = parse_time(file_["now"].get<std::string>())};
  for (const Json& test_case : file_["cases"]) {
    SCOPED_TRACE(test_case["name"].get<std::string>());
    const auto variables = variables_of(conversation_of(test_case));
    ASSERT_TRUE(variables.ok()) << variables.error().message;
    const auto rendered = chat_template->render(*variables, options);
    if (test_case.contains("raises")) {
      expect_raised(test_case["raises"], rendered);
      continue;
    }
    ASSERT_TRUE(rendered.ok()) << rendered.error().message;
    EXPECT_EQ(text_of(*rendered), test_case["expected"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Known, ChatTemplateCases,
                         ::testing::Values("chatml", "deepseek-v3.1", "deepseek-v3", "glm-4.6",
                                           "glm-4.7-flash", "gpt-oss", "kimi-k2", "ling-lite",
                                           "llama3.1-tools", "llama3", "minimax-m2", "mistral-nemo",
                                           "mistral-v1", "mixtral", "qwen2.5", "qwen3-coder",
                                           "qwen3.5", "qwen3"),
                         [](const auto& case_info) {
                           std::string name = case_info.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace sluice::jinja
