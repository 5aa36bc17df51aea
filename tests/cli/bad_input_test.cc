// Bad input of every kind: the exit code, and one line that names what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "gguf/gguf_file.h"
#include "gguf/gguf_writer.h"
#include "testing/byte_surgery.h"
#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using ::testing::HasSubstr;

const std::string kModel = model_path();
constexpr int kFailure = 1;
constexpr int kUsage = 2;

/// The command fails in one line that holds all of `parts`, and prints no result.
void expect_refusal(std::vector<std::string> words, int exit_code,
                    const std::vector<std::string>& parts, const Launch& launch = {}) {
  const std::string command = words.empty() ? "" : words.front();
  if (command == "run" || command == "eval" || command == "demo")
    words.insert(words.begin() + 1, "--quiet");
  const Outcome outcome = run(words, launch);
  SCOPED_TRACE(fmt::format("sluice {}", fmt::join(words, " ")).substr(0, 300));
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("sluice: ")) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_TRUE(outcome.err.ends_with('\n')) << outcome.err;
  for (const std::string& part : parts) EXPECT_THAT(outcome.err, HasSubstr(part));
}

std::vector<std::string> run_of(const std::string& model) {
  return {"run", model, "-p", "Call me"};
}

// Files ---------------------------------------------------------------------------------------

TEST(BadFile, Missing) {
  expect_refusal(run_of("no/such.gguf"), kFailure, {"no/such.gguf", "No such file"});
  expect_refusal({"tokenize", "no.gguf", "-p", "x"}, kFailure, {"no.gguf"});
  expect_refusal({"detokenize", "no.gguf", "--tokens", "1"}, kFailure, {"no.gguf"});
  expect_refusal({"inspect", "no.gguf"}, kFailure, {"no.gguf"});
  expect_refusal({"eval", "no.gguf", "--tokens", "1", "--logits", "x"}, kFailure, {"no.gguf"});
}

TEST(BadFile, FolderWithoutAModel) {
  const TempFolder folder;
  expect_refusal(run_of(folder.path()), kUsage, {folder.path(), "no .gguf file"});
}

TEST(BadFile, FolderWithTwoModels) {
  const TempFolder folder;
  folder.write("a.gguf", "x");
  folder.write("b.gguf", "x");
  expect_refusal(run_of(folder.path()), kUsage, {"a.gguf", "b.gguf", "name one"});
}

/// A folder with damaged copies of the demo model.
class DamagedModel : public ::testing::Test {
 protected:
  void expect_all_refuse(const std::string& bytes, const std::vector<std::string>& parts) {
    const std::string path = folder_.write("damaged.gguf", bytes);
    std::vector<std::string> all{path};
    all.insert(all.end(), parts.begin(), parts.end());
    expect_refusal(run_of(path), kFailure, all);
  }

  const std::string bytes_ = file_bytes(kModel);
  TempFolder folder_;
};

TEST_F(DamagedModel, CutShort) {
  for (const size_t length : {bytes_.size() - 1, bytes_.size() / 2, size_t{5000}, size_t{7}})
    expect_all_refuse(bytes_.substr(0, length), {"cut short or damaged"});
  expect_all_refuse(bytes_.substr(0, bytes_.size() - 1), {"tensor 'blk.7."});
}

TEST_F(DamagedModel, Empty) {
  expect_all_refuse("", {});
}

TEST_F(DamagedModel, NoGgufAtAll) {
  expect_all_refuse("PK\3\4 and so on, for a while", {"not a GGUF file"});
  expect_all_refuse("version https://git-lfs.github.com/spec/v1\n", {"git lfs pull"});
}

TEST_F(DamagedModel, OtherVersions) {
  expect_all_refuse(
      replaced(bytes_, std::string("GGUF\3\0\0\0", 8), std::string("GGUF\1\0\0\0", 8)),
      {"GGUF version 1", "2 to 3"});
  expect_all_refuse(
      replaced(bytes_, std::string("GGUF\3\0\0\0", 8), std::string("GGUF\0\0\0\3", 8)),
      {"big-endian"});
}

TEST_F(DamagedModel, AbsurdCounts) {
  const std::string many = bytes_of(uint64_t{1} << 60);
  expect_all_refuse(patched_after(bytes_, "GGUF", 4, many), {"claims more than"});   // tensors
  expect_all_refuse(patched_after(bytes_, "GGUF", 12, many), {"claims more than"});  // keys
  expect_all_refuse(patched_after(bytes_, "tokenizer.ggml.tokens", 8, many), {"claims more than"});
}

TEST_F(DamagedModel, TensorOutsideItsFile) {
  // Behind the name: dimension count, three dimensions, type, offset.
  constexpr size_t kOffset = 4 + 3 * 8 + 4;
  expect_all_refuse(
      patched_after(bytes_, "blk.1.ffn_down_exps.weight", kOffset, bytes_of(uint64_t{1} << 40)),
      {"tensor 'blk.1.ffn_down_exps.weight'", "past the end"});
  expect_all_refuse(
      patched_after(bytes_, "blk.1.ffn_down_exps.weight", kOffset, bytes_of(~uint64_t{31})),
      {"tensor 'blk.1.ffn_down_exps.weight'", "past the end"});
}

TEST_F(DamagedModel, UnsupportedArchitecture) {
  constexpr size_t kText = 4 + 8;  // type and length
  const std::string other = patched_after(bytes_, "general.architecture", kText, "mammoth8");
  expect_all_refuse(other, {"architecture 'mammoth8' is not supported", "qwen3moe"});
  const Outcome inspect = run({"inspect", folder_.path()});
  EXPECT_EQ(inspect.exit_code, 0) << "inspecting it is no failure";
  EXPECT_THAT(inspect.out, HasSubstr("no: architecture 'mammoth8' is not supported"));
  EXPECT_THAT(inspect.out, HasSubstr("streamed      24 tensors"));
}

TEST_F(DamagedModel, UnsupportedType) {
  constexpr size_t kType = 4 + 2 * 8;
  constexpr uint32_t kI32 = 26;  // an element has as many bytes as one of F32
  const std::string_view name = "blk.1.ffn_gate_inp.weight";
  expect_all_refuse(patched_after(bytes_, name, kType, bytes_of(kI32)),
                    {"tensor 'blk.1.ffn_gate_inp.weight'", "I32", "supported: F32"});
  const Outcome inspect = run({"inspect", folder_.path()});
  EXPECT_EQ(inspect.exit_code, 0);
  EXPECT_THAT(inspect.out, HasSubstr("I32            1 tensors     32.0 KiB   not supported\n"));
  expect_all_refuse(patched_after(bytes_, name, kType, bytes_of(uint32_t{200})),
                    {"tensor 'blk.1.ffn_gate_inp.weight'", "type id 200"});
}

TEST_F(DamagedModel, MissingKeyAndMissingTensor) {
  expect_all_refuse(replaced(bytes_, "qwen3moe.block_count", "qwen3moe.block_coumt"),
                    {"key 'qwen3moe.block_count' is missing"});
  expect_all_refuse(replaced(bytes_, "blk.3.ffn_norm.weight", "blk.3.ffn_form.weight"),
                    {"tensor 'blk.3.ffn_norm.weight' is missing"});
}

TEST_F(DamagedModel, LogitsThatAreNotFinite) {
  const auto file = gguf::GgufFile::open(kModel);
  ASSERT_TRUE(file.ok());
  std::string bytes = bytes_;
  bytes.replace(file->find_tensor("output_norm.weight")->extent.offset, sizeof(float),
                bytes_of(std::numeric_limits<float>::quiet_NaN()));
  const std::string path = folder_.write("nan.gguf", bytes);
  expect_refusal(run_of(path), kFailure, {"nan.gguf", "not finite"});
}

TEST_F(DamagedModel, NamesThatWouldSteerATerminal) {
  const std::string path = folder_.write(
      "x.gguf", replaced(bytes_, "blk.3.ffn_norm.weight", "blk.3.ffn_\x1b[2Jm.weigh"));
  const Outcome inspect = run({"inspect", "-v", path});
  EXPECT_EQ(inspect.exit_code, 0);
  EXPECT_EQ(inspect.out.find('\x1b'), std::string::npos);
  EXPECT_THAT(inspect.out, HasSubstr("blk.3.ffn_?[2Jm.weigh"));
}

TEST(BadFile, AShardIsMissing) {
  const TempFolder folder;
  gguf::GgufWriter writer({.shard_count = 2});
  writer.set("general.architecture", "qwen3moe");
  const std::vector<std::byte> zeros(128);
  writer.add_tensor("a", Dtype::f32, {32}, zeros);
  writer.add_tensor("b", Dtype::f32, {32}, zeros);
  const std::string path = folder.path() + "/m.gguf";
  ASSERT_TRUE(writer.write(path).ok());
  const std::vector<std::string> shards = writer.shard_paths(path);
  ASSERT_EQ(std::remove(shards[1].c_str()), 0);
  expect_refusal(run_of(shards[0]), kFailure, {shards[1], "one of the 2 files"});
  expect_refusal({"inspect", shards[0]}, kFailure, {shards[1]});
}

TEST(BadFile, VocabularyOnly) {
  const TempFolder folder;
  gguf::GgufWriter writer;
  writer.set("general.architecture", "qwen3moe");
  writer.set("tokenizer.ggml.model", "gpt2");
  writer.set("tokenizer.ggml.pre", "qwen2");
  writer.set_array("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
  const std::string path = folder.path() + "/vocabulary.gguf";
  ASSERT_TRUE(writer.write(path).ok());
  EXPECT_EQ(run({"tokenize", path, "-p", "cab"}).out, "2,0,1\n") << "enough to tokenize";
  expect_refusal(run_of(path), kFailure, {path});
  const Outcome inspect = run({"inspect", path});
  EXPECT_EQ(inspect.exit_code, 0);
  EXPECT_THAT(inspect.out, HasSubstr("no: it holds a vocabulary and no weights"));
  expect_refusal({"detokenize", path, "--tokens", "3"}, kUsage, {"'3'", "0 to 2"});
}

// Requests ------------------------------------------------------------------------------------

TEST(BadRequest, PromptLongerThanTheContext) {
  expect_refusal({"run", kModel, "-p", "Call me Ishmael", "--ctx", "3"}, kUsage,
                 {"does not fit the context of 3", "--ctx"});
  const std::string many = fmt::format("{}", fmt::join(std::vector<int>(600, 100), ","));
  expect_refusal({"run", kModel, "--tokens", many}, kUsage, {"600", "512"});
  expect_refusal({"bench", kModel, "--prompt", "500", "--gen", "13", "--ctx", "512", "--quiet"},
                 kUsage, {"500", "13", "512"});
}

TEST(BadRequest, ContextBeyondMemory) {
  expect_refusal({"run", kModel, "-p", "Call me", "--ctx", "16777216", "--ram", "1G"}, kFailure,
                 {"--ctx 16777216 needs", "1.00 GiB (--ram)", "; --ctx ", " fits"});
}

TEST(BadRequest, EmptyPrompt) {
  const TempFolder folder;
  const std::string empty = folder.write("empty", "");
  expect_refusal({"run", kModel, "-p", ""}, kUsage, {"the prompt is empty"});
  expect_refusal({"run", kModel, "-f", empty}, kUsage, {"the prompt is empty"});
  expect_refusal({"run", kModel, "-f", "-"}, kUsage, {"the prompt is empty"});
  expect_refusal({"run", kModel, "--tokens", " , "}, kUsage, {"the prompt is empty"});
  expect_refusal({"demo", "-p", ""}, kUsage, {"the prompt is empty"});
  expect_refusal({"eval", kModel, "--tokens", ",", "--logits", folder.path() + "/x"}, kUsage,
                 {"empty"});
}

TEST(BadRequest, NoPromptOrTwo) {
  expect_refusal({"run", kModel}, kUsage, {"-p TEXT, -f FILE or --tokens LIST"});
  expect_refusal({"run", kModel, "-p", "a", "--tokens", "1"}, kUsage, {"one prompt"});
  expect_refusal({"run", kModel, "-p", "a", "-f", "b"}, kUsage, {"--prompt", "--file"});
  expect_refusal({"tokenize", kModel}, kUsage, {"one text"});
  expect_refusal({"tokenize", kModel, "-p", "a", "-"}, kUsage, {"one text"});
  expect_refusal({"tokenize", kModel, "words"}, kUsage, {"'words'"});
  expect_refusal({"eval", kModel, "--logits", "x"}, kUsage, {"--tokens LIST"});
  expect_refusal({"eval", kModel, "--tokens", "1"}, kUsage, {"--logits is required"});
}

TEST(BadRequest, PromptFileMissing) {
  expect_refusal({"run", kModel, "-f", "no such prompt"}, kFailure, {"no such prompt"});
  expect_refusal({"eval", kModel, "--tokens-file", "no such list", "--logits", "x"}, kFailure,
                 {"no such list"});
}

TEST(BadRequest, TokensThatAreNone) {
  for (const std::string list : {"1,4096", "1,-1", "1,x", "1 2.5", "1,99999999999", "1;2"})
    expect_refusal({"run", kModel, "--tokens", list}, kUsage, {"is not a token id", "0 to 4095"});
  expect_refusal({"detokenize", kModel, "--tokens", "4096"}, kUsage, {"'4096'", "0 to 4095"});
  expect_refusal({"eval", kModel, "--tokens", "4096", "--logits", "x"}, kUsage, {"'4096'"});
}

TEST(BadRequest, LogitsFileThatCannotBeWritten) {
  expect_refusal({"eval", kModel, "--tokens", "1", "--logits", "no/such/folder/x"}, kFailure,
                 {"no/such/folder/x", "No such file"});
  const TempFolder folder;
  expect_refusal({"eval", kModel, "--tokens", "1", "--logits", folder.path()}, kFailure,
                 {folder.path(), "directory"});
  const std::string copy = folder.write("copy.gguf", file_bytes(kModel));
  expect_refusal({"eval", folder.path(), "--tokens", "1", "--logits", copy}, kUsage,
                 {copy, "this is the model"});
  EXPECT_EQ(file_bytes(copy), file_bytes(kModel)) << "and nothing happened to it";
  expect_refusal({"eval", kModel, "--tokens", "1,2,3", "--logits", "/dev/full"}, kFailure,
                 {"/dev/full", "No space left"});
}

TEST(BadRequest, UnknownWords) {
  expect_refusal({}, kUsage, {"no command", "sluice --help"});
  expect_refusal({"walk"}, kUsage, {"'walk'", "sluice --help"});
  expect_refusal({"--walk"}, kUsage, {"'--walk'", "sluice --help"});
  expect_refusal({"run", kModel, "-p", "x", "--walk", "1"}, kUsage,
                 {"no option '--walk'", "sluice run --help"});
  expect_refusal({"run", kModel, kModel, "-p", "x"}, kUsage, {"one argument too many"});
  expect_refusal({"run"}, kUsage, {"MODEL is required", "sluice run --help"});
}

TEST(BadRequest, OptionsOutOfRange) {
  const std::vector<std::vector<std::string>> wrong{{"-n", "-3"},
                                                    {"-n", "1e3"},
                                                    {"--tokens-max", "99999999999999999999"},
                                                    {"--temp", "-1"},
                                                    {"--temp", "nan"},
                                                    {"--temp", "inf"},
                                                    {"--temp", "warm"},
                                                    {"--top-k", "-1"},
                                                    {"--top-p", "1.5"},
                                                    {"--min-p", "-0.1"},
                                                    {"--seed", "-1"},
                                                    {"--repeat-penalty", "0"},
                                                    {"--threads", "0"},
                                                    {"--ctx", "0"},
                                                    {"--kv", "q4_0"},
                                                    {"--ubatch", "0"},
                                                    {"--moe-stream", "perhaps"},
                                                    {"--moe-stream-cache", "0s"},
                                                    {"--moe-stream-io-threads", "1000"}};
  for (const auto& option : wrong) {
    std::vector<std::string> words = run_of(kModel);
    words.insert(words.end(), option.begin(), option.end());
    const std::string name = option[0] == "-n" ? "--tokens-max" : option[0];
    expect_refusal(words, kUsage, {name + ": '" + option[1] + "' is not allowed; give "});
  }
  expect_refusal({"run", kModel, "-p", "x", "--isa", "abacus"}, kUsage,
                 {"--isa", "'abacus'", "ref"});
  expect_refusal({"run", kModel, "-p", "x", "--ram", "lots"}, kUsage,
                 {"--ram: 'lots' is not allowed; give auto or a size"});
  expect_refusal({"--isa", "ref", "demo"}, kUsage, {"--isa"});
  expect_refusal({"run", kModel, "-p"}, kUsage, {"--prompt: its value is missing; give TEXT; see"});
  expect_refusal({"run", kModel, "--kv"}, kUsage,
                 {"--kv: its value is missing; give f16|f32|q8_0; see"});
  expect_refusal({"bench", kModel, "--reps"}, kUsage,
                 {"--reps: its value is missing; give N; see"});
}

}  // namespace
}  // namespace sluice::cli_test
