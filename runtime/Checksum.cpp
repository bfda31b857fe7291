// The checksum: LLVM's XXH3.

#include "runtime/Checksum.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/xxhash.h"

#include <fmt/format.h>

namespace kiln {

std::string checksum(std::string_view bytes) {
  return fmt::format("{:016x}", llvm::xxh3_64bits(llvm::StringRef(bytes.data(), bytes.size())));
}

} // namespace kiln
