// Sinks values to their uses. Instructions with effects keep their order; before each, its missing operands are placed,
// depth first.

#include "lowering/gpu/GpuBackend.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

namespace kiln::lowering::gpu {

/// The inline PTX that an instruction consists of; empty if it is another.
static llvm::StringRef ptxOf(const llvm::Instruction &instruction) {
  const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const auto *text = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return text ? llvm::StringRef(text->getAsmString()) : "";
}

/// Whether an instruction is a read of shared memory, as emitted by LowerToPtx.
static bool isSharedRead(const llvm::Instruction &instruction) {
  const llvm::StringRef ptx = ptxOf(instruction);
  return ptx.contains("ld.shared.") || ptx.starts_with("ldmatrix.");
}

/// Whether an instruction waits for products of warpgroups, as emitted by LowerToPtx.
static bool isProductWait(const llvm::Instruction &instruction) {
  return ptxOf(instruction).starts_with("wgmma.wait_group.");
}

/// Whether an instruction is a pure function of its operands within one thread. The order of a warp's products is
/// chosen elsewhere.
static bool isPure(const llvm::Instruction &instruction) {
  const auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  return !llvm::isa<llvm::PHINode>(instruction) && !instruction.isTerminator() && !instruction.mayHaveSideEffects() &&
         !instruction.mayReadFromMemory() && !(call && call->isConvergent());
}

static bool isUsedInItsBlock(const llvm::Instruction &instruction) {
  return llvm::any_of(instruction.users(), [&](const llvm::User *user) {
    return !llvm::isa<llvm::PHINode>(user) &&
           llvm::cast<llvm::Instruction>(user)->getParent() == instruction.getParent();
  });
}

namespace {
class BlockOrder {
public:
  explicit BlockOrder(llvm::BasicBlock &block) {
    for (llvm::Instruction &instruction : block) {
      if ((isPure(instruction) || isSharedRead(instruction)) && isUsedInItsBlock(instruction))
        waiting.insert(&instruction);
      if (isProductWait(instruction) ||
          (isPure(instruction) &&
           llvm::any_of(instruction.operands(), [&](llvm::Value *operand) { return ofProducts.contains(operand); })))
        ofProducts.insert(&instruction);
    }
  }

  void sink(llvm::BasicBlock &block) {
    llvm::SmallVector<llvm::Instruction *> reads;  // reads since the last effect
    llvm::SetVector<llvm::Instruction *> computed; // of products, since the last wait for some
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(block)) {
      if (isSharedRead(instruction))
        reads.push_back(&instruction);
      if (waiting.contains(&instruction) || llvm::isa<llvm::PHINode>(instruction)) {
        if (ofProducts.contains(&instruction))
          computed.insert(&instruction);
        continue;
      }
      if (isProductWait(instruction)) {
        const auto isComputed = [&](const llvm::User *user) {
          return computed.contains(llvm::cast<llvm::Instruction>(user));
        };
        for (llvm::Instruction *value : computed)
          if (!llvm::all_of(value->users(), isComputed))
            place(value, instruction);
        computed.clear();
      }
      if (!isPure(instruction) && !isSharedRead(instruction) && instruction.mayWriteToMemory()) {
        for (llvm::Instruction *read : reads)
          place(read, instruction);
        reads.clear();
      }
      placeOperands(instruction, instruction);
    }
  }

private:
  /// Moves a pending instruction and its operands before `before`.
  void place(llvm::Instruction *instruction, llvm::Instruction &before) {
    if (!waiting.erase(instruction))
      return;
    placeOperands(*instruction, before);
    instruction->moveBefore(before.getIterator());
  }

  void placeOperands(llvm::Instruction &instruction, llvm::Instruction &before) {
    for (llvm::Value *operand : instruction.operands())
      if (auto *needed = llvm::dyn_cast<llvm::Instruction>(operand))
        place(needed, before);
  }

  llvm::DenseSet<llvm::Instruction *> waiting;
  llvm::DenseSet<llvm::Value *> ofProducts; // waits for products, and values computed from their results
};
} // namespace

void sinkValues(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      BlockOrder(block).sink(block);
}

} // namespace kiln::lowering::gpu
