// Which tokens end a model's answer. A file names one EOS, but models also stop by end of turn, end
// of text, or by running into the padding of their training data, so that tokens with well-known
// texts count too, whatever their type (the names are those that the reference knows). Pure
// functions; any thread.
#pragma once

#include <vector>

#include "text/tokenizer.h"

namespace sluice::text {

/// [token]: whether it ends generation. REQUIRES: eos and eot are tokens or kNoToken.
std::vector<bool> ends_of_generation(const Vocabulary& vocabulary);

}  // namespace sluice::text
