// Text on its way to a reader, piece by piece: whole characters of UTF-8, and nothing of what ends the text.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class TextStream {
public:
  /// A text that ends in front of the first of these that occurs in it; none is empty.
  explicit TextStream(std::vector<std::string> stops = {}) : stops(std::move(stops)) {}

  /// Takes the next bytes; gives those that may be shown by now. What may yet become a stop, or is the beginning of a
  /// character, waits. Bytes that are no UTF-8 pass as they are.
  std::string push(std::string_view bytes);
  /// What still waits, when no more comes.
  std::string finish();
  /// Whether a stop has come; whatever follows is left out.
  bool isStopped() const { return stopped; }

private:
  /// Bytes at the end of what waits that must go on waiting.
  size_t held() const;

  std::vector<std::string> stops;
  std::string waiting;
  bool stopped = false;
};

} // namespace kiln
