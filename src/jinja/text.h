// Text that remembers where its bytes came from: from the template, whose markers may become
// special tokens, or from a message, whose bytes must stay plain text whatever they spell. Every
// operation of the interpreter cuts and joins texts through this class, so no step can lose the
// distinction. Whatever is computed (a number, the punctuation of JSON) counts as message: the safe
// side. A plain value; like any other, it may be read by several threads and changed by one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jinja {

enum class Origin : uint8_t { written, message };  ///< written: by the template's author

/// A piece of rendered text from one origin.
struct Span {
  std::string text;
  bool is_template;  ///< control tokens may be recognised here, and nowhere else

  bool operator==(const Span&) const = default;
};

class Text {
 public:
  Text() = default;
  Text(std::string_view bytes, Origin origin) { append(bytes, origin); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  void append(std::string_view bytes, Origin origin);
  void append(const Text& text) { append(text, 0, text.size()); }
  /// The bytes [begin, end) of another text. REQUIRES: begin ≤ end ≤ text.size()
  void append(const Text& text, size_t begin, size_t end);

  /// REQUIRES: begin ≤ end ≤ size()
  Text part(size_t begin, size_t end) const;
  /// REQUIRES: at < size()
  Origin origin_at(size_t at) const { return runs_[run_at(at)].origin; }
  /// Of the whole: written only if every byte is.
  Origin origin() const;

  std::vector<Span> spans() const;

 private:
  /// Bytes of one origin; neighbours differ, the last ends where bytes_ does.
  struct Run {
    size_t end;
    Origin origin;
  };
  size_t run_at(size_t at) const;

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace sluice::jinja
