// Compiles a module to the stage asked for, and writes it.

#include "tools/kilnc/Emit.h"

#include "dialect/dsl/Types.h"
#include "lowering/Driver.h"

#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::tools {

/// Every stage that --emit knows for a kind of target: the oracle passes through all of a CPU's, and what a GPU's
/// backend lacks without a linker is the cubin, its last.
static std::vector<std::string> stagesOf(bool gpu) {
  std::vector<std::string> names = {"tile"};
  for (const lowering::Stage &stage : lowering::openBackend(gpu ? "sm_80" : "cpu:generic")->stages())
    names.emplace_back(stage.name);
  if (gpu)
    names.emplace_back("cubin");
  return names;
}

std::string stageNames(bool ofGpu) { return fmt::format("{}", fmt::join(stagesOf(ofGpu), ", ")); }

bool isBinary(const std::string &stage) { return stage == "obj" || stage == "cubin"; }

std::shared_ptr<const lowering::Backend> backendFor(const std::string &target, const std::string &stage, bool oracle) {
  const auto backend = lowering::openBackend(target); // which throws for a name that is none
  const bool isGpu = target.starts_with("sm_");
  const std::vector<std::string> stages = stagesOf(isGpu);
  if (std::find(stages.begin(), stages.end(), stage) == stages.end())
    throw Error(fmt::format("expected --emit to be one of {} for --target={}, but got '{}'", fmt::join(stages, ", "),
                            target, stage));
  if (isGpu && oracle)
    throw Error(fmt::format("--generic requires a CPU as --target, but got '{}'", target));
  const std::string variant = isGpu ? ":cubin" : ":generic";
  if (target.ends_with(variant) || (isGpu ? stage != "cubin" : !oracle && stage != "linalg"))
    return backend;
  llvm::StringRef processor = target;
  processor.consume_back(":amx"); // nothing to the oracle
  return lowering::openBackend(processor.str() + variant);
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
    const auto reach = [&](const std::string &name, const std::string &text) {
      if (name == stage)
        throw StageReached{text};
    };
    // An object is what compiling gives: nobody looks at the stages before it, which are as much work again.
    const bool isObject = stage == "obj";
    const std::vector<char> code = lowering::compile(module, backend, isObject ? lowering::StageSink() : reach);
    if (!isObject)
      throw Error(fmt::format("the compiler passed no stage '{}'", stage), Fault::internal);
    return std::string(code.begin(), code.end());
  } catch (StageReached &reached) {
    return isBinary(stage) || reached.text.ends_with('\n') ? reached.text : reached.text + '\n';
  }
}

std::string explained(mlir::ModuleOp module, const lowering::Backend &backend) {
  std::string text = lowering::explain(module, backend);
  if (text.empty())
    throw Error(fmt::format("--explain requires a GPU as --target, such as sm_80, but got '{}'", backend.name()));
  return text;
}

} // namespace kiln::tools
