// Compiles a module to the requested stage, and writes it.

#include "tools/kilnc/Emit.h"

#include "dialect/dsl/Types.h"
#include "lowering/Driver.h"

#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::tools {

/// All stages of --emit for a kind of target. The reference backend has all of a CPU's. Without a linker, a GPU's
/// backend lacks only the last one, cubin.
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
  const auto backend = lowering::openBackend(target); // throws for an unknown name
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
  processor.consume_back(":amx"); // the reference backend ignores it
  return lowering::openBackend(processor.str() + variant);
}

namespace {
/// Ends the compilation after the requested stage.
struct StageReached {
  std::string text;
};
} // namespace

std::string emit(mlir::ModuleOp module, const std::string &stage, const lowering::Backend &backend) {
  if (stage == "tile") // unchanged, with locations if --mlir-print-debuginfo is given
    return lowering::stageText(module) + "\n";
  try {
    const auto reach = [&](const std::string &name, const std::string &text) {
      if (name == stage)
        throw StageReached{text};
    };
    // An object needs no stages before it, which would double the work.
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
    throw Error(
        fmt::format("--explain requires a target that is not the reference backend, but got '{}'", backend.name()));
  return text;
}

} // namespace kiln::tools
