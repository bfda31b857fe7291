// Verifiers, effects and folds of the memory operations.

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace kiln::tile {

TypedAttr paddingOf(Padding padding, Type element) {
  Builder builder(element.getContext());
  auto type = dyn_cast<FloatType>(element);
  if (!type)
    return builder.getIntegerAttr(element, 0);
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  const bool isNegative = padding == Padding::NegZero || padding == Padding::NegInf;
  if (padding == Padding::NaN)
    return builder.getFloatAttr(type, APFloat::getNaN(semantics));
  const bool isZero = padding == Padding::Zero || padding == Padding::NegZero;
  return builder.getFloatAttr(type, isZero ? APFloat::getZero(semantics, isNegative)
                                           : APFloat::getInf(semantics, isNegative));
}

/// The element type that a view stores for tiles of `element`: bool is stored as i8.
static bool storesElement(Type stored, Type element) {
  return stored == element || (element.isInteger(1) && stored.isInteger(8));
}

/// Verifies that the index tiles have one shape, with which the shape of `tile` begins.
static LogicalResult verifyIndices(AccessOp access, RankedTensorType tile) {
  Type index;
  int64_t blocks = 0;
  for (auto [axis, subscript] : llvm::enumerate(access.getSubscripts())) {
    if (!access.isIndexed(static_cast<int64_t>(axis))) {
      ++blocks;
      continue;
    }
    if (index && shapeOf(index) != shapeOf(subscript.getType()))
      return access->emitOpError("expected index tiles of one shape, but got ")
             << shapeText(index) << " and " << shapeText(subscript.getType());
    index = subscript.getType();
  }
  const int64_t rank = access.getIndexRank() + blocks;
  if (tile.getRank() != rank)
    return index ? access->emitOpError("expected a tile of rank ")
                       << rank << ", that of the index tiles and one for each other subscript, but got "
                       << tile.getRank()
                 : access->emitOpError("expected a tile of the view's rank ") << rank << ", but got " << tile.getRank();
  if (index && tile.getShape().take_front(access.getIndexRank()) != shapeOf(index))
    return access->emitOpError("expected a tile that begins with the index tiles' shape ")
           << shapeText(index) << ", but got shape " << shapeText(tile);
  return success();
}

/// Verifies that tile and view have one element type, and that there is one subscript for each dimension.
LogicalResult verifyAccess(AccessOp access) {
  const RankedTensorType tile = access.getTile().getType();
  const MemRefType view = access.getView().getType();
  const bool isPadded = isa<FloatType>(tile.getElementType()) && !isByteFloat(tile.getElementType());
  if (access.getPadding() != Padding::Zero && !isPadded)
    return access->emitOpError("expected padding 'zero' on a tile of integers or floats of 8 bits, but got '")
           << stringifyPadding(access.getPadding()) << "'";
  if (!storesElement(view.getElementType(), tile.getElementType()))
    return access->emitOpError("expected a tile of the view's element type ")
           << view.getElementType() << ", but got " << tile.getElementType();
  const int64_t subscripts = access.getSubscripts().size();
  if (subscripts != view.getRank())
    return access->emitOpError("expected ")
           << view.getRank() << " subscripts for a view of rank " << view.getRank() << ", but got " << subscripts;
  return verifyIndices(access, tile);
}

ParseResult parseSubscriptTypes(OpAsmParser &parser, ArrayRef<OpAsmParser::UnresolvedOperand> subscripts,
                                SmallVectorImpl<Type> &types) {
  while (types.size() < subscripts.size() && succeeded(parser.parseOptionalComma()))
    if (parser.parseType(types.emplace_back()))
      return failure();
  types.resize(subscripts.size(), parser.getBuilder().getI64Type());
  return success();
}

void printSubscriptTypes(OpAsmPrinter &printer, Operation *, OperandRange, TypeRange types) {
  while (!types.empty() && !isa<RankedTensorType>(types.back()))
    types = types.drop_back();
  for (Type type : types)
    printer << ", " << type;
}

LogicalResult DimOp::verify() { return verifyAxis(*this, getAxis(), getView().getType().getRank()); }

/// The first of the extents that the launch has found equal to this one (`tile.equal_extents`), or a static one.
static std::pair<BlockArgument, int64_t> representative(BlockArgument view, int64_t axis) {
  const std::pair<BlockArgument, int64_t> self(view, axis);
  auto function = dyn_cast_or_null<FunctionOpInterface>(view.getOwner()->getParentOp());
  const auto groups = function ? function->getAttrOfType<ArrayAttr>("tile.equal_extents") : ArrayAttr();
  if (!groups || view.getOwner()->getArgumentTypes() != TypeRange(function.getArgumentTypes())) // not an entry block
    return self;
  for (const auto group : groups.getAsRange<DenseI64ArrayAttr>()) {
    SmallVector<std::pair<BlockArgument, int64_t>> extents;
    for (size_t i = 0; i < static_cast<size_t>(group.size()); i += 2)
      extents.emplace_back(view.getOwner()->getArgument(group[i]), group[i + 1]);
    if (!llvm::is_contained(extents, self))
      continue;
    const auto *known = llvm::find_if(extents, [](const auto &extent) {
      return !cast<MemRefType>(extent.first.getType()).isDynamicDim(extent.second);
    });
    return known == extents.end() ? extents.front() : *known;
  }
  return self;
}

OpFoldResult DimOp::fold(FoldAdaptor) {
  const auto argument = dyn_cast<BlockArgument>(getView());
  const auto [view, axis] = argument ? representative(argument, getAxis()) : std::pair(argument, int64_t(getAxis()));
  const int64_t extent = shapeOf(argument ? view.getType() : getView().getType())[axis];
  if (!ShapedType::isDynamic(extent))
    return IntegerAttr::get(getType(), extent);
  if (!argument || std::pair(view, axis) == std::pair(argument, int64_t(getAxis())))
    return {};
  getViewMutable().assign(view);
  setAxis(axis);
  return getResult();
}

Value createDim(OpBuilder &builder, Location loc, Value view, int64_t axis) {
  return builder.createOrFold<DimOp>(loc, builder.getI64Type(), view, axis);
}

LogicalResult LoadOp::verify() { return verifyAccess(*this); }
LogicalResult StoreOp::verify() { return verifyAccess(*this); }
LogicalResult GatherOp::verify() { return verifyAccess(*this); }
LogicalResult ScatterOp::verify() { return verifyAccess(*this); }

/// The constant value of a mask, if it is known.
static std::optional<bool> sameEverywhere(Value mask) {
  APInt all;
  if (!mask || !matchPattern(mask, m_ConstantInt(&all)))
    return mask ? std::nullopt : std::optional(true);
  return all.isOne();
}

static bool isBlock(AccessOp access) { return access.getIndexRank() == 0; }

void copyCache(Operation *from, Operation *to) {
  if (const Attribute hint = from->getAttr(cacheName))
    to->setAttr(cacheName, hint);
}
void copyScope(Operation *from, Operation *to) {
  if (const Attribute scope = from->getAttr(scopeName))
    to->setAttr(scopeName, scope);
}

/// Replaces `op` by another access with its hints.
template <class OpTy, class... Args> static void replace(PatternRewriter &rewriter, Operation *op, Args &&...args) {
  auto made = OpTy::create(rewriter, op->getLoc(), std::forward<Args>(args)...);
  copyCache(op, made);
  rewriter.replaceOp(op, made->getResults());
}

/// The elements of `tile`, which may be null, in a shape that differs by extents of 1.
static Value inShape(OpBuilder &builder, Value tile, ArrayRef<int64_t> shape) {
  if (!tile || shapeOf(tile.getType()) == shape)
    return tile;
  return ReshapeOp::create(builder, tile.getLoc(), cast<RankedTensorType>(tile.getType()).clone(shape), tile);
}

LogicalResult GatherOp::canonicalize(GatherOp op, PatternRewriter &rewriter) {
  const std::optional<bool> mask = sameEverywhere(op.getMask());
  if (mask == false) {
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, DenseElementsAttr::get(op.getType(), paddingOf(op.getPadding(), op.getType().getElementType())));
    return success();
  }
  if (mask && isBlock(op)) {
    replace<LoadOp>(rewriter, op, op.getType(), op.getView(), op.getSubscripts(), op.getPadding());
    return success();
  }
  if (mask && op.getMask()) {
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
    return success();
  }
  const auto block = withBlockForRun(op, rewriter);
  if (failed(block))
    return rewriter.notifyMatchFailure(op, "no subscript gives positions that follow each other");
  const Value shaped = inShape(rewriter, op.getMask(), block->shape);
  auto made = GatherOp::create(rewriter, op.getLoc(), op.getType().clone(block->shape), op.getView(), block->subscripts,
                               shaped, op.getPadding());
  copyCache(op, made);
  rewriter.replaceOp(op, inShape(rewriter, made, op.getType().getShape()));
  return success();
}

LogicalResult ScatterOp::canonicalize(ScatterOp op, PatternRewriter &rewriter) {
  const std::optional<bool> mask = sameEverywhere(op.getMask());
  if (mask == false) {
    rewriter.eraseOp(op);
    return success();
  }
  if (mask && isBlock(op)) {
    replace<StoreOp>(rewriter, op, op.getValue(), op.getView(), op.getSubscripts());
    return success();
  }
  if (mask && op.getMask()) {
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
    return success();
  }
  const auto block = withBlockForRun(op, rewriter);
  if (failed(block))
    return rewriter.notifyMatchFailure(op, "no subscript gives positions that follow each other");
  const Value value = inShape(rewriter, op.getValue(), block->shape);
  const Value shaped = inShape(rewriter, op.getMask(), block->shape);
  replace<ScatterOp>(rewriter, op, value, op.getView(), block->subscripts, shaped);
  return success();
}

// --- Atomics ---------------------------------------------------------------------------------------------------------

static LogicalResult verifyAtomic(AccessOp access, AtomicUse use) {
  Type element = access.getTile().getType().getElementType();
  if (!isAtomic(use, element))
    return access->emitOpError("expected elements of type ") << atomicElements(use) << ", but got " << element;
  return verifyAccess(access);
}

LogicalResult AtomicRmwOp::verify() { return verifyAtomic(*this, static_cast<AtomicUse>(getKind())); }
LogicalResult AtomicCasOp::verify() { return verifyAtomic(*this, AtomicUse::compare); }

LogicalResult AtomicLoadOp::verify() {
  if (getOrder() != MemoryOrder::Relaxed && getOrder() != MemoryOrder::Acquire)
    return emitOpError("expected order 'relaxed' or 'acquire', but got '") << stringifyMemoryOrder(getOrder()) << "'";
  return verifyAccess(*this);
}

LogicalResult AtomicStoreOp::verify() {
  if (getOrder() != MemoryOrder::Relaxed && getOrder() != MemoryOrder::Release)
    return emitOpError("expected order 'relaxed' or 'release', but got '") << stringifyMemoryOrder(getOrder()) << "'";
  return verifyAccess(*this);
}

void addAtomicEffects(AccessOp access, OpOperand &view,
                      SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &view);
  effects.emplace_back(MemoryEffects::Write::get(), &view);
  if (!access.ordersAll())
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

} // namespace kiln::tile
