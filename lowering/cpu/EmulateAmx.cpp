// Emulates AMX's instructions, so that code for tiles can be tested on CPUs without AMX. A tile becomes a vector of two
// dimensions. A product of tiles stores its operands in memory and calls a function. Kernels have up to
// hundreds of products, and LLVM's time for as many loops grows faster than their number.
//
//     %c = amx.tile_mulf %a, %b, %sums : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
//     // becomes, with the rows of %sums, %a and %b in a buffer,
//     func.call @amx_16x32xbf16_16x16xf32(%buffer)
//     // with the function
//     scf.for %m = 0 to 16 {
//       scf.for %step = 0 to 16 iter_args(%row = sums[%m, …]) {
//         %row + a[%m, 2 %step] · (the even elements of b[%step, …]), + a[%m, 2 %step + 1] · (its odd ones)
//
// Unlike AMX, the emulation does not flush denormals.

#include "lowering/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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

/// The types of a product: sums + factors · words, where row s of `words` has the factors of step s for all columns.
struct Product {
  VectorType sums, factors, words;

  template <class OpTy> static Product of(OpTy op) {
    return {vectorOf(op.getType()), vectorOf(op.getLhs().getType()), vectorOf(op.getRhs().getType())};
  }

  /// Tiles in `buffer`, a memref of bytes: sums, factors, words.
  static int64_t bytesOf(VectorType tile) {
    return llvm::alignTo(tile.getNumElements() * tile.getElementTypeBitWidth() / 8, 64);
  }
  MemRefType buffer() const {
    return MemRefType::get({bytesOf(sums) + bytesOf(factors) + bytesOf(words)}, IntegerType::get(sums.getContext(), 8));
  }
  SmallVector<Value, 3> tilesIn(OpBuilder &b, Location loc, Value buffer) const {
    SmallVector<Value, 3> tiles;
    int64_t offset = 0;
    for (const VectorType tile : {sums, factors, words}) {
      Value begin = arith::ConstantIndexOp::create(b, loc, offset);
      tiles.push_back(memref::ViewOp::create(b, loc, MemRefType::get(tile.getShape(), tile.getElementType()), buffer,
                                             begin, ValueRange()));
      offset += bytesOf(tile);
    }
    return tiles;
  }
};

template <class OpTy> struct EmulateProduct : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult matchAndRewrite(OpTy op, typename OpTy::Adaptor operands, ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    const auto product = Product::of(op);
    func::FuncOp function = functionOf(b, op->template getParentOfType<ModuleOp>(), product);
    Value buffer = memref::AllocaOp::create(b, loc, product.buffer(), b.getI64IntegerAttr(64));
    const auto tiles = product.tilesIn(b, loc, buffer);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    storeRows(b, loc, operands.getAcc(), tiles[0], {zero, zero});
    storeRows(b, loc, operands.getLhs(), tiles[1], {zero, zero});
    storeRows(b, loc, operands.getRhs(), tiles[2], {zero, zero});
    func::CallOp::create(b, loc, function, buffer);
    b.replaceOp(op, loadRows(b, loc, product.sums, tiles[0], {zero, zero}));
    return success();
  }

  /// The function of products of these types, which adds to the sums in its buffer. Created for the first one.
  static func::FuncOp functionOf(OpBuilder &b, ModuleOp module, const Product &product) {
    std::string name;
    llvm::raw_string_ostream text(name);
    text << "amx";
    for (const VectorType tile : {product.factors, product.sums}) {
      text << "_";
      llvm::interleave(tile.getShape(), text, "x");
      text << "x" << tile.getElementType();
    }
    if (auto function = module.lookupSymbol<func::FuncOp>(name))
      return function;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    auto function = func::FuncOp::create(b, module.getLoc(), name, b.getFunctionType(product.buffer(), {}));
    function.setPrivate();
    function->setAttr("llvm.linkage", LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
    b.setInsertionPointToStart(function.addEntryBlock());
    multiply(b, module.getLoc(), product, product.tilesIn(b, module.getLoc(), function.getArgument(0)));
    func::ReturnOp::create(b, module.getLoc());
    return function;
  }

  static void multiply(OpBuilder &b, Location loc, const Product &product, ArrayRef<Value> tiles) {
    const auto [sums, factors, words] = product;
    const auto row = VectorType::get({sums.getShape()[1]}, sums.getElementType());
    const auto word = VectorType::get({factors.getShape()[1]}, factors.getElementType());
    const int64_t steps = words.getShape()[0], group = factors.getShape()[1] / steps;
    auto count = [&](int64_t n) { return arith::ConstantIndexOp::create(b, loc, n); };
    Value zero = count(0), one = count(1);

    auto perRow = scf::ForOp::create(b, loc, zero, count(sums.getShape()[0]), one);
    b.setInsertionPointToStart(perRow.getBody());
    SmallVector<Value> at = {perRow.getInductionVar(), zero};
    Value begin = vector::LoadOp::create(b, loc, row, tiles[0], at);
    auto perStep = scf::ForOp::create(b, loc, zero, count(steps), one, ValueRange{begin});
    b.setInsertionPointToStart(perStep.getBody());
    Value sum = perStep.getRegionIterArg(0), step = perStep.getInductionVar();
    Value column = arith::MulIOp::create(b, loc, step, count(group));
    Value all = vector::LoadOp::create(b, loc, word, tiles[2], ValueRange{step, zero});
    for (int64_t i = 0; i < group; ++i) {
      Value k = arith::AddIOp::create(b, loc, column, count(i));
      Value x = memref::LoadOp::create(b, loc, tiles[1], ValueRange{at[0], k});
      auto every =
          llvm::map_to_vector(llvm::seq<int64_t>(0, row.getShape()[0]), [&](int64_t n) { return n * group + i; });
      Value y = vector::ShuffleOp::create(b, loc, all, all, every);
      sum = multiplyAdd(b, loc, row, x, y, sum);
    }
    scf::YieldOp::create(b, loc, sum);
    b.setInsertionPointAfter(perStep);
    vector::StoreOp::create(b, loc, perStep.getResult(0), tiles[0], at);
    b.setInsertionPointAfter(perRow);
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
