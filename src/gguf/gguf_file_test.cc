#include "gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "gguf/gguf_writer.h"
#include "testing/temp_folder.h"

namespace sluice::gguf {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void expect_error(const Result<GgufFile>& file, ErrorKind kind, const std::string& message) {
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, kind);
  EXPECT_THAT(file.error().message, HasSubstr(message));
}

TEST(GgufFile, AnswersAboutKeysAndTensors) {
  const TempFolder folder;
  const std::string path = folder.path() + "/model.gguf";
  GgufWriter writer({.version = 2});
  writer.set("general.architecture", "qwen3moe");
  writer.set("qwen3moe.block_count", uint32_t{2});
  writer.set_array<std::string>("tokenizer.ggml.tokens", {"a", "b", "c"});
  const std::vector<std::byte> bytes(144 * 3 * 2);
  writer.add_tensor("blk.0.ffn_up_exps.weight", Dtype::q4_k, {256, 3, 2}, bytes);
  ASSERT_TRUE(writer.write(path).ok());

  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->paths(), std::vector<std::string>{path});
  EXPECT_EQ(file->file_bytes(), std::vector<uint64_t>{fs::file_size(path)});
  EXPECT_EQ(file->version(), 2u);
  EXPECT_EQ(*file->find_text("general.architecture"), "qwen3moe");
  EXPECT_EQ(*file->find_uint("qwen3moe.block_count"), 2u);
  EXPECT_EQ((*file->find_texts("tokenizer.ggml.tokens"))->at(2), "c");
  const Tensor* tensor = file->find_tensor("blk.0.ffn_up_exps.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->element_count(), 1536u);
  EXPECT_EQ(tensor->shape_text(), "[256, 3, 2]");
  EXPECT_EQ(tensor->extent.bytes, 864u);
  EXPECT_EQ(file->find_tensor("blk.0.ffn_up_exps"), nullptr);

  const auto wrong = file->find_float("general.architecture");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, HasSubstr(path + ": key 'general.architecture' is a text"));
}

TEST(GgufFile, NamesTheFileItCannotOpen) {
  const TempFolder folder;
  expect_error(GgufFile::open(folder.path() + "/none.gguf"), ErrorKind::io, "/none.gguf: ");
  const std::string path = folder.write("text.gguf", "just a text");
  expect_error(GgufFile::open(path), ErrorKind::unsupported, path + ": not a GGUF file");
  expect_error(GgufFile::open(folder.write("empty.gguf", "")), ErrorKind::corrupt, "/empty.gguf: ");
}

TEST(GgufFile, RefusesTensorsOfOneName) {
  const TempFolder folder;
  GgufWriter writer;
  const std::vector<std::byte> bytes(4);
  writer.add_tensor("twin.a", Dtype::f32, {1}, bytes);
  writer.add_tensor("twin.b", Dtype::f32, {1}, bytes);
  std::string file = writer.encode().front();
  file.replace(file.find("twin.b"), 6, "twin.a");
  expect_error(GgufFile::open(folder.write("m.gguf", file)), ErrorKind::corrupt,
               "tensor 'twin.a' is there twice");
}

TEST(GgufFile, ReadsHeadersOfManyMegabytes) {
  const TempFolder folder;
  const std::string path = folder.path() + "/model.gguf";
  GgufWriter writer;
  std::vector<std::string> tokens;
  for (int i = 0; i < 150'000; ++i) tokens.push_back("a token that fills " + std::to_string(i));
  writer.set_array("tokenizer.ggml.tokens", tokens);
  writer.set("last", uint8_t{9});
  ASSERT_TRUE(writer.write(path).ok());
  ASSERT_GT(fs::file_size(path), 4u << 20);
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(**file->find_texts("tokenizer.ggml.tokens"), tokens);
  EXPECT_EQ(*file->find_uint("last"), 9u);
}

TEST(GgufFile, ReadsOnlyTheHeadOfALargeFile) {
  const TempFolder folder;
  const std::string path = folder.path() + "/model.gguf";
  GgufWriter writer;
  writer.set("general.architecture", "test");
  const std::vector<std::byte> bytes(8);
  writer.add_tensor("experts", Dtype::i8, {8}, bytes);
  ASSERT_TRUE(writer.write(path).ok());
  fs::resize_file(path, uint64_t{1} << 40);  // a hole that would take long to read
  EXPECT_TRUE(GgufFile::open(path).ok());
}

/// Models that other programs wrote, where a variable names a folder of them.
TEST(GgufFile, OpensForeignModels) {
  const char* cases = std::getenv("SLUICE_CASES");
  if (cases == nullptr) GTEST_SKIP() << "SLUICE_CASES names no folder";
  size_t model_count = 0;
  for (const char* part : {"/cases", "/tokenizers", "/demo"})
    for (const auto& entry : fs::recursive_directory_iterator(std::string(cases) + part)) {
      if (entry.path().extension() != ".gguf") continue;
      const auto file = GgufFile::open(entry.path().string());
      ASSERT_TRUE(file.ok()) << file.error().message;
      const auto architecture = file->find_text("general.architecture");
      ASSERT_TRUE(architecture.ok() && architecture->has_value()) << entry.path();
      const bool is_split = entry.path().string().find("-of-00003") != std::string::npos;
      EXPECT_EQ(file->paths().size(), is_split ? 3u : 1u) << entry.path();
      ++model_count;
    }
  EXPECT_GE(model_count, 40u);
}

}  // namespace
}  // namespace sluice::gguf
