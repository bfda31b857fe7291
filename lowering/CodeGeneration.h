// LLVM's half of every backend: passes over a module, then what its target makes of it.

#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"

#include <string>

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

/// Runs a pipeline of passes as `opt -passes=` spells it. `library`: which functions of C there are; null: what LLVM
/// thinks that the target has.
void runPasses(llvm::Module &module, llvm::TargetMachine &machine, llvm::StringRef pipeline,
               const llvm::TargetLibraryInfoImpl *library = nullptr);

/// An object or its assembly. Changes the module. Throws BackendError when the target cannot write that.
llvm::SmallVector<char, 0> generate(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
                                    const llvm::TargetLibraryInfoImpl *library = nullptr);

std::string textOf(const llvm::Module &module);

} // namespace kiln::lowering
