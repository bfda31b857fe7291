// Converts bf16 to f32 by one permutation. x86 has no such conversion, so LLVM widens to words and shifts them. A
// permutation moves the halves directly, with zeros between them:
//
//     %w = zext <16 x i16> %x to <16 x i32>
//     %f = shl <16 x i32> %w, splat (i32 16)
//     // becomes vpermw
//     %p = call <32 x i16> @llvm.x86.avx512.permvar.hi.512(%x and 16 unused halves, <0, 0, 0, 1, 0, 2, …>)
//     %s = select <32 x i1> <0, 1, 0, 1, …>, <32 x i16> %p, zeroinitializer
//     %f = bitcast <32 x i16> %s to <16 x i32>
//
// An empty inline assembly hides the mask from LLVM. Otherwise LLVM would recognise a shuffle of two vectors, and
// select an instruction that overwrites one of them and takes three micro-operations on Intel's cores.
//
// AVX2 permutes bytes only within 128 bits. Halves from memory are broadcast to both 128-bit lanes, at no cost, and
// permuted by vpshufb.

#include "lowering/cpu/CpuBackend.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

#include <numeric>

namespace kiln::lowering::cpu {

namespace {
class Widen {
public:
  Widen(llvm::Function &function, int vectorBits) : function(function), lanes(vectorBits / 32) {}

  void run() {
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function)))
      if (llvm::Value *halves = widenedBy(instruction))
        if (llvm::Value *words = lanes == 16 ? permuted(instruction, halves) : shuffled(instruction, halves)) {
          auto *widened = llvm::cast<llvm::Instruction>(instruction.getOperand(0));
          instruction.replaceAllUsesWith(words);
          instruction.eraseFromParent();
          widened->eraseFromParent();
          if (auto *load = llvm::dyn_cast<llvm::LoadInst>(halves); load && load->use_empty())
            load->eraseFromParent();
        }
  }

private:
  /// The operand of a widening and shift, a vector of halves that fills a register as words; otherwise null.
  llvm::Value *widenedBy(llvm::Instruction &instruction) const {
    using namespace llvm::PatternMatch;
    llvm::Value *halves = nullptr;
    if (!match(&instruction, m_Shl(m_OneUse(m_ZExt(m_Value(halves))), m_SpecificInt(16))))
      return nullptr;
    auto *from = llvm::dyn_cast<llvm::FixedVectorType>(halves->getType());
    const bool isWhole = from && from->getNumElements() == lanes && from->getScalarSizeInBits() == 16;
    return isWhole && instruction.getType()->getScalarSizeInBits() == 32 ? halves : nullptr;
  }

  llvm::Value *permuted(llvm::Instruction &shift, llvm::Value *halves) {
    if (!oddHalves)
      oddHalves = hiddenMask();
    llvm::IRBuilder<> builder(&shift);
    llvm::SmallVector<int> order(2 * lanes, -1);
    std::iota(order.begin(), order.begin() + lanes, 0);
    llvm::SmallVector<llvm::Constant *> places;
    for (uint16_t half = 0; half < 2 * lanes; ++half)
      places.push_back(builder.getInt16(half % 2 ? half / 2 : 0));
    llvm::Value *all = builder.CreateShuffleVector(halves, order);
    llvm::Value *moved = builder.CreateIntrinsic(all->getType(), llvm::Intrinsic::x86_avx512_permvar_hi_512,
                                                 {all, llvm::ConstantVector::get(places)});
    llvm::Value *odd = builder.CreateSelect(oddHalves, moved, llvm::Constant::getNullValue(all->getType()));
    return builder.CreateBitCast(odd, shift.getType());
  }

  /// The mask of the odd halves of 32, defined at the beginning of the function.
  llvm::Value *hiddenMask() {
    llvm::IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
    llvm::Type *word = builder.getInt32Ty();
    auto *same = llvm::InlineAsm::get(llvm::FunctionType::get(word, {word}, false), "", "=r,0", false);
    llvm::Value *bits = builder.CreateCall(same, builder.getInt32(0xaaaaaaaa));
    return builder.CreateBitCast(bits, llvm::FixedVectorType::get(builder.getInt1Ty(), 2 * lanes));
  }

  /// Null for halves that are not loaded from memory.
  llvm::Value *shuffled(llvm::Instruction &shift, llvm::Value *halves) const {
    auto *load = llvm::dyn_cast<llvm::LoadInst>(halves);
    if (!load || !load->isSimple())
      return nullptr;
    llvm::IRBuilder<> builder(load);
    auto *pair = llvm::FixedVectorType::get(builder.getInt64Ty(), 2);
    llvm::Value *low = builder.CreateAlignedLoad(pair, load->getPointerOperand(), load->getAlign());
    llvm::Value *twice = builder.CreateShuffleVector(low, llvm::ArrayRef<int>{0, 1, 0, 1});
    constexpr uint8_t zero = 0x80;
    llvm::SmallVector<llvm::Constant *> places; // byte indices
    for (uint8_t half = 0; half < 2 * lanes; ++half)
      for (const uint8_t byte : {0, 1})
        places.push_back(builder.getInt8(half % 2 ? half / 2 * 2 + byte : zero));
    auto *bytes = llvm::FixedVectorType::get(builder.getInt8Ty(), 4 * lanes);
    llvm::Value *moved =
        builder.CreateIntrinsic(bytes, llvm::Intrinsic::x86_avx2_pshuf_b,
                                {builder.CreateBitCast(twice, bytes), llvm::ConstantVector::get(places)});
    return builder.CreateBitCast(moved, shift.getType());
  }

  llvm::Function &function;
  const unsigned lanes; // words per register
  llvm::Value *oddHalves = nullptr;
};
} // namespace

void widenHalves(llvm::Module &module, int vectorBits) {
  for (llvm::Function &function : module)
    Widen(function, vectorBits).run();
}

} // namespace kiln::lowering::cpu
