// Compiles a module to the stage asked for, and writes it.

#include "tools/kilnc/Emit.h"

#include "dialect/dsl/Types.h"

#include <fmt/format.h>

#include <algorithm>

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
  if (stage == "tile") // as it is, with locations if --mlir-print-debuginfo asks for them
    return lowering::stageText(module) + "\n";
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

} // namespace kiln::tools
