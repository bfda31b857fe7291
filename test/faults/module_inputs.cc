// Modules with damage, through the parser, the verifier and the compiler.

#include "dialect/tile/TileDialect.h"
#include "lowering/Diagnostics.h"
#include "lowering/Driver.h"
#include "test/faults/inputs.h"
#include "test/temporary_folder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <filesystem>

namespace kiln::faults {

namespace {

class ModuleInputs : public Inputs {
public:
  explicit ModuleInputs(const std::string &sources)
      : fast(lowering::openBackend("x86-64-v3")), oracle(lowering::openBackend("x86-64-v3:generic")) {
    std::vector<std::string> paths;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(sources))
      if (entry.path().extension() == ".mlir")
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string &path : paths)
      addModules(readText(path));
    if (modules.empty())
      throw Error("expected .mlir files below '" + sources + "', but there are none");
  }

  std::string run(Chance &chance) override {
    const std::string text = damaged(chance.oneOf(modules), modules, chance);
    const bool generic = chance.below(4) == 0;
    show(text);
    return complaintOf([&] { compile(text, generic); });
  }

private:
  /// A test's file holds several modules, split by a line of dashes, between comments.
  void addModules(const std::string &text) {
    const std::string split = "// -----";
    for (size_t from = 0, to = 0; to != std::string::npos; from = to + split.size()) {
      to = text.find(split, from);
      const std::string module = withoutComments(text.substr(from, to == std::string::npos ? to : to - from));
      // Tests of internal errors use operations that no CPU has: these end as they should.
      if (module.find("func") != std::string::npos && module.find("llvm.call_intrinsic") == std::string::npos)
        modules.push_back(module);
    }
  }

  static std::string withoutComments(const std::string &text) {
    std::string kept;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.find_first_not_of(' ') != line.find("//"))
        kept += line + "\n";
    return kept;
  }

  /// Compiles like kilnc.
  void compile(const std::string &text, bool generic) const {
    lowering::checkModuleText(text, "module.mlir");
    mlir::DialectRegistry registry;
    lowering::registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                        mlir::func::FuncDialect, mlir::memref::MemRefDialect>();
    mlir::OwningOpRef<mlir::ModuleOp> module;
    {
      const lowering::ErrorCollector errors(&context);
      module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
      if (!module && errors.text().empty())
        throw std::runtime_error("refused without a word");
    }
    if (module)
      lowering::compile(*module, generic ? *oracle : *fast);
  }

  const std::shared_ptr<const lowering::Backend> fast, oracle;
  std::vector<std::string> modules;
};

} // namespace

std::unique_ptr<Inputs> moduleInputs(const std::string &sources) { return std::make_unique<ModuleInputs>(sources); }

} // namespace kiln::faults
