// Emulates AMX's instructions, so that code for tiles can be tested on CPUs without AMX. A tile becomes a vector of two
// dimensions. A product of tiles stores its operands in memory, where loops access their elements.
//
//     %c = amx.tile_mulf %a, %b, %sums : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
//     // becomes, with the rows of %a, %b and %sums in memory,
//     scf.for %m = 0 to 16 {
//       scf.for %step = 0 to 16 iter_args(%row = sums[%m, …]) {
//         %row + a[%m, 2 %step] · (the even elements of b[%step, …]), + a[%m, 2 %step + 1] · (its odd ones)
//
// Unlike AMX, the emulation does not flush denormals.

#include "lowering/cpu/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_EMULATEAMX
#include "lowering/cpu/Passes.h.inc"

/// The vector type of a tile.
static VectorType vectorOf(Type tile) {
  auto type = cast<amx::TileType>(tile);
  return VectorType::get(type.getShape(), type.getElementType());
}

/// The indices of a row of a tile in memory: `indices` with `row` added to the last but one.
static SmallVector<Value> rowAt(OpBuilder &b, Location loc, ValueRange indices, int64_t row) {
  SmallVector<Value> at(indices);
  Value number = arith::ConstantIndexOp::create(b, loc, row);
  at[at.size() - 2] = arith::AddIOp::create(b, loc, at[at.size() - 2], number);
  return at;
}

/// Loads a tile from memory at `indices`. Each row is a vector of the tile's elements, for any element type in memory.
static Value loadRows(OpBuilder &b, Location loc, VectorType tile, Value memory, ValueRange indices) {
  Type stored = cast<MemRefType>(memory.getType()).getElementType();
  const int64_t bits = tile.getShape()[1] * tile.getElementTypeBitWidth();
  auto inMemory = VectorType::get({bits / static_cast<int64_t>(stored.getIntOrFloatBitWidth())}, stored);
  auto row = VectorType::get({tile.getShape()[1]}, tile.getElementType());
  Value rows = arith::ConstantOp::create(b, loc, b.getZeroAttr(tile));
  for (int64_t i = 0; i < tile.getShape()[0]; ++i) {
    Value loaded = vector::LoadOp::create(b, loc, inMemory, memory, rowAt(b, loc, indices, i));
    if (inMemory != row)
      loaded = vector::BitCastOp::create(b, loc, row, loaded);
    rows = vector::InsertOp::create(b, loc, loaded, rows, i);
  }
  return rows;
}

static void storeRows(OpBuilder &b, Location loc, Value rows, Value memory, ValueRange indices) {
  for (int64_t i = 0; i < cast<VectorType>(rows.getType()).getShape()[0]; ++i) {
    Value row = vector::ExtractOp::create(b, loc, rows, i);
    vector::StoreOp::create(b, loc, row, memory, rowAt(b, loc, indices, i));
  }
}

namespace {

struct EmulateZero : OpConversionPattern<amx::TileZeroOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(amx::TileZeroOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, rewriter.getZeroAttr(vectorOf(op.getType())));
    return success();
  }
};

struct EmulateLoad : OpConversionPattern<amx::TileLoadOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(amx::TileLoadOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(
        op, loadRows(rewriter, op.getLoc(), vectorOf(op.getType()), operands.getBase(), operands.getIndices()));
    return success();
  }
};

struct EmulateStore : OpConversionPattern<amx::TileStoreOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(amx::TileStoreOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    storeRows(rewriter, op.getLoc(), operands.getVal(), operands.getBase(), operands.getIndices());
    rewriter.eraseOp(op);
    return success();
  }
};

/// acc + lhs · rhs, with words of `group` adjacent elements along k: row s of rhs has the words of step s for all
/// columns.
template <class OpTy> struct EmulateProduct : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult matchAndRewrite(OpTy op, typename OpTy::Adaptor operands, ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    auto sums = vectorOf(op.getType()), factors = vectorOf(op.getLhs().getType());
    auto row = VectorType::get({sums.getShape()[1]}, sums.getElementType());
    const int64_t steps = vectorOf(op.getRhs().getType()).getShape()[0], group = factors.getShape()[1] / steps;
    Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
    auto inMemory = [&](Value rows) {
      auto type = cast<VectorType>(rows.getType());
      Value memory = memref::AllocaOp::create(b, loc, MemRefType::get(type.getShape(), type.getElementType()),
                                              b.getI64IntegerAttr(64));
      storeRows(b, loc, rows, memory, {zero, zero});
      return memory;
    };
    Value lhs = inMemory(operands.getLhs()), rhs = inMemory(operands.getRhs()), acc = inMemory(operands.getAcc());
    auto count = [&](int64_t n) { return arith::ConstantIndexOp::create(b, loc, n); };

    auto perRow = scf::ForOp::create(b, loc, zero, count(sums.getShape()[0]), one);
    b.setInsertionPointToStart(perRow.getBody());
    SmallVector<Value> at = {perRow.getInductionVar(), zero};
    Value begin = vector::LoadOp::create(b, loc, row, acc, at);
    auto perStep = scf::ForOp::create(b, loc, zero, count(steps), one, ValueRange{begin});
    b.setInsertionPointToStart(perStep.getBody());
    Value sum = perStep.getRegionIterArg(0), step = perStep.getInductionVar();
    auto words = VectorType::get({factors.getShape()[1]}, factors.getElementType());
    Value column = arith::MulIOp::create(b, loc, step, count(group));
    Value all = vector::LoadOp::create(b, loc, words, rhs, ValueRange{step, zero});
    for (int64_t i = 0; i < group; ++i) {
      Value k = arith::AddIOp::create(b, loc, column, count(i));
      Value x = memref::LoadOp::create(b, loc, lhs, ValueRange{at[0], k});
      auto every =
          llvm::map_to_vector(llvm::seq<int64_t>(0, row.getShape()[0]), [&](int64_t n) { return n * group + i; });
      Value y = vector::ShuffleOp::create(b, loc, all, all, every);
      sum = multiplyAdd(b, loc, row, x, y, sum);
    }
    scf::YieldOp::create(b, loc, sum);
    b.setInsertionPointAfter(perStep);
    vector::StoreOp::create(b, loc, perStep.getResult(0), acc, at);
    b.setInsertionPointAfter(perRow);
    b.replaceOp(op, loadRows(b, loc, sums, acc, {zero, zero}));
    return success();
  }

  static Value multiplyAdd(OpBuilder &b, Location loc, VectorType row, Value x, Value y, Value sum) {
    if (isa<FloatType>(row.getElementType())) {
      x = arith::ExtFOp::create(b, loc, row.getElementType(), x);
      y = arith::ExtFOp::create(b, loc, row, y);
      return math::FmaOp::create(b, loc, vector::BroadcastOp::create(b, loc, row, x), y, sum);
    }
    x = arith::ExtSIOp::create(b, loc, row.getElementType(), x);
    y = arith::ExtSIOp::create(b, loc, row, y);
    Value product = arith::MulIOp::create(b, loc, vector::BroadcastOp::create(b, loc, row, x), y);
    return arith::AddIOp::create(b, loc, sum, product);
  }
};

struct EmulateAmx : impl::EmulateAmxBase<EmulateAmx> {
  using EmulateAmxBase::EmulateAmxBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    TypeConverter types;
    types.addConversion([](Type type) { return type; });
    types.addConversion([](amx::TileType type) -> Type { return vectorOf(type); });
    ConversionTarget target(*context);
    target.addIllegalDialect<amx::AMXDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    RewritePatternSet patterns(context);
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns, target);
    patterns
        .add<EmulateZero, EmulateLoad, EmulateStore, EmulateProduct<amx::TileMulFOp>, EmulateProduct<amx::TileMulIOp>>(
            types, context);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln::lowering::cpu
