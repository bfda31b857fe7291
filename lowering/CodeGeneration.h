// The part of code generation that LLVM does for every backend: passes over a module, then assembly or an object.

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

/// Collects the errors that LLVM reports in a context during its lifetime. Remarks and warnings are dropped.
class LlvmErrors {
public:
  explicit LlvmErrors(llvm::LLVMContext &context);
  ~LlvmErrors();
  LlvmErrors(const LlvmErrors &) = delete;
  LlvmErrors &operator=(const LlvmErrors &) = delete;
  /// Throws BackendError if there were errors.
  void check() const;

private:
  llvm::LLVMContext &context;
  std::string text;
};

/// Idle target machines, each for one kind of code, such as that of one processor. Creating and warming up a machine
/// takes LLVM a millisecond. Thread-safe; a machine serves one compilation at a time.
class MachinePool {
public:
  /// An idle machine, or a new one from `create`.
  std::unique_ptr<llvm::TargetMachine> take(const std::string &kind,
                                            llvm::function_ref<std::unique_ptr<llvm::TargetMachine>()> create);
  /// Returns a machine after a successful compilation. After an error its state is unknown, so it must not come back.
  void give(const std::string &kind, std::unique_ptr<llvm::TargetMachine> machine);

private:
  std::mutex mutex;
  std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>> atRest;
};

/// Runs a pipeline of passes in the syntax of `opt -passes=`, with one more: `rotate-loops` rotates all loops in time
/// linear in their number. `library` lists the available C functions; null: LLVM's
/// assumptions about the target.
void runPasses(llvm::Module &module, llvm::TargetMachine &machine, llvm::StringRef pipeline,
               const llvm::TargetLibraryInfoImpl *library = nullptr);

/// Generates an object or assembly. Changes the module. `without`: passes of the target to skip, in the spelling of
/// llc's flags. Throws BackendError if the target cannot generate it.
llvm::SmallVector<char, 0> generate(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
                                    const llvm::TargetLibraryInfoImpl *library = nullptr,
                                    llvm::ArrayRef<llvm::StringRef> without = {});

std::string textOf(const llvm::Module &module);

} // namespace kiln::lowering
