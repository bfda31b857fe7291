// Finds declarations such as
//
//     .visible .global .align 8 .b64 k_shared_bytes = 66560;
//     .global .align 1 .b8 text_0[6] = {115, 109, 97, 108, 108};
//     .reqntid 128

#include "runtime/cuda/PtxText.h"

#include <charconv>

namespace kiln::cuda {

/// The number at the beginning of `text` after blanks; 0 if there is none.
static int64_t numberAt(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int PtxText::threads() const {
  constexpr std::string_view directive = ".reqntid ";
  const size_t at = text.find(directive);
  return at == std::string::npos ? 0 : static_cast<int>(numberAt(std::string_view(text).substr(at + directive.size())));
}

/// The text after the equals sign of a module variable; empty without one.
std::string_view PtxText::initialiserOf(std::string_view name) const {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    if (at == 0 || text[at - 1] != ' ')
      continue;
    std::string_view rest = std::string_view(text).substr(at + name.size());
    if (rest.starts_with('['))
      rest.remove_prefix(std::min(rest.find(']'), rest.size() - 1) + 1);
    if (rest.starts_with(" = "))
      return rest.substr(3, rest.find(';') - 3);
  }
  return {};
}

int64_t PtxText::constant(std::string_view name) const { return numberAt(initialiserOf(name)); }

std::string PtxText::bytes(std::string_view name) const {
  std::string bytes;
  std::string_view list = initialiserOf(name);
  while (!list.empty()) {
    list.remove_prefix(1); // the brace, then the commas
    if (const int64_t byte = numberAt(list))
      bytes += static_cast<char>(byte);
    else
      break;
    list.remove_prefix(std::min(list.find(','), list.size()));
  }
  return bytes;
}

} // namespace kiln::cuda
