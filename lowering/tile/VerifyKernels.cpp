// Rejects functions that are not kernels, and kernels too large to compile; the first pass of every pipeline.
//
// A module may come from an edited file, and a kernel from a host loop of a million iterations. Errors are reported
// here, at their lines, so that later passes can rely on the form. A kernel is a function of views and scalars with
// structured control flow, whose values are tiles and scalars. For a CPU, parts of it may already be lowered. The
// module is not changed.
//
//     func.func @f(%n: index) attributes {tile.kernel} { … math.isnan … }
//     // error: expected an operation of the tile language, but got 'math.isnan'

#include "lowering/Abi.h"
#include "lowering/Diagnostics.h"
#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_VERIFYKERNELS
#include "lowering/Passes.h.inc"

static bool isElement(Type type) { return tile::typeNumber(type).has_value(); }

/// Whether a kernel argument may have this type: strided memory of rank 1 to 5 without an offset.
static bool isView(Type type) {
  const auto view = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  return view && view.getRank() >= 1 && view.getRank() <= 5 && !view.getMemorySpace() &&
         isElement(view.getElementType()) && !view.getElementType().isInteger(1) &&
         succeeded(view.getStridesAndOffset(strides, offset)) && offset == 0 &&
         llvm::all_of(strides, [](int64_t stride) { return stride >= 0 || ShapedType::isDynamic(stride); });
}

static bool isTile(Type type) {
  const auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.hasStaticShape() && tile.getRank() >= 1 && tile.getRank() <= 5 && !tile.getEncoding() &&
         isElement(tile.getElementType()) && !llvm::is_contained(tile.getShape(), 0);
}

/// The number of a tile's elements, saturated at 64 bits.
static int64_t countOf(RankedTensorType tile) {
  int64_t count = 1;
  for (const int64_t extent : tile.getShape())
    if (llvm::MulOverflow(count, extent, count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

/// Arithmetic, and the elementwise functions of the language.
static bool isArithmetic(Operation *op) {
  return isa<arith::ArithDialect>(op->getDialect()) ||
#define KILN_FUNCTION(name, operation, ...) isa<math::operation>(op) ||
#define KILN_FUNCTION_OF_TWO KILN_FUNCTION
#include "dialect/tile/Functions.def"
         isa<math::AbsFOp, math::AbsIOp, math::FmaOp, math::FloorOp, math::CeilOp, math::SqrtOp, math::RoundEvenOp,
             math::TruncOp, math::CopySignOp, math::CtPopOp, math::CountLeadingZerosOp>(op);
}

/// Operations of parts that are already lowered.
static bool isLowered(Operation *op) {
  return isa<memref::MemRefDialect, vector::VectorDialect, LLVM::LLVMDialect>(op->getDialect());
}

/// Parts that are already lowered may allocate memory in the form that `cpu-allocate-scratch` handles.
static LogicalResult verifyMemory(Operation *op) {
  if (isa<memref::AllocOp>(op))
    return emitUserError(op) << "expected 'memref.alloca' for scratch memory, but got 'memref.alloc'";
  auto buffer = dyn_cast<memref::AllocaOp>(op);
  if (buffer && buffer.getAlignment().value_or(1) > static_cast<uint64_t>(abi::scratchAlignment))
    return emitUserError(op) << "expected an alignment of at most " << abi::scratchAlignment << " bytes, but got "
                             << *buffer.getAlignment();
  if (buffer && !buffer.getType().hasStaticShape())
    return emitUserError(op) << "expected scratch memory of a size known while compiling, but got " << buffer.getType();
  return success();
}

static bool isKnown(Operation *op) {
  return op->getDialect() &&
         (isa<tile::TileDialect>(op->getDialect()) || isArithmetic(op) ||
          isa<scf::ForOp, scf::WhileOp, scf::ConditionOp, scf::IfOp, scf::YieldOp, func::ReturnOp>(op));
}

/// A constant tile has a list of elements or is a splat.
static LogicalResult verifyConstant(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (!constant || !isa<ShapedType>(constant.getType()) || isa<DenseElementsAttr>(constant.getValue()))
    return success();
  return emitUserError(op) << "expected a constant tile as 'dense<…>', but got " << constant.getValue();
}

/// Other operations that a module may have: texts and tables.
static bool isData(Operation *op) {
  return isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()) || isa<memref::GlobalOp>(op);
}

namespace {
struct VerifyKernels : impl::VerifyKernelsBase<VerifyKernels> {
  using VerifyKernelsBase::VerifyKernelsBase;

  void runOnOperation() override {
    bool hasKernel = false;
    for (Operation &op : *getOperation().getBody()) {
      auto func = dyn_cast<func::FuncOp>(op);
      if (func && func->hasAttr("tile.kernel")) {
        hasKernel = true;
        if (failed(verifyInterface(func)) || failed(verifyBody(func)))
          return signalPassFailure();
      } else if (!lowered || !isData(&op)) {
        emitUserError(&op) << "a module must contain only kernels, functions with the attribute 'tile.kernel'";
        return signalPassFailure();
      }
    }
    if (!hasKernel) {
      emitUserError(getOperation()) << "expected a module with a kernel: a function with the attribute 'tile.kernel'";
      signalPassFailure();
    }
  }

  static LogicalResult verifyInterface(func::FuncOp func) {
    if (func.isExternal())
      return emitUserError(func) << "expected a kernel to have a body";
    if (func.getNumResults() != 0)
      return emitUserError(func) << "expected a kernel to return nothing, but got " << func.getNumResults()
                                 << " results";
    for (const Type type : func.getArgumentTypes())
      if (!isElement(type) && !isView(type))
        return emitUserError(func) << "expected a kernel's arguments to be scalars and strided views of rank 1 to 5 "
                                      "and offset 0, but got "
                                   << type;
    return success();
  }

  LogicalResult verifyBody(func::FuncOp func) const {
    int64_t count = 0;
    const WalkResult walk = func.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
      if (!isKnown(op) && !(lowered && isLowered(op)))
        return emitUserError(op) << "expected an operation of the tile language, but got '" << op->getName() << "'";
      if (isArithmetic(op) && op->getNumResults() > 1 && isa<RankedTensorType>(op->getResult(0).getType()))
        return emitUserError(op) << "expected an operation on tiles to have one result, but got '" << op->getName()
                                 << "'";
      if (++count > operations)
        return emitUserError(op) << "kernel '" << func.getName() << "' has more than " << operations.getValue().value
                                 << " operations: use range() in place of host loops, which unroll";
      if (failed(verifyConstant(op)) || failed(verifyMemory(op)) || failed(verifyDepth(op)))
        return failure();
      for (Region &region : op->getRegions())
        if (failed(verifyRegion(op, region)))
          return failure();
      for (const Type type : op->getResultTypes())
        if (failed(verifyValue(op, type)))
          return failure();
      return success();
    });
    return failure(walk.wasInterrupted() || failed(verifyRegion(func, func.getBody())));
  }

  LogicalResult verifyDepth(Operation *op) const {
    if (op->getNumRegions() == 0)
      return success();
    int64_t depth = 1;
    for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent); parent = parent->getParentOp())
      ++depth;
    if (depth > nesting)
      return emitUserError(op) << "expected loops and branches at most " << nesting.getValue().value
                               << " deep; merge loops into one and compute their positions from its own";
    return success();
  }

  LogicalResult verifyRegion(Operation *op, Region &region) const {
    if (region.empty()) // no `else`
      return success();
    if (!region.hasOneBlock())
      return emitUserError(op) << "expected structured control flow, but got a region of several blocks";
    if (!isa<func::FuncOp>(op))
      for (const Type type : region.getArgumentTypes())
        if (failed(verifyValue(op, type)))
          return failure();
    return success();
  }

  LogicalResult verifyValue(Operation *op, Type type) const {
    if (auto vector = dyn_cast<VectorType>(type); vector && vector.getNumElements() > lanes)
      return emitUserError(op) << "expected vectors of at most " << lanes.getValue().value << " elements, but got "
                               << type << ": use tiles, or loop over parts of it";
    if (isElement(type) || type.isIndex() || isLowered(op) || (isArithmetic(op) && isa<VectorType>(type)))
      return success();
    if (!isTile(type))
      return emitUserError(op) << "expected values to be scalars and tiles of rank 1 to 5, but got " << type;
    if (countOf(cast<RankedTensorType>(type)) > elements)
      return emitUserError(op) << "expected tiles of at most " << elements.getValue().value << " elements, but got "
                               << tile::shapeText(type) << ": choose a smaller tile, or loop over parts of it";
    return success();
  }
};
} // namespace

} // namespace kiln::lowering
