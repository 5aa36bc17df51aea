#include "text/end_of_generation.h"

#include <gtest/gtest.h>

#include "testing/small_vocabulary.h"

namespace sluice::text {
namespace {

using testing::small_vocabulary;

/// The texts of the tokens that end generation.
std::vector<std::string> ends(const Vocabulary& vocabulary) {
  const std::vector<bool> marked = ends_of_generation(vocabulary);
  EXPECT_EQ(marked.size(), vocabulary.tokens.size());
  std::vector<std::string> texts;
  for (size_t i = 0; i < marked.size(); ++i)
    if (marked[i]) texts.push_back(vocabulary.tokens[i]);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(EndsOfGeneration, AreEosAndEotWhateverTheirNames) {
  Vocabulary vocabulary = small_vocabulary({}, {{"<stop>", TokenType::control}});
  EXPECT_EQ(ends(vocabulary), Texts{});
  vocabulary.eos = 256;
  EXPECT_EQ(ends(vocabulary), Texts{"<stop>"});
  vocabulary.eot = 'x';
  EXPECT_EQ(ends(vocabulary), (Texts{"x", "<stop>"}));
}

TEST(EndsOfGeneration, AreKnownByNameWhateverTheirType) {
  EXPECT_EQ(ends(small_vocabulary({}, {{"</s>", TokenType::normal},
                                       {"<|endoftext|>", TokenType::control},
                                       {"<|im_start|>", TokenType::control},
                                       {"<|im_end|>", TokenType::control},
                                       {"<|fim_prefix|>", TokenType::control},
                                       {"<|fim_pad|>", TokenType::control},
                                       {"<|repo_name|>", TokenType::control},
                                       {"<|file_sep|>", TokenType::control},
                                       {"<think>", TokenType::user_defined}})),
            (Texts{"</s>", "<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|repo_name|>",
                   "<|file_sep|>"}));
}

TEST(EndsOfGeneration, InGptOssAMessageEndIsNone) {
  EXPECT_EQ(ends(small_vocabulary({}, {{"<|end|>", TokenType::control}})), Texts{"<|end|>"});
  Vocabulary vocabulary = small_vocabulary({}, {{"<|return|>", TokenType::control},
                                                {"<|end|>", TokenType::control},
                                                {"<|call|>", TokenType::control}});
  EXPECT_EQ(ends(vocabulary), (Texts{"<|return|>", "<|call|>"}));
  vocabulary.eos = 257;
  EXPECT_EQ(ends(vocabulary), (Texts{"<|return|>", "<|end|>", "<|call|>"})) << "the file says so";
}

TEST(EndsOfGeneration, InGemma4ATagIsNone) {
  EXPECT_EQ(ends(small_vocabulary({}, {{"</s>", TokenType::normal},
                                       {"<turn|>", TokenType::control},
                                       {"<|tool_response>", TokenType::control}})),
            (Texts{"<turn|>", "<|tool_response>"}));
}

}  // namespace
}  // namespace sluice::text
