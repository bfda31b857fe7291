// Converts the kernel to the C function described in Abi.h.
//
// In: a `func.func` with `tile.kernel` and `cpu.scratch_bytes`; its arguments are views and scalars, then the scratch
// memory. Out: a function of the argument block, the program's number and the scratch memory, and the constant
// `<kernel>_scratch_bytes`. Views are read from the block at entry; the grid and the program's number are read at their
// uses.
//
//     func.func @k(%v: memref<?x64xf32, strided<[?, 1]>>, %n: i64, %scratch: memref<?xi8>) attributes {tile.kernel, …}
//     ─>
//     func.func @k(%args: !llvm.ptr, %program: i64, %scratch: !llvm.ptr) {
//       %data = llvm.load (slot 3); %extent = llvm.load (slot 4); %stride = llvm.load (slot 5); %n = llvm.load (slot 6)
//       %v = memref.reinterpret_cast … to offset: [0], sizes: [%extent, 64], strides: [%stride, 1]

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/Backend.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_LOWERKERNELARGUMENTS
#include "lowering/cpu/Passes.h.inc"

using namespace mlir;

namespace {

/// Rebuilds the arguments of one kernel, at the entry of its function.
class Arguments {
public:
  /// `types` are those of the kernel's arguments.
  Arguments(func::FuncOp func, TypeRange types, Value args, Value program)
      : builder(OpBuilder::atBlockBegin(&func.front())), converter(func.getContext()), loc(func.getLoc()), args(args),
        program(program), slots(slotsOf(types)) {}

  /// Argument `number`, a view or scalar of this type.
  Value argument(int number, Type type) {
    if (const auto view = dyn_cast<MemRefType>(type))
      return viewArgument(number, view);
    const int64_t slot = slotOf(abi::Slot::scalar, number);
    if (!type.isInteger(1))
      return load(slot, type);
    const Value byte = load(slot, builder.getI8Type());
    const Value zero = arith::ConstantIntOp::create(builder, loc, 0, 8);
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, byte, zero);
  }

  /// `pointer` as a memref of scratch memory.
  Value scratchMemory(Value pointer, MemRefType type, int64_t bytes) {
    return viewOf(pointer, type, {builder.getIndexAttr(bytes)}, {builder.getIndexAttr(1)});
  }

  Value numPrograms(int64_t axis) {
    if (!grid[axis])
      grid[axis] = load(axis, builder.getI64Type());
    return grid[axis];
  }

  /// Decomposes program = x + grid[0] * (y + grid[1] * z).
  Value programId(int64_t axis) {
    if (ids[axis])
      return ids[axis];
    Value id = program;
    for (int64_t below = 0; below < axis; ++below)
      id = arith::DivUIOp::create(builder, loc, id, numPrograms(below));
    if (axis < 2)
      id = arith::RemUIOp::create(builder, loc, id, numPrograms(axis));
    return ids[axis] = id;
  }

  /// The value of `tile.dim`: the slot with the view's extent, if the view is an argument.
  Value extent(tile::DimOp dim) {
    OpBuilder here(dim);
    auto view = dim.getView().getDefiningOp<memref::ReinterpretCastOp>();
    const OpFoldResult index = view ? view.getMixedSizes()[dim.getAxis()]
                                    : memref::getMixedSize(here, dim.getLoc(), dim.getView(), dim.getAxis());
    return arith::IndexCastOp::create(here, dim.getLoc(), here.getI64Type(),
                                      getValueOrCreateConstantIndexOp(here, dim.getLoc(), index));
  }

private:
  /// The value of a slot. The block does not change during a launch.
  Value load(int64_t at, Type type) {
    const Value address = LLVM::GEPOp::create(builder, loc, args.getType(), builder.getI64Type(), args,
                                              ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(at)));
    return LLVM::LoadOp::create(builder, loc, type, address, /*alignment=*/8, /*isVolatile=*/false,
                                /*isNonTemporal=*/false, /*isInvariant=*/true);
  }

  /// The number of a slot in the block.
  int64_t slotOf(abi::Slot::Kind kind, int argument, int dimension = 0) const {
    return abi::gridSlots + (llvm::find(slots, abi::Slot{kind, argument, dimension}) - slots.begin());
  }

  Value viewArgument(int number, MemRefType type) {
    const Value data = load(slotOf(abi::Slot::pointer, number), args.getType());
    const auto known = [&](abi::Slot::Kind kind, ArrayRef<int64_t> values) {
      SmallVector<OpFoldResult> result;
      for (const auto [dimension, value] : llvm::enumerate(values)) {
        if (!ShapedType::isDynamic(value)) {
          result.push_back(builder.getIndexAttr(value));
          continue;
        }
        const Value word = load(slotOf(kind, number, static_cast<int>(dimension)), builder.getI64Type());
        result.push_back(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), word).getResult());
      }
      return result;
    };
    const SmallVector<OpFoldResult> extents = known(abi::Slot::extent, type.getShape()),
                                    steps = known(abi::Slot::stride, type.getStridesAndOffset().first);
    return viewOf(data, type, extents, steps);
  }

  /// A memref of these extents and strides over a bare pointer. Upstream has no such operation, so the pointer is first
  /// converted to the descriptor of a memref without extents.
  Value viewOf(Value pointer, MemRefType type, ArrayRef<OpFoldResult> extents, ArrayRef<OpFoldResult> strides) {
    const auto element = MemRefType::get({}, type.getElementType());
    const Value descriptor = MemRefDescriptor::fromStaticShape(builder, loc, converter, element, pointer);
    const Value base = UnrealizedConversionCastOp::create(builder, loc, element, descriptor).getResult(0);
    return memref::ReinterpretCastOp::create(builder, loc, type, base, builder.getIndexAttr(0), extents, strides);
  }

  OpBuilder builder;
  LLVMTypeConverter converter;
  const Location loc;
  const Value args, program;
  const std::vector<abi::Slot> slots;
  Value grid[3], ids[3];
};

} // namespace

/// Replaces the operations that read the grid, the program's number or an extent.
static void lowerQueries(func::FuncOp func, Arguments &arguments) {
  SmallVector<Operation *> lowered; // erased at the end, because arguments are rebuilt at the first of them
  func.walk([&](Operation *op) {
    Value value;
    if (auto id = dyn_cast<tile::ProgramIdOp>(op)) {
      value = arguments.programId(id.getAxis());
    } else if (auto count = dyn_cast<tile::NumProgramsOp>(op)) {
      value = arguments.numPrograms(count.getAxis());
    } else if (auto dim = dyn_cast<tile::DimOp>(op)) {
      value = arguments.extent(dim);
    } else {
      return;
    }
    op->getResult(0).replaceAllUsesWith(value);
    lowered.push_back(op);
  });
  for (Operation *op : lowered)
    op->erase();
}

static void emitScratchBytes(func::FuncOp func, int64_t bytes) {
  OpBuilder builder(func);
  const std::string name = (func.getName() + abi::scratchSuffix).str();
  LLVM::GlobalOp::create(builder, func.getLoc(), builder.getI64Type(), /*isConstant=*/true, LLVM::Linkage::External,
                         name, builder.getI64IntegerAttr(bytes));
}

/// Attributes of the three arguments: no other pointer aliases the block or the scratch memory.
static ArrayAttr argumentFacts(Builder &builder) {
  const auto unit = [&](StringRef name) { return builder.getNamedAttr(name, builder.getUnitAttr()); };
  const NamedAttribute noalias = unit(LLVM::LLVMDialect::getNoAliasAttrName()),
                       noundef = unit(LLVM::LLVMDialect::getNoUndefAttrName());
  const auto aligned = [&](int64_t bytes) {
    return builder.getNamedAttr(LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(bytes));
  };
  return builder.getArrayAttr(
      {builder.getDictionaryAttr({noalias, noundef, unit(LLVM::LLVMDialect::getReadonlyAttrName()), aligned(8)}),
       builder.getDictionaryAttr({noundef}),
       builder.getDictionaryAttr({noalias, noundef, aligned(abi::scratchAlignment)})});
}

namespace {
struct LowerKernelArguments : impl::LowerKernelArgumentsBase<LowerKernelArguments> {
  using LowerKernelArgumentsBase::LowerKernelArgumentsBase;

  void runOnOperation() override {
    for (func::FuncOp func : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (func->hasAttr("tile.kernel") && failed(lower(func)))
        return signalPassFailure();
  }

  static LogicalResult check(func::FuncOp func) {
    if (!func->hasAttr("cpu.scratch_bytes"))
      return func.emitOpError("expected scratch memory to be placed, by cpu-allocate-scratch, before kernel arguments");
    if (func.getNumResults())
      return func.emitOpError("expected a kernel to return nothing, but got ") << func.getResultTypes();
    for (const Type type : func.getArgumentTypes()) {
      const auto view = dyn_cast<MemRefType>(type);
      SmallVector<int64_t> strides;
      int64_t offset = 0;
      if (view ? failed(view.getStridesAndOffset(strides, offset)) || offset != 0 : !type.isIntOrFloat())
        return func.emitOpError("expected a kernel's arguments to be scalars and strided views of offset 0, but got ")
               << type;
    }
    return success();
  }

  static LogicalResult lower(func::FuncOp func) {
    if (failed(check(func)))
      return failure();
    Builder builder(func.getContext());
    const int64_t bytes = func->getAttrOfType<IntegerAttr>("cpu.scratch_bytes").getInt();
    const auto pointer = LLVM::LLVMPointerType::get(func.getContext());
    Block &entry = func.front();
    const unsigned count = entry.getNumArguments();
    const auto named = [&](StringRef name) { return NameLoc::get(builder.getStringAttr(name), func.getLoc()); };
    const Value args = entry.addArgument(pointer, named("args"));
    const Value program = entry.addArgument(builder.getI64Type(), named("program"));
    const Value scratch = entry.addArgument(pointer, named("scratch"));

    Arguments arguments(func, func.getArgumentTypes().drop_back(), args, program);
    for (BlockArgument old : entry.getArguments().take_front(count - 1)) {
      Value argument = arguments.argument(static_cast<int>(old.getArgNumber()), old.getType());
      if (isa<NameLoc>(old.getLoc())) // later stages keep its name
        argument.setLoc(old.getLoc());
      old.replaceAllUsesWith(argument);
    }
    BlockArgument old = entry.getArgument(count - 1);
    old.replaceAllUsesWith(arguments.scratchMemory(scratch, cast<MemRefType>(old.getType()), bytes));
    lowerQueries(func, arguments);
    entry.eraseArguments(0, count);

    func.setType(builder.getFunctionType({pointer, builder.getI64Type(), pointer}, {}));
    func.setArgAttrsAttr(argumentFacts(builder));
    for (const NamedAttribute attribute : llvm::to_vector(func->getDiscardableAttrs()))
      func->removeDiscardableAttr(attribute.getName()); // facts and decisions that later passes do not read
    emitScratchBytes(func, bytes);
    return success();
  }
};
} // namespace

} // namespace kiln::lowering::cpu
