// What `perplexity` prints: a result as text and as JSON, and a line for each chunk on the way.
// Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/perplexity.h"

namespace sluice::cli {

/// "chunk 3 of 20: perplexity 12.3456 so far, 210.5 tokens/s, 1:05 left"
std::string progress_line(const PerplexityResult& result);

std::string perplexity_text(const PerplexityResult& result);
nlohmann::ordered_json perplexity_json(const PerplexityResult& result);

}  // namespace sluice::cli
