// Streams text to a reader: whole UTF-8 characters, and no part of a stop text.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class TextStream {
public:
  /// Ends the text before the first stop that occurs in it. No stop is empty.
  explicit TextStream(std::vector<std::string> stops = {}) : stops(std::move(stops)) {}

  /// Takes the next bytes, and returns those that can be shown now. Bytes that may become a stop, or that begin a
  /// character, are held back. Bytes that are not UTF-8 pass unchanged.
  std::string push(std::string_view bytes);
  /// The bytes still held back, at the end of the text.
  std::string finish();
  /// Whether a stop has occurred; the rest is discarded.
  bool isStopped() const { return stopped; }

private:
  /// Number of bytes at the end that must still be held back.
  size_t held() const;

  std::vector<std::string> stops;
  std::string waiting;
  bool stopped = false;
};

} // namespace kiln
