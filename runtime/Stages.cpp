// Writes a compilation's stages to files.

#include "runtime/Stages.h"

#include "dialect/dsl/Types.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace fs = std::filesystem;

namespace kiln {

/// Digits of the key in file names, which distinguish a kernel's specialisations.
static constexpr size_t shortKey = 12;

std::string dumpFolder() {
  const char *folder = std::getenv("KILN_DUMP");
  return folder ? folder : "";
}

/// Replaces a file of that name. A link planted there is replaced, not followed.
static void writeText(const fs::path &path, const std::string &text) {
  std::error_code ignored;
  fs::remove(path, ignored);
  std::FILE *const file = std::fopen(path.c_str(), "wxe");
  const bool isWhole = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file && std::fclose(file) != 0) || !isWhole)
    throw Error(
        fmt::format("expected to write '{}' for KILN_DUMP, but could not: {}", path.string(), std::strerror(errno)),
        Fault::device);
}

static const char *extensionOf(const std::string &stage) {
  return stage == "llvm" ? "ll" : stage == "asm" ? "s" : stage == "ptx" || stage == "cubin" ? stage.c_str() : "mlir";
}

lowering::StageSink dumpStages(const std::string &kernel, const std::string &key) {
  const fs::path folder = fs::path(dumpFolder()) / fmt::format("{}-{}", kernel, key.substr(0, shortKey));
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure)
    throw Error(fmt::format("expected KILN_DUMP to name a folder to write to, but got '{}': {}", dumpFolder(),
                            failure.message()),
                Fault::device);
  if (fs::is_symlink(folder))
    throw Error(fmt::format("expected '{}' to be a folder for KILN_DUMP, but it is a link", folder.string()),
                Fault::device);
  return [folder, number = 0](const std::string &stage, const std::string &text) mutable {
    writeText(folder / fmt::format("{:02}-{}.{}", number++, stage, extensionOf(stage)), text);
  };
}

} // namespace kiln
