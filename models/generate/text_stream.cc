// The part of an unfinished text that can be shown.

#include "models/generate/text_stream.h"

#include <algorithm>

namespace kiln {

/// Length of the UTF-8 character that begins with this byte; 0 if none does.
static size_t lengthOf(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/// Bytes of an incomplete character at the end of a text.
static size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) != 0x80) // not a continuation byte
      return lengthOf(byte) > back ? back : 0;
  }
  return 0;
}

size_t TextStream::held() const {
  size_t most = unfinished(waiting);
  for (const std::string &stop : stops)
    for (size_t n = std::min(stop.size() - 1, waiting.size()); n > most; --n)
      if (waiting.ends_with(std::string_view(stop).substr(0, n)))
        most = n;
  return most;
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped)
    return {};
  waiting += bytes;
  size_t end = std::string::npos;
  for (const std::string &stop : stops)
    end = std::min(end, waiting.find(stop));
  if (end != std::string::npos) {
    stopped = true;
    waiting.resize(end);
    return finish();
  }
  const size_t shown = waiting.size() - held();
  const std::string text = waiting.substr(0, shown);
  waiting.erase(0, shown);
  return text;
}

std::string TextStream::finish() {
  std::string rest;
  rest.swap(waiting);
  return rest;
}

} // namespace kiln
