// Unicode normalisation form C, which the Qwen tokenizers apply before anything else: a letter and
// its accent, typed as two characters, become the one that the vocabulary was trained on.
//
// Nearly all text is in NFC already, so the text is scanned for characters that are "unsafe" (may
// change, move or join what is before them); only the stretches around those are taken apart,
// ordered and put together again (Unicode Standard Annex 15). Pure function; any thread.
#pragma once

#include <string>
#include <string_view>

namespace sluice::text {

/// `text` itself when it is in NFC, otherwise a copy that lives in `storage`. Bytes that are not
/// UTF-8 become U+FFFD in stretches that change; callers repair the text first.
std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace sluice::text
