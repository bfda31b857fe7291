// Emits tensor core instructions: products of a warp by LLVM's intrinsics, those of warpgroups as inline PTX.

#include "lowering/gpu/PtxBuilder.h"

#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln::lowering::gpu {

/// f32 as tf32, or the remainder. The tensor core truncates the lowest 13 bits, which would make every number smaller
/// by half of tf32's last place, 2⁻¹⁰, on average; so that much is added before. Relative to the number this is up to
/// 0.71 · 2⁻¹¹ too much or 1.29 · 2⁻¹¹ too little, and little on average. Infinities and NaNs are unchanged.
Value ProductPtxBuilder::toTf32(Value number, bool isRest) {
  const Type word = builder.getI32Type();
  const auto larger = [&](Value of) -> Value {
    const auto factor = builder.getF32FloatAttr(1 + 0x1.6bp-12F);
    return LLVM::BitcastOp::create(
        builder, loc, word, LLVM::FMulOp::create(builder, loc, of, LLVM::ConstantOp::create(builder, loc, factor)));
  };
  const Value large = larger(number);
  if (!isRest)
    return large;
  constexpr int64_t kept = ~0x1fff;
  const Value cut = LLVM::AndOp::create(builder, loc, large, constant(kept));
  const Value known = LLVM::BitcastOp::create(builder, loc, number.getType(), cut);
  return larger(LLVM::FSubOp::create(builder, loc, number, known));
}

/// Two f32 rounded to bf16, or their rounded remainders, in a word.
Value ProductPtxBuilder::toBf16(Value pair, bool isRest) {
  const auto narrow = VectorType::get({2}, builder.getBF16Type());
  Value rounded = LLVM::FPTruncOp::create(builder, loc, narrow, pair);
  if (isRest) {
    const Value wide = LLVM::FPExtOp::create(builder, loc, pair.getType(), rounded);
    rounded = LLVM::FPTruncOp::create(builder, loc, narrow, LLVM::FSubOp::create(builder, loc, pair, wide));
  }
  return LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), rounded);
}

/// mma.sync by its intrinsic. Operands are 32-bit words, or pairs for f16; f32 is rounded to tf32 or split.
Value ProductPtxBuilder::mma(simt::MmaOp op) {
  const Type element = cast<VectorType>(op.getA().getType()).getElementType();
  const Type word = builder.getI32Type(), sum = cast<VectorType>(op.getType()).getElementType();
  SmallVector<Value> operands;
  const bool isOfBf16 = op.getAPart() && cast<VectorType>(op.getA().getType()).getNumElements() == 8;
  for (auto [fragment, part] : {std::pair(op.getA(), op.getAPart()), std::pair(op.getB(), op.getBPart())}) {
    const auto type = cast<VectorType>(fragment.getType());
    const bool isRest = part == simt::Part::Small;
    if (isOfBf16) {
      const SmallVector<Value> numbers = elements(fragment);
      for (size_t i = 0; i < numbers.size(); i += 2)
        operands.push_back(toBf16(vectorOf({numbers[i], numbers[i + 1]}, element), isRest));
    } else if (element.isF32()) {
      for (Value number : elements(fragment))
        operands.push_back(toTf32(number, isRest));
    } else {
      const int64_t count = type.getNumElements() * type.getElementTypeBitWidth() / 32;
      for (Value pair : elements(LLVM::BitcastOp::create(builder, loc, VectorType::get({count}, word), fragment)))
        operands.push_back(element.isF16()
                               ? LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, element), pair).getResult()
                               : pair);
    }
  }
  llvm::append_range(operands, elements(op.getAcc()));
  std::string factors;
  if (const auto types = op->getAttrOfType<ArrayAttr>(tile::factorsName))
    for (const Type factor : types.getAsValueRange<TypeAttr>()) {
      assert((isa<Float8E5M2Type, Float8E4M3FNType>(factor)) && "the verifier takes no other");
      factors += isa<Float8E5M2Type>(factor) ? ".e5m2" : ".e4m3";
    }
  const std::string ofBytes = "llvm.nvvm.mma.m16n8k32.row.col.f32" + factors + ".f32";
  const StringRef name = !factors.empty()               ? StringRef(ofBytes)
                         : element.isF32() && !isOfBf16 ? "llvm.nvvm.mma.m16n8k8.row.col.tf32"
                         : element.isBF16() || isOfBf16 ? "llvm.nvvm.mma.m16n8k16.row.col.bf16"
                         : element.isF16()              ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
                                                        : "llvm.nvvm.mma.m16n8k32.row.col.s8";
  const auto result = LLVM::LLVMStructType::getLiteral(op.getContext(), SmallVector<Type>(4, sum));
  const Value acc = intrinsic(name, result, operands);
  SmallVector<Value> parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(builder, loc, acc, i));
  return vectorOf(parts, sum);
}

Value ProductPtxBuilder::pass(const std::string &text, Value acc) {
  const SmallVector<Value> parts = elements(acc);
  std::string constraints;
  for (size_t i = 0; i < parts.size(); ++i)
    constraints += "=f,";
  for (size_t i = 0; i < parts.size(); ++i)
    constraints += std::to_string(i) + ",";
  const Type element = parts.front().getType();
  return vectorOf(assembly(text, constraints + "~{memory}", SmallVector<Type>(parts.size(), element), parts, true),
                  element);
}

/// By inline PTX, because LLVM has no intrinsic; accumulators are results and operands in the same registers.
Value ProductPtxBuilder::wgmma(simt::WgmmaOp op) {
  SmallVector<Value> operands = elements(op.getAcc());
  const size_t count = operands.size();
  const Type sum = operands.front().getType();
  std::string constraints, registers;
  for (size_t i = 0; i < count; ++i) {
    constraints += "=f,";
    registers += (i ? ", $" : "$") + std::to_string(i);
  }
  for (size_t i = 0; i < count; ++i)
    constraints += std::to_string(i) + ",";
  operands.append({op.getA(), op.getB()});
  const std::string type = cast<TypeAttr>(op.getElementAttr()).getValue().isBF16() ? "bf16" : "f16";
  const std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) + "k16.f32." + type + "." +
                           type + " {" + registers + "}, $" + std::to_string(2 * count) + ", $" +
                           std::to_string(2 * count + 1) + ", 1, 1, 1, " + (op.getATransposed() ? "1" : "0") + ", " +
                           (op.getBTransposed() ? "1;" : "0;");
  return vectorOf(assembly(text, constraints + "l,l,~{memory}", SmallVector<Type>(count, sum), operands, true), sum);
}

/// Fence, products and commit in one statement, so that no instruction accesses their registers in between.
Value ProductPtxBuilder::wgmmaRows(simt::WgmmaRowsOp op) {
  const Type sum = builder.getF32Type(), word = builder.getI32Type();
  const int64_t blocks = op.blocks(), each = op.columns() / 2, count = blocks * each;
  const int64_t words = op.getA().getType().getNumElements() / 2;
  const int64_t firstA = op.getAcc() ? 2 * count : count, b = firstA + words;
  const auto listed = [](int64_t first, int64_t count) {
    std::string names;
    for (int64_t i = first; i < first + count; ++i)
      names += (i == first ? "$" : ", $") + std::to_string(i);
    return "{" + names + "}";
  };
  SmallVector<Value> operands;
  std::string constraints;
  for (int64_t i = 0; i < count; ++i)
    constraints += op.getAcc() ? "=f," : "=&f,";
  if (op.getAcc()) {
    operands = elements(op.getAcc());
    for (int64_t i = 0; i < count; ++i)
      constraints += std::to_string(i) + ",";
  }
  llvm::append_range(operands,
                     elements(LLVM::BitcastOp::create(builder, loc, VectorType::get({words}, word), op.getA())));
  for (int64_t i = 0; i < words; ++i)
    constraints += "r,";
  operands.push_back(op.getB());
  const std::string type = op.getA().getType().getElementType().isBF16() ? "bf16" : "f16";
  const int64_t steps = static_cast<int64_t>(op.getSteps().size());
  const auto matrix = [&](int64_t step) {
    return op.getSteps()[step] ? "b" + std::to_string(step) : "$" + std::to_string(b);
  };
  std::string text = "{ .reg .b64 b<" + std::to_string(steps) + ">; .reg .pred adds; ";
  if (!op.getAcc())
    text += "setp.ne.u64 adds, $" + std::to_string(b) + ", $" + std::to_string(b) + "; ";
  for (const auto [step, distance] : llvm::enumerate(op.getSteps()))
    if (distance)
      text += "add.u64 " + matrix(static_cast<int64_t>(step)) + ", $" + std::to_string(b) + ", " +
              std::to_string(distance) + "; ";
  text += "wgmma.fence.sync.aligned; ";
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t block = 0; block < blocks; ++block)
      text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(op.columns()) + "k16.f32." + type + "." + type +
              " " + listed(block * each, each) + ", " + listed(firstA + 4 * (block * steps + step), 4) + ", " +
              matrix(step) + (step == 0 && !op.getAcc() ? ", adds" : ", 1") + ", 1, 1, " +
              (op.getBTransposed() ? "1; " : "0; ");
  text += "wgmma.commit_group.sync.aligned; }";
  return vectorOf(assembly(text, constraints + "l,~{memory}", SmallVector<Type>(count, sum), operands, true), sum);
}

} // namespace kiln::lowering::gpu
