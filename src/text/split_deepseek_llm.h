// The split rule of the first DeepSeek models (LLM, V2, V2-Lite), `tokenizer.ggml.pre`
// "deepseek-llm". It is no expression of alternatives but six passes, each of which cuts what it
// matches out of the pieces that the ones before have left:
//
//   [\r\n]   \s?[cased letters]+   \s?[signs]+   \s+$   [ideographs, …]+   \p{N}+
//
// The scanner here finds the same words in one pass. Pure function; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::text {

/// As SplitRule::scan.
size_t deepseek_llm_word_end(std::string_view text, size_t begin);

}  // namespace sluice::text
