// Compiles a module to the stage asked for, and writes it.

#include "tools/kilnc/Emit.h"

#include "dialect/dsl/Types.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace kiln::tools {

static constexpr const char *stages[] = {"tile", "linalg", "loops", "llvm-dialect", "llvm", "asm", "obj"};

std::string stageNames() {
  std::string names;
  for (const char *stage : stages)
    names += std::string(names.empty() ? "" : ", ") + stage;
  return names;
}

void checkStage(const std::string &stage) {
  if (std::find(std::begin(stages), std::end(stages), stage) == std::end(stages))
    throw Error(fmt::format("expected --emit to be one of {}, but got '{}'", stageNames(), stage));
}

namespace {
/// Leaves the compiler when the stage asked for has come.
struct StageReached {
  std::string text;
};
} // namespace

std::string emit(mlir::ModuleOp module, const std::string &stage, const lowering::CpuTarget &target,
                 const lowering::CpuOptions &options) {
  if (stage == "tile") { // as it is, with locations if --mlir-print-debuginfo asks for them
    std::string text;
    llvm::raw_string_ostream(text) << *module << "\n";
    return text;
  }
  try {
    const std::vector<char> object =
        lowering::compileToObject(module, target, options, [&](const std::string &name, const std::string &text) {
          if (name == stage)
            throw StageReached{text};
        });
    if (stage != "obj")
      throw Error(fmt::format("the compiler passed no stage '{}'", stage), Fault::internal);
    return std::string(object.begin(), object.end());
  } catch (StageReached &reached) {
    return reached.text.ends_with('\n') ? reached.text : reached.text + '\n';
  }
}

void writeOutput(const std::string &path, const std::string &content) {
  const auto fail = [&](const std::string &why) {
    throw Error(fmt::format("expected to write '{}', but could not: {}", path, why), Fault::device);
  };
  if (path == "-")
    return writeResult(content);
  std::error_code failure;
  if (std::filesystem::exists(path, failure) && !std::filesystem::is_regular_file(path, failure)) {
    std::ofstream device(path, std::ios::binary); // a device such as /dev/null is not replaced
    if (!(device << content).flush())
      fail(std::strerror(errno));
    return;
  }
  const std::string aside = fmt::format("{}.{}.tmp", path, ::getpid());
  std::ofstream out(aside, std::ios::binary);
  out << content;
  out.close();
  if (!out) {
    const std::string why = std::strerror(errno);
    std::filesystem::remove(aside, failure);
    fail(why);
  }
  std::filesystem::rename(aside, path, failure);
  if (failure)
    fail(failure.message());
}

} // namespace kiln::tools
