// Atomics become `memref.atomic_rmw` if it has the kind; LLVM emits an instruction or a loop for it. Others become LLVM
// operations on a pointer and on elements as integers, because only integers can be compared and exchanged.

#include "lowering/tile/Atomics.h"

#include "lowering/tile/Emit.h"

#include "dialect/tile/TypeRules.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering {

namespace {
struct Code : Emit {
  Code(OpBuilder &builder, Location loc) : Emit(builder, loc), builder(builder), loc(loc) {}
  OpBuilder &builder;
  const Location loc;
};
} // namespace

SmallVector<Value, 2> valuesOfAtomic(tile::AccessOp atomic) {
  using Values = SmallVector<Value, 2>;
  return llvm::TypeSwitch<Operation *, Values>(atomic)
      .Case([](tile::AtomicRmwOp op) { return Values{op.getValue()}; })
      .Case([](tile::AtomicStoreOp op) { return Values{op.getValue()}; })
      .Case([](tile::AtomicCasOp op) { return Values{op.getExpected(), op.getDesired()}; })
      .Default(Values());
}

/// The address of an element of strided memory.
static Value pointerTo(Code &emit, Value memory, ValueRange indices) {
  const auto type = cast<MemRefType>(memory.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(emit.builder, emit.loc, memory);
  Value place = emit.make<memref::ExtractAlignedPointerAsIndexOp>(memory);
  const int64_t bytes = type.getElementTypeBitWidth() / 8;
  for (auto [index, stride] : llvm::zip_equal(indices, metadata.getStrides())) {
    Value elements = emit.make<arith::MulIOp>(index, stride);
    place =
        emit.make<arith::AddIOp>(place, emit.make<arith::MulIOp>(elements, emit.make<arith::ConstantIndexOp>(bytes)));
  }
  Value address = emit.make<arith::IndexCastOp>(emit.builder.getI64Type(), place);
  return emit.make<LLVM::IntToPtrOp>(LLVM::LLVMPointerType::get(emit.builder.getContext()), address);
}

/// The integer type of elements in memory.
static IntegerType bitsOf(MemRefType memory) {
  return IntegerType::get(memory.getContext(), memory.getElementTypeBitWidth());
}

/// An element as its bits in memory, and back: a bool is a byte.
static Value toBits(Code &emit, Value value, IntegerType bits) {
  if (value.getType().isInteger(1))
    return emit.make<arith::ExtUIOp>(bits, value);
  return isa<FloatType>(value.getType()) ? emit.bits(value, bits) : value;
}
static Value fromBits(Code &emit, Value bits, Type element) {
  if (element.isInteger(1))
    return emit.compare(arith::CmpIPredicate::ne, bits, emit.integer(bits.getType(), 0));
  return isa<FloatType>(element) ? emit.bits(bits, element) : bits;
}

/// Stores `desired` atomically if memory has `expected`; returns the old value.
static Value exchangeIf(Code &emit, Value pointer, Value expected, Value desired) {
  using LLVM::AtomicOrdering;
  Value both =
      emit.make<LLVM::AtomicCmpXchgOp>(pointer, expected, desired, AtomicOrdering::acq_rel, AtomicOrdering::acquire);
  return emit.make<LLVM::ExtractValueOp>(both, ArrayRef<int64_t>{0});
}

/// Adds narrow floats by compare and exchange; each sum is rounded once from f32.
static Value addNarrow(Code &emit, Value value, Value pointer, IntegerType bits) {
  OpBuilder &b = emit.builder;
  const Type element = value.getType();
  auto load = LLVM::LoadOp::create(b, emit.loc, bits, pointer, /*alignment=*/bits.getWidth() / 8);
  load.setOrdering(LLVM::AtomicOrdering::monotonic);
  auto next = [&](Value was) {
    Value sum = emit.make<arith::AddFOp>(emit.cast(fromBits(emit, was, element), b.getF32Type()),
                                         emit.cast(value, b.getF32Type()));
    return toBits(emit, emit.cast(sum, element), bits);
  };
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::WhileOp::create(b, emit.loc, TypeRange{bits}, ValueRange{load.getResult()});
  Block *before = b.createBlock(&loop.getBefore(), {}, TypeRange{bits}, {emit.loc});
  Value was = before->getArgument(0), seen = exchangeIf(emit, pointer, was, next(was));
  scf::ConditionOp::create(b, emit.loc, emit.compare(arith::CmpIPredicate::ne, seen, was), seen);
  Block *again = b.createBlock(&loop.getAfter(), {}, TypeRange{bits}, {emit.loc});
  scf::YieldOp::create(b, emit.loc, again->getArgument(0));
  b.setInsertionPointAfter(loop);
  return fromBits(emit, loop.getResult(0), element);
}

static arith::AtomicRMWKind kindOf(tile::AtomicKind kind, bool isReal, bool isUnsigned) {
  using Kind = arith::AtomicRMWKind;
  switch (kind) {
  case tile::AtomicKind::Add:
    break;
  case tile::AtomicKind::Min:
    return isReal ? Kind::minnumf : isUnsigned ? Kind::minu : Kind::mins;
  case tile::AtomicKind::Max:
    return isReal ? Kind::maxnumf : isUnsigned ? Kind::maxu : Kind::maxs;
  case tile::AtomicKind::And:
    return Kind::andi;
  case tile::AtomicKind::Or:
    return Kind::ori;
  case tile::AtomicKind::Xor:
    return Kind::xori;
  case tile::AtomicKind::Exchange:
    return Kind::assign;
  }
  return isReal ? Kind::addf : Kind::addi;
}

static Value emitChange(Code &emit, tile::AtomicRmwOp op, Value value, ValueRange indices) {
  const bool isNarrow = tile::isNarrowFloat(value.getType());
  const auto memory = cast<MemRefType>(op.getView().getType());
  if (isNarrow && op.getKind() == tile::AtomicKind::Add)
    return addNarrow(emit, value, pointerTo(emit, op.getView(), indices), bitsOf(memory));
  if (isNarrow) { // LLVM exchanges only integers
    Value bits = toBits(emit, value, bitsOf(memory)), pointer = pointerTo(emit, op.getView(), indices);
    Value old = emit.make<LLVM::AtomicRMWOp>(LLVM::AtomicBinOp::xchg, pointer, bits, LLVM::AtomicOrdering::acq_rel);
    return fromBits(emit, old, value.getType());
  }
  const auto kind = kindOf(op.getKind(), isa<FloatType>(value.getType()), tile::isUnsigned(op));
  return emit.make<memref::AtomicRMWOp>(kind, value, op.getView(), indices);
}

Value emitAtomic(OpBuilder &builder, Location loc, tile::AccessOp atomic, ValueRange values, ValueRange indices) {
  Code emit(builder, loc);
  if (auto change = dyn_cast<tile::AtomicRmwOp>(*atomic))
    return emitChange(emit, change, values[0], indices);
  const IntegerType bits = bitsOf(atomic.getView().getType());
  const Type element = atomic.getTile().getType().getElementType();
  const int64_t bytes = bits.getWidth() / 8;
  Value pointer = pointerTo(emit, atomic.getView(), indices);
  if (isa<tile::AtomicCasOp>(*atomic)) {
    Value old = exchangeIf(emit, pointer, toBits(emit, values[0], bits), toBits(emit, values[1], bits));
    return fromBits(emit, old, element);
  }
  if (isa<tile::AtomicStoreOp>(*atomic)) {
    auto store = LLVM::StoreOp::create(builder, loc, toBits(emit, values[0], bits), pointer, bytes);
    store.setOrdering(LLVM::AtomicOrdering::release);
    return {};
  }
  auto load = LLVM::LoadOp::create(builder, loc, bits, pointer, bytes);
  load.setOrdering(LLVM::AtomicOrdering::acquire);
  return fromBits(emit, load.getResult(), element);
}

Value emitChangedBits(OpBuilder &builder, Location loc, tile::AccessOp atomic) {
  Code emit(builder, loc);
  const IntegerType bits = bitsOf(atomic.getView().getType());
  SmallVector<Value, 3> tiles(valuesOfAtomic(atomic));
  tiles.push_back(atomic->getResult(0));
  for (Value &tile : tiles)
    if (isa<FloatType>(getElementTypeOrSelf(tile)))
      tile = emit.bits(tile, bits);
  Value was = tiles.back(), is = tiles[0];
  if (isa<tile::AtomicCasOp>(*atomic))
    is = emit.select(emit.compare(arith::CmpIPredicate::eq, was, tiles[0]), tiles[1], was);
  else if (auto op = cast<tile::AtomicRmwOp>(*atomic); op.getKind() != tile::AtomicKind::Exchange)
    is = arith::getReductionOp(kindOf(op.getKind(), false, tile::isUnsigned(op)), builder, loc, was, is);
  Value changed = emit.make<arith::XOrIOp>(was, is);
  Value mask = atomic.getMaskIfAny();
  return mask ? emit.select(mask, changed, emit.integer(changed.getType(), 0)) : changed;
}

} // namespace kiln::lowering
