// Compiles a module to the stage asked for, and writes it.

#include "tools/kilnc/Emit.h"

#include "dialect/dsl/Types.h"
#include "lowering/Driver.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::tools {

std::string stageNames(const lowering::Backend &backend) {
  std::string names = "tile";
  for (const lowering::Stage &stage : backend.stages())
    names += std::string(", ") + stage.name;
  return names;
}

bool isBinary(const std::string &stage) { return stage == "obj" || stage == "cubin"; }

void checkStage(const std::string &stage, const lowering::Backend &backend) {
  const auto stages = backend.stages();
  if (stage != "tile" && std::none_of(stages.begin(), stages.end(), [&](const auto &one) { return stage == one.name; }))
    throw Error(fmt::format("expected --emit to be one of {}, but got '{}'", stageNames(backend), stage));
}

namespace {
/// Leaves the compiler when the stage asked for has come.
struct StageReached {
  std::string text;
};
} // namespace

std::string emit(mlir::ModuleOp module, const std::string &stage, const lowering::Backend &backend) {
  if (stage == "tile") // as it is, with locations if --mlir-print-debuginfo asks for them
    return lowering::stageText(module) + "\n";
  try {
    const std::vector<char> code =
        lowering::compile(module, backend, [&](const std::string &name, const std::string &text) {
          if (name == stage)
            throw StageReached{text};
        });
    if (stage != backend.stages().back().name)
      throw Error(fmt::format("the compiler passed no stage '{}'", stage), Fault::internal);
    return std::string(code.begin(), code.end());
  } catch (StageReached &reached) {
    return isBinary(stage) || reached.text.ends_with('\n') ? reached.text : reached.text + '\n';
  }
}

std::string explained(mlir::ModuleOp module, const lowering::Backend &backend) {
  std::string text = lowering::explain(module, backend);
  if (text.empty())
    throw Error(fmt::format("expected a GPU for --target with --explain, such as sm_80, but got '{}'", backend.name()));
  return text;
}

} // namespace kiln::tools
