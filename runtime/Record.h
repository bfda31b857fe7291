// The form in which compiled code is stored in files: the entries of the compile cache (Cache.h), and the images that
// kilnc makes (KernelImage.h). A record has a key, the length of its content and a hash that detects damage. An entry
// of the cache is one record; an image is one or several in a row.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

/// A record in the bytes of a file.
struct Record {
  /// The bytes before the content.
  static constexpr size_t headerBytes = 144;
  std::string_view key, content;
};

/// BLAKE3 as 64 hexadecimal digits.
std::string digestOf(std::string_view text);

/// A record as bytes. `key` has 64 characters, as digestOf() gives them.
std::string makeRecord(std::string_view key, std::string_view content);

/// Removes the record at the begin of `bytes` and returns it. Throws Error (user) with the reason, `it is damaged`,
/// unless it is complete and of this version.
Record takeRecord(std::string_view &bytes);

} // namespace kiln
