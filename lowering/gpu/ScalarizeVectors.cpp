// Replaces vectors by scalars, in one walk in which definitions come before uses.
//
// The elements of each vector are known before its users are visited, except for those of a phi. A phi becomes a phi
// for each element, and their operands are set at the end. A vector that is still needed as a whole is built from its
// elements.

#include "lowering/gpu/GpuBackend.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Local.h"

namespace kiln::lowering::gpu {

using Elements = llvm::SmallVector<llvm::Value *, 0>;

static llvm::FixedVectorType *vectorType(const llvm::Value *value) {
  return llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
}
static llvm::FixedVectorType *vectorType(llvm::Type *element, size_t count) {
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
}

/// The index of an insertion or extraction, if it is constant and within the vector.
static std::optional<uint64_t> indexWithin(const llvm::Value *index, const llvm::FixedVectorType &vector) {
  const auto *constant = llvm::dyn_cast<llvm::ConstantInt>(index);
  if (!constant || constant->getValue().uge(vector.getNumElements()))
    return std::nullopt;
  return constant->getZExtValue();
}

/// Whether the result's element i is a function of the operands' elements i.
static bool isElementwise(const llvm::Instruction &instruction) {
  if (const auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
    return llvm::isTriviallyVectorizable(call->getIntrinsicID());
  return llvm::isa<llvm::UnaryOperator, llvm::BinaryOperator, llvm::CmpInst, llvm::SelectInst, llvm::FreezeInst>(
             instruction) ||
         (llvm::isa<llvm::CastInst>(instruction) && !llvm::isa<llvm::BitCastInst>(instruction));
}

namespace {
class Scalarizer {
public:
  void run(llvm::Function &function);

private:
  /// Records the elements of a vector, or replaces an extraction. False if the instruction must stay.
  bool replace(llvm::Instruction &instruction);
  bool replaceInsertion(llvm::InsertElementInst &insert);
  bool replaceExtraction(llvm::ExtractElementInst &extract);
  void replaceShuffle(llvm::ShuffleVectorInst &shuffle);
  bool replaceBitCast(llvm::BitCastInst &cast);
  void replacePhi(llvm::PHINode &phi);
  void replaceElementwise(llvm::Instruction &instruction);

  /// The elements of a vector; of a scalar itself. The result is valid until the next call.
  llvm::ArrayRef<llvm::Value *> elementsOf(llvm::Value *value);
  /// One element of `type`, which has the bits of all `parts`.
  llvm::Value *joined(llvm::IRBuilder<> &builder, llvm::ArrayRef<llvm::Value *> parts, llvm::Type *type);
  void completePhis();
  void eraseReplaced();

  llvm::DenseMap<llvm::Value *, Elements> known;
  llvm::DenseMap<llvm::Value *, std::pair<llvm::Value *, unsigned>> parts; // parts of a scalar, with their number
  llvm::SmallVector<llvm::PHINode *> phis;
  llvm::SmallVector<llvm::Instruction *> replaced;
};
} // namespace

/// The position after the definition of a value in `function`.
static llvm::BasicBlock::iterator positionAfter(llvm::Value *value, llvm::Function &function) {
  auto *instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!instruction)
    return function.getEntryBlock().getFirstInsertionPt();
  return llvm::isa<llvm::PHINode>(instruction) ? instruction->getParent()->getFirstInsertionPt()
                                               : std::next(instruction->getIterator());
}

llvm::ArrayRef<llvm::Value *> Scalarizer::elementsOf(llvm::Value *value) {
  const auto [entry, isNew] = known.try_emplace(value);
  Elements &elements = entry->second;
  if (!isNew)
    return elements;
  const llvm::FixedVectorType *const type = vectorType(value);
  if (!type) {
    elements.push_back(value);
  } else if (auto *constant = llvm::dyn_cast<llvm::Constant>(value)) {
    llvm::Type *const number = llvm::Type::getInt32Ty(value->getContext());
    for (unsigned i = 0; i < type->getNumElements(); ++i)
      elements.push_back(llvm::ConstantExpr::getExtractElement(constant, llvm::ConstantInt::get(number, i)));
  } else {
    auto *const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    llvm::Function &function =
        instruction ? *instruction->getFunction() : *llvm::cast<llvm::Argument>(value)->getParent();
    llvm::IRBuilder<> builder(function.getContext());
    builder.SetInsertPoint(positionAfter(value, function));
    if (instruction)
      builder.SetCurrentDebugLocation(instruction->getDebugLoc());
    for (unsigned i = 0; i < type->getNumElements(); ++i)
      elements.push_back(builder.CreateExtractElement(value, i));
  }
  return elements;
}

bool Scalarizer::replaceInsertion(llvm::InsertElementInst &insert) {
  const std::optional<uint64_t> index = indexWithin(insert.getOperand(2), *vectorType(&insert));
  if (!index)
    return false;
  llvm::Value *const rest = insert.getOperand(0);
  Elements elements;
  if (!llvm::isa<llvm::PHINode>(rest) && rest->hasOneUse() && known.contains(rest))
    elements = std::move(known.find(rest)->second); // nothing else needs them
  else
    elements.assign(elementsOf(rest).begin(), elementsOf(rest).end());
  elements[*index] = insert.getOperand(1);
  known.insert_or_assign(&insert, std::move(elements));
  return true;
}

bool Scalarizer::replaceExtraction(llvm::ExtractElementInst &extract) {
  const std::optional<uint64_t> index = indexWithin(extract.getIndexOperand(), *vectorType(extract.getVectorOperand()));
  if (!index)
    return false;
  extract.replaceAllUsesWith(elementsOf(extract.getVectorOperand())[*index]);
  return true;
}

void Scalarizer::replaceShuffle(llvm::ShuffleVectorInst &shuffle) {
  const Elements left(elementsOf(shuffle.getOperand(0))), right(elementsOf(shuffle.getOperand(1)));
  Elements elements;
  for (const int index : shuffle.getShuffleMask()) {
    const auto at = static_cast<size_t>(index);
    elements.push_back(index < 0          ? llvm::PoisonValue::get(vectorType(&shuffle)->getElementType())
                       : at < left.size() ? left[at]
                                          : right[at - left.size()]);
  }
  known.insert_or_assign(&shuffle, std::move(elements));
}

llvm::Value *Scalarizer::joined(llvm::IRBuilder<> &builder, llvm::ArrayRef<llvm::Value *> values, llvm::Type *type) {
  const auto [whole, first] = parts.lookup(values.front());
  const auto isPart = [&](const auto &part) {
    return parts.lookup(part.value()) == std::pair(whole, static_cast<unsigned>(part.index()));
  };
  if (whole && whole->getType()->getPrimitiveSizeInBits() == type->getPrimitiveSizeInBits() &&
      llvm::all_of(llvm::enumerate(values), isPart))
    return builder.CreateBitCast(whole, type);
  llvm::Value *vector = llvm::PoisonValue::get(vectorType(values.front()->getType(), values.size()));
  for (const auto [index, value] : llvm::enumerate(values))
    vector = builder.CreateInsertElement(vector, value, index);
  return builder.CreateBitCast(vector, type);
}

bool Scalarizer::replaceBitCast(llvm::BitCastInst &cast) {
  llvm::Type *const type = cast.getType()->getScalarType();
  const size_t to = vectorType(&cast) ? vectorType(&cast)->getNumElements() : 1;
  const llvm::FixedVectorType *const fromType = vectorType(cast.getOperand(0));
  const size_t from = fromType ? fromType->getNumElements() : 1;
  if (from % to && to % from)
    return false;
  const Elements source(elementsOf(cast.getOperand(0)));
  llvm::IRBuilder<> builder(&cast);
  Elements elements;
  if (from >= to) {
    const size_t count = from / to;
    for (size_t i = 0; i < from; i += count)
      elements.push_back(count == 1 ? builder.CreateBitCast(source[i], type)
                                    : joined(builder, llvm::ArrayRef(source).slice(i, count), type));
  } else {
    const size_t count = to / from;
    for (llvm::Value *whole : source) {
      llvm::Value *const vector = builder.CreateBitCast(whole, vectorType(type, count));
      for (unsigned i = 0; i < count; ++i) {
        elements.push_back(builder.CreateExtractElement(vector, i));
        if (!llvm::isa<llvm::Constant>(elements.back()))
          parts[elements.back()] = {whole, i};
      }
    }
  }
  if (vectorType(&cast))
    known.insert_or_assign(&cast, std::move(elements));
  else
    cast.replaceAllUsesWith(elements.front());
  return true;
}

void Scalarizer::replacePhi(llvm::PHINode &phi) {
  llvm::IRBuilder<> builder(&phi);
  Elements elements;
  for (unsigned i = 0; i < vectorType(&phi)->getNumElements(); ++i)
    elements.push_back(builder.CreatePHI(vectorType(&phi)->getElementType(), phi.getNumIncomingValues()));
  if (llvm::isa<llvm::FPMathOperator>(phi))
    for (llvm::Value *element : elements)
      llvm::cast<llvm::Instruction>(element)->copyFastMathFlags(&phi);
  known.insert_or_assign(&phi, std::move(elements));
  phis.push_back(&phi);
}

void Scalarizer::completePhis() {
  for (llvm::PHINode *phi : phis)
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
      const Elements incoming(elementsOf(phi->getIncomingValue(i)));
      for (const auto [element, value] : llvm::zip_equal(elementsOf(phi), incoming))
        llvm::cast<llvm::PHINode>(element)->addIncoming(value, phi->getIncomingBlock(i));
    }
}

/// The intrinsic of a call for operands and a result of other types.
static llvm::Function *declared(llvm::IntrinsicInst &call, llvm::FunctionType *type) {
  llvm::SmallVector<llvm::Type *> overloads;
  (void)llvm::Intrinsic::getIntrinsicSignature(call.getIntrinsicID(), type, overloads);
  return llvm::Intrinsic::getOrInsertDeclaration(call.getModule(), call.getIntrinsicID(), overloads);
}

/// Clones the instruction for each element.
void Scalarizer::replaceElementwise(llvm::Instruction &instruction) {
  auto *const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  const unsigned operands = call ? call->arg_size() : instruction.getNumOperands();
  llvm::SmallVector<Elements> sources;
  for (unsigned i = 0; i < operands; ++i)
    sources.emplace_back(elementsOf(instruction.getOperand(i)));
  llvm::Type *const type = vectorType(&instruction)->getElementType();
  llvm::Function *function = nullptr;
  Elements elements;
  for (unsigned index = 0; index < vectorType(&instruction)->getNumElements(); ++index) {
    llvm::Instruction *const made = instruction.clone();
    made->mutateType(type);
    for (unsigned i = 0; i < operands; ++i)
      made->setOperand(i, sources[i].size() == 1 ? sources[i][0] : sources[i][index]);
    if (call) {
      auto *const scalar = llvm::cast<llvm::CallInst>(made);
      if (!function) {
        const auto types = llvm::map_to_vector(scalar->args(), [](llvm::Value *value) { return value->getType(); });
        function = declared(*call, llvm::FunctionType::get(type, types, false));
      }
      scalar->setCalledFunction(function);
    }
    made->insertBefore(instruction.getIterator());
    elements.push_back(made);
  }
  known.insert_or_assign(&instruction, std::move(elements));
}

bool Scalarizer::replace(llvm::Instruction &instruction) {
  if (auto *insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction))
    return replaceInsertion(*insert);
  if (auto *extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction))
    return replaceExtraction(*extract);
  if (auto *cast = llvm::dyn_cast<llvm::BitCastInst>(&instruction))
    return (vectorType(cast) || vectorType(cast->getOperand(0))) && replaceBitCast(*cast);
  if (!vectorType(&instruction))
    return false;
  if (auto *shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction))
    return replaceShuffle(*shuffle), true;
  if (auto *phi = llvm::dyn_cast<llvm::PHINode>(&instruction))
    return replacePhi(*phi), true;
  return isElementwise(instruction) && (replaceElementwise(instruction), true);
}

/// Erases the replaced instructions. The others get whole vectors.
void Scalarizer::eraseReplaced() {
  for (llvm::Instruction *instruction : replaced)
    instruction->dropAllReferences();
  for (llvm::Instruction *instruction : replaced) {
    if (!instruction->use_empty()) {
      llvm::IRBuilder<> builder(instruction->getContext());
      builder.SetInsertPoint(positionAfter(instruction, *instruction->getFunction()));
      llvm::Value *vector = llvm::PoisonValue::get(instruction->getType());
      for (const auto [index, element] : llvm::enumerate(elementsOf(instruction)))
        vector = builder.CreateInsertElement(vector, element, index);
      instruction->replaceAllUsesWith(vector);
    }
    instruction->eraseFromParent();
  }
}

void Scalarizer::run(llvm::Function &function) {
  llvm::removeUnreachableBlocks(function);
  const llvm::ReversePostOrderTraversal<llvm::Function *> blocks(&function);
  for (llvm::BasicBlock *block : blocks)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(*block))
      if (replace(instruction))
        replaced.push_back(&instruction);
  completePhis();
  eraseReplaced();
}

void scalarizeVectors(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      Scalarizer().run(function);
}

} // namespace kiln::lowering::gpu
