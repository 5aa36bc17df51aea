#include "lookahead/correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "testing/correction_bytes.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

using Floats = std::vector<float>;

/// 3 layers of 2 experts.
constexpr CorrectionIdentity kModel{3, 2, 0x1122334455667788};
constexpr uint32_t kBoth = CorrectionBytes::predicted | CorrectionBytes::chosen;

CorrectionBytes file(const CorrectionIdentity& model = kModel, uint32_t version = 1) {
  return {model.layer_count, model.expert_count, model.router_hash, version};
}

/// Every kind of input for layer 2 from 1 before; a bias alone for layer 1; the embedding.
std::string good_file() {
  return file()
      .map(2, 1, kBoth, {0.5f, -0.5f, /*P*/ 1, 2, 3, 4, /*C*/ 100, 200, 300, 400})
      .map(1, 1, 0, {7, 8})
      .map(0, 1, CorrectionBytes::predicted, {0, 0, 0, 1, 1, 0})
      .bytes();
}

Correction parsed(const std::string& bytes) {
  auto correction = Correction::parse(bytes, kModel, "good");
  CHECK(correction.ok());
  return std::move(*correction);
}

constexpr std::string_view kRemedy = "; train one with tools/train_correction, or leave it out";

/// "none", or why the file is refused, without what to do then, which is always the same.
std::string error_of(const std::string& bytes, const CorrectionIdentity& model = kModel) {
  const auto correction = Correction::parse(bytes, model, "FILE");
  if (correction.ok()) return "none";
  const std::string& message = correction.error().message;
  EXPECT_TRUE(message.ends_with(kRemedy)) << message;
  return message.substr(0, message.size() - std::min(message.size(), kRemedy.size()));
}

TEST(Correction, AddsUpWhatTheFormulaSays) {
  const Correction correction = parsed(good_file());
  EXPECT_TRUE(correction.has(2, 1));
  EXPECT_FALSE(correction.has(2, 2));

  const float predicted[] = {2, 3};
  const int32_t experts[] = {1};
  const float weights[] = {0.25f};
  Floats scores(2);
  correction.apply(2, 1, {predicted, experts, weights}, scores);
  EXPECT_EQ(scores,
            (Floats{0.5f + (2 * 1 + 3 * 3) + 0.25f * 300, -0.5f + (2 * 2 + 3 * 4) + 0.25f * 400}));
  correction.apply(2, 1, {.predicted = predicted}, scores);
  EXPECT_EQ(scores, (Floats{11.5f, 15.5f})) << "what is lacking counts as zero";
  correction.apply(1, 1, {predicted, experts, weights}, scores);
  EXPECT_EQ(scores, (Floats{7, 8}));
}

TEST(Correction, IsReadFromAFile) {
  const TempFolder folder;
  const auto read = Correction::read(folder.write("good", std::string_view(good_file())), kModel);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read->has(1, 1));
  EXPECT_EQ(read->memory_bytes(), good_file().size());
  const auto missing = Correction::read(folder.path() + "/none", kModel);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("/none"), std::string::npos);
  const std::string large(100000, 'x');
  EXPECT_FALSE(Correction::read(folder.write("large", std::string_view(large)), kModel).ok());
}

TEST(Correction, AFileCutAnywhereIsRefused) {
  const std::string whole = good_file();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::string error = error_of(whole.substr(0, bytes));
    EXPECT_TRUE(error.starts_with("FILE: ")) << bytes << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_EQ(error_of(whole), "none");
  EXPECT_EQ(error_of(whole + "x"), "FILE: longer than its maps, by 1 B");
}

TEST(Correction, AFileOfAnotherModelIsRefusedAndToldApart) {
  const auto expect_error = [](CorrectionIdentity model, std::string_view words) {
    const std::string error = error_of(good_file(), model);
    EXPECT_NE(error.find(words), std::string::npos) << error;
  };
  expect_error({48, 2, kModel.router_hash}, "it has 3 layers, this model 48");
  expect_error({3, 128, kModel.router_hash}, "it has 2 experts a layer, this model 128");
  expect_error({3, 2, 1}, "it has 1122334455667788 as the hash of its routers, this model 0000");
}

TEST(Correction, WhatMakesNoSenseIsRefused) {
  const Floats bias{1, 2};
  const auto error_of_map = [](uint32_t layer, uint32_t distance, uint32_t inputs,
                               const Floats& floats, uint32_t reserved = 0) {
    return error_of(file().map(layer, distance, inputs, floats, reserved).bytes());
  };
  EXPECT_EQ(error_of("GGUF" + good_file()), "FILE: not a correction file");
  EXPECT_EQ(error_of(file(kModel, 2).bytes()), "FILE: correction format 2, this program reads 1");
  EXPECT_EQ(error_of(file().bytes()), "none") << "no map, no correction";
  EXPECT_EQ(error_of_map(3, 1, 0, bias),
            "FILE: map 1 of 1: no such prediction: layer 3 from 1 before");
  EXPECT_NE(error_of_map(2, 0, 0, bias), "none");
  EXPECT_NE(error_of_map(2, 4, 0, bias), "none");
  EXPECT_NE(error_of_map(0, 2, 0, bias), "none") << "before the embedding";
  EXPECT_EQ(error_of_map(2, 3, 0, bias), "none");
  EXPECT_NE(error_of_map(2, 3, CorrectionBytes::chosen, {1, 2, 3, 4, 5, 6}), "none");
  EXPECT_NE(error_of_map(1, 1, 8, bias), "none");
  EXPECT_NE(error_of_map(1, 1, 0, bias, 1), "none");
  EXPECT_EQ(error_of(file().map(1, 1, 0, bias).map(1, 1, 0, bias).bytes()),
            "FILE: map 2 of 2: layer 1 from 1 before comes twice");
  EXPECT_EQ(error_of(file().map(1, 1, 0, bias).claim(~0u).bytes()),
            "FILE: map 2 of 4294967295: cut short");
}

TEST(Correction, NumbersThatAreNotFiniteAreRefused) {
  const std::string whole = good_file();
  const size_t first = file().bytes().size() + 16;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY})
    for (size_t i = 0; i < 10; ++i) {
      std::string bytes = whole;
      bytes.replace(first + i * sizeof(bad), sizeof(bad), reinterpret_cast<const char*>(&bad),
                    sizeof(bad));
      EXPECT_EQ(error_of(bytes), "FILE: map 1 of 3: holds numbers that are not finite") << i;
    }
}

TEST(RouterHash, IsThatOfTheFormatsDescription) {
  // "abcdefgh" and "ijk" filled up with five zeros, as words of eight bytes.
  const std::string_view bytes = "abcdefghijk";
  WeightMap map;
  map.dense.layers.resize(2);
  map.dense.layers[0].router = {Dtype::f32, 1, 11, 11,
                                reinterpret_cast<const std::byte*>(bytes.data())};
  const auto step = [](uint64_t hash, uint64_t word) { return (hash ^ word) * 0x100000001b3; };
  EXPECT_EQ(router_hash(map),
            step(step(0xcbf29ce484222325, 0x6867666564636261), 0x00000000006b6a69))
      << "a layer without a router adds nothing";
}

}  // namespace
}  // namespace sluice
