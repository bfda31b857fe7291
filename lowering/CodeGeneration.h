// LLVM's half of every backend: passes over a module, then what its target makes of it.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::lowering {

/// Collects the errors that LLVM reports without stopping, in a context while it lives; remarks and warnings are
/// dropped.
class LlvmErrors {
public:
  explicit LlvmErrors(llvm::LLVMContext &context);
  ~LlvmErrors();
  LlvmErrors(const LlvmErrors &) = delete;
  LlvmErrors &operator=(const LlvmErrors &) = delete;
  /// Throws BackendError when there were any.
  void check() const;

private:
  llvm::LLVMContext &context;
  std::string text;
};

/// Target machines at rest, each for code of one kind, such as one processor's: to make one and let it see its first
/// function takes LLVM a millisecond. Safe from any thread; a machine that is out serves one compilation.
class MachinePool {
public:
  /// One that is at rest, else what `create` makes.
  std::unique_ptr<llvm::TargetMachine> take(const std::string &kind,
                                            llvm::function_ref<std::unique_ptr<llvm::TargetMachine>()> create);
  /// Takes one back that has come to its end: one that an error stopped may be in any state.
  void give(const std::string &kind, std::unique_ptr<llvm::TargetMachine> machine);

private:
  std::mutex mutex;
  std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>> atRest;
};

/// Runs a pipeline of passes as `opt -passes=` spells it. `library`: which functions of C there are; null: what LLVM
/// thinks that the target has.
void runPasses(llvm::Module &module, llvm::TargetMachine &machine, llvm::StringRef pipeline,
               const llvm::TargetLibraryInfoImpl *library = nullptr);

/// An object or its assembly. Changes the module. `without`: passes of the target that are left out, as llc's flags
/// spell them. Throws BackendError when the target cannot write that.
llvm::SmallVector<char, 0> generate(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
                                    const llvm::TargetLibraryInfoImpl *library = nullptr,
                                    llvm::ArrayRef<llvm::StringRef> without = {});

std::string textOf(const llvm::Module &module);

} // namespace kiln::lowering
