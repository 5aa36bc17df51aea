// The tokenizer against texts whose ids another program worked out, with vocabularies from GGUF
// files: the demo model's always, larger ones where SLUICE_CASES names a folder of bulk data (its
// tokenizers/NAME.gguf and NAME.vectors.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "gguf/gguf_file.h"
#include "text/tokenizer.h"

namespace sluice::text {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

TokenId token_at(const gguf::GgufFile& file, std::string_view key) {
  const auto id = file.find_uint(key).value();
  return id.has_value() ? static_cast<TokenId>(*id) : kNoToken;
}

Vocabulary read_vocabulary(const std::string& path) {
  const auto file = gguf::GgufFile::open(path).value();
  Vocabulary vocabulary;
  vocabulary.model = file.find_text("tokenizer.ggml.model").value().value_or("");
  vocabulary.pre = file.find_text("tokenizer.ggml.pre").value().value_or("");
  vocabulary.tokens = *file.find_texts("tokenizer.ggml.tokens").value();
  if (const auto* merges = file.find_texts("tokenizer.ggml.merges").value(); merges != nullptr)
    vocabulary.merges = *merges;
  vocabulary.scores = file.find_floats("tokenizer.ggml.scores").value();
  const auto types = file.find_uints("tokenizer.ggml.token_type").value();
  for (const uint64_t type : types) vocabulary.types.push_back(static_cast<TokenType>(type));
  vocabulary.bos = token_at(file, "tokenizer.ggml.bos_token_id");
  vocabulary.eos = token_at(file, "tokenizer.ggml.eos_token_id");
  vocabulary.eot = token_at(file, "tokenizer.ggml.eot_token_id");
  vocabulary.add_bos = file.find_bool("tokenizer.ggml.add_bos_token").value();
  vocabulary.add_eos = file.find_bool("tokenizer.ggml.add_eos_token").value();
  vocabulary.add_space_prefix = file.find_bool("tokenizer.ggml.add_space_prefix").value();
  return vocabulary;
}

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& path) {
  return std::move(Tokenizer::make(read_vocabulary(path))).value();
}

Json read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return Json::parse(file, nullptr, /*allow_exceptions=*/false);
}

std::string decode_base64(std::string_view encoded) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int bit_count = 0;
  for (const char digit : encoded) {
    if (digit == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(digit));
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    bytes += static_cast<char>(bits >> bit_count);
  }
  return bytes;
}

/// A vector's input: a text, bytes, or parts that are repeated and joined.
std::string input_of(const Json& vector) {
  if (vector.contains("text")) return vector["text"].get<std::string>();
  if (vector.contains("b64")) return decode_base64(vector["b64"].get<std::string>());
  std::string input;
  for (const Json& part : vector["parts"])
    for (int i = 0; i < part["count"].get<int>(); ++i) input += part["text"].get<std::string>();
  return input;
}

std::string expected_bytes(const Json& form, const std::string& input) {
  if (form == "input") return input;
  if (form == "space+input") return " " + input;
  return decode_base64(form["b64"].get<std::string>());
}

TokenizeOptions options_of(const Json& vector) {
  return {.add_special = vector["add_special"].get<bool>(),
          .never_doubled = false,
          .parse_special = vector["parse_special"].get<bool>()};
}

Ids ends_of_generation(const Tokenizer& tokenizer) {
  Ids ends;
  for (TokenId token = 0; static_cast<size_t>(token) < tokenizer.token_count(); ++token)
    if (tokenizer.is_end_of_generation(token)) ends.push_back(token);
  return ends;
}

TEST(TokenizerVectors, OfTheDemoModel) {
  const std::string model = SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not there";
  const auto tokenizer = make_tokenizer(model);
  const Json file = read_json(SLUICE_SOURCE_DIR "/tests/data/tokenizer_demo_vectors.json");
  ASSERT_EQ(file["vectors"].size(), 70u);
  for (const Json& vector : file["vectors"]) {
    const auto text = vector["text"].get<std::string>();
    const Json& ids = vector["ids"];
    const Json& plain_ids = vector.contains("ids_no_special") ? vector["ids_no_special"] : ids;
    EXPECT_EQ(tokenizer->tokenize(text, {.parse_special = true}), ids.get<Ids>()) << text;
    EXPECT_EQ(tokenizer->tokenize(text, {.parse_special = false}), plain_ids.get<Ids>()) << text;
  }
}

class BulkTokenizerVectors : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* cases = std::getenv("SLUICE_CASES");
    if (cases == nullptr) GTEST_SKIP() << "SLUICE_CASES names no folder of bulk data";
    const std::string base = std::string(cases) + "/tokenizers/" + GetParam();
    tokenizer_ = make_tokenizer(base + ".gguf");
    file_ = read_json(base + ".vectors.json");
    ASSERT_FALSE(file_["vectors"].empty());
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  Json file_;
};

TEST_P(BulkTokenizerVectors, IdsAndPiecesAreEqual) {
  for (const Json& vector : file_["vectors"]) {
    SCOPED_TRACE(vector["id"].get<std::string>());
    const std::string input = input_of(vector);
    const Ids ids = tokenizer_->tokenize(input, options_of(vector));
    EXPECT_EQ(ids, vector["ids"].get<Ids>());
    EXPECT_EQ(tokenizer_->detokenize(ids), expected_bytes(vector["pieces"], input));
  }
}

/// Of two encoders that differ the second has the model's own rule, except with SentencePiece,
/// where it has faults and the scores of the file decide.
TEST_P(BulkTokenizerVectors, DisputesAreSettledAsTheModelDoes) {
  const char* settled = tokenizer_->vocabulary().model == "llama" ? "llama_ids" : "second_ids";
  for (const Json& vector : file_["disputed"]) {
    SCOPED_TRACE(vector["id"].get<std::string>());
    EXPECT_EQ(tokenizer_->tokenize(input_of(vector), options_of(vector)),
              vector[settled].get<Ids>());
  }
}

TEST_P(BulkTokenizerVectors, TheSameTokensEndGeneration) {
  EXPECT_EQ(ends_of_generation(*tokenizer_), file_["vocab"]["end_of_generation"].get<Ids>());
  EXPECT_EQ(tokenizer_->token_count(), file_["vocab"]["n_tokens"].get<size_t>());
}

INSTANTIATE_TEST_SUITE_P(Known, BulkTokenizerVectors,
                         ::testing::Values("qwen3", "llama3", "deepseek-v3", "gpt-oss",
                                           "made-bailingmoe", "made-deepseek-llm", "made-glm4",
                                           "made-hunyuan", "made-kimi-k2", "made-minimax-m2",
                                           "made-qwen35", "made-tekken", "mixtral", "mistral-v3",
                                           "made-spm-noprefix"),
                         [](const auto& case_info) {
                           std::string name = case_info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace sluice::text
