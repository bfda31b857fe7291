// Emits the operations of one thread in the LLVM dialect, as inline PTX and calls of LLVM's intrinsics.

#pragma once

#include "dialect/simt/SimtDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace kiln::lowering::gpu {

/// Emits LLVM-dialect operations that replace one operation.
class PtxBuilder {
public:
  explicit PtxBuilder(mlir::Operation *op) : builder(op), loc(op->getLoc()) {}

  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands) {
    auto call = result
                    ? mlir::LLVM::CallIntrinsicOp::create(builder, loc, result, builder.getStringAttr(name), operands)
                    : mlir::LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr(name), operands);
    return result ? call.getResult(0) : mlir::Value();
  }
  mlir::Value constant(int64_t value) {
    return mlir::LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), value);
  }

  /// Inline PTX with results of these types. The operation returns a struct if there are several.
  llvm::SmallVector<mlir::Value> assembly(const std::string &text, const std::string &constraints,
                                          mlir::TypeRange results, mlir::ValueRange operands, bool hasEffects) {
    const mlir::Type type =
        results.empty() ? mlir::Type(mlir::LLVM::LLVMVoidType::get(builder.getContext()))
        : results.size() == 1
            ? results[0]
            : mlir::LLVM::LLVMStructType::getLiteral(builder.getContext(), llvm::SmallVector<mlir::Type>(results));
    auto op = mlir::LLVM::InlineAsmOp::create(builder, loc, results.empty() ? mlir::TypeRange() : mlir::TypeRange(type),
                                              operands, text, constraints, hasEffects, /*is_align_stack=*/false,
                                              mlir::LLVM::TailCallKind::None, mlir::LLVM::AsmDialectAttr(),
                                              mlir::ArrayAttr());
    if (results.size() < 2)
      return op->getResults();
    llvm::SmallVector<mlir::Value> parts;
    for (size_t i = 0; i < results.size(); ++i)
      parts.push_back(mlir::LLVM::ExtractValueOp::create(builder, loc, op.getResult(0), static_cast<int64_t>(i)));
    return parts;
  }

  llvm::SmallVector<mlir::Value> elements(mlir::Value vector) {
    llvm::SmallVector<mlir::Value> result;
    for (int64_t i = 0; i < llvm::cast<mlir::VectorType>(vector.getType()).getNumElements(); ++i)
      result.push_back(mlir::LLVM::ExtractElementOp::create(builder, loc, vector, constant(i)));
    return result;
  }
  mlir::Value vectorOf(llvm::ArrayRef<mlir::Value> elements, mlir::Type type) {
    mlir::Value vector = mlir::LLVM::PoisonOp::create(
        builder, loc, mlir::VectorType::get({static_cast<int64_t>(elements.size())}, type));
    for (const auto [i, element] : llvm::enumerate(elements))
      vector = mlir::LLVM::InsertElementOp::create(builder, loc, vector, element, constant(static_cast<int64_t>(i)));
    return vector;
  }

  mlir::OpBuilder builder;

protected:
  const mlir::Location loc;
};

/// Emits tensor-core products (PtxProducts.cpp).
class ProductPtxBuilder : public PtxBuilder {
public:
  using PtxBuilder::PtxBuilder;

  mlir::Value mma(simt::MmaOp op);
  /// Passes `acc` through an instruction that does not use them, so that no computation with them is moved
  /// across it.
  mlir::Value pass(const std::string &text, mlir::Value acc);
  mlir::Value wgmma(simt::WgmmaOp op);
  mlir::Value wgmmaRows(simt::WgmmaRowsOp op);

private:
  mlir::Value toTf32(mlir::Value number, bool isRest);
  mlir::Value toBf16(mlir::Value pair, bool isRest);
};

} // namespace kiln::lowering::gpu
