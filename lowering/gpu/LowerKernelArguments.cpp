// Converts the kernel to the entry function described in Abi.h: one 8-byte parameter for each slot, in the order of the
// argument block.
//
//     func.func @k(%v: memref<?x64xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.warps = 4, …}
//     ─>
//     llvm.func ptx_kernelcc @k(%grid0: i64, %grid1: i64, %grid2: i64, %v: !llvm.ptr<1>, %extent: i64, %stride: i64,
//                               %n: i64)
//
// A kernel for several problems (`tile.problems`) has such parameters for each of them, after the launch's grid. A
// program uses those of the problem that its number belongs to.
//
// A view's address, extents and strides are read by `memref.extract_aligned_pointer_as_index`,
// `memref.extract_strided_metadata` and `tile.dim`; the memref is unused after the pass.

#include "lowering/Passes.h"
#include "lowering/gpu/Threads.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/Abi.h"
#include "lowering/Backend.h"
#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_LOWERKERNELARGUMENTS
#include "lowering/gpu/Passes.h.inc"

using namespace mlir;

/// The number of problems of a launch, `tile.problems`.
static int64_t problemCount(func::FuncOp func) {
  auto problems = func->getAttrOfType<IntegerAttr>("tile.problems");
  return problems ? problems.getInt() : 1;
}

namespace {

/// A view inside the kernel, as index values.
struct ViewValues {
  Value address;
  SmallVector<Value> extents, strides;
};

/// Rebuilds the arguments of one kernel from its parameters.
class Arguments {
public:
  Arguments(func::FuncOp func, Block &entry)
      : builder(OpBuilder::atBlockBegin(&entry)), loc(func.getLoc()), types(func.getArgumentTypes()),
        slots(slotsOf(types)) {
    const int64_t problems = problemCount(func);
    if (problems > 1)
      addProblem(entry); // only the launch's grid, which is not read
    Problem before = addProblem(entry, slots);
    grid = before.grid;
    parameters = before.parameters;
    for (int64_t i = 1; i < problems; ++i) {
      Problem problem = addProblem(entry, slots);
      choose(problem, before);
      before = std::move(problem);
    }
  }

  ArrayRef<Type> signature() const { return parameterTypes; }

  /// The address of a constant of the module, as an index.
  Value table(StringRef name) {
    const auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), 1);
    Value &address = tables[name];
    if (!address)
      address = toIndex(LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(),
                                                 LLVM::AddressOfOp::create(builder, loc, pointer, name)));
    return address;
  }

  const ViewValues &view(int number) {
    ViewValues &view = views[number];
    if (view.address)
      return view;
    auto type = cast<MemRefType>(types[number]);
    const Value pointer = parameters[indexOf(abi::Slot::pointer, number)];
    view.address = toIndex(LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(), pointer));
    const auto known = [&](abi::Slot::Kind kind, ArrayRef<int64_t> values, SmallVector<Value> &result) {
      for (const auto [dimension, value] : llvm::enumerate(values))
        result.push_back(ShapedType::isDynamic(value)
                             ? toIndex(parameters[indexOf(kind, number, static_cast<int>(dimension))])
                             : arith::ConstantIndexOp::create(builder, loc, value).getResult());
    };
    known(abi::Slot::extent, type.getShape(), view.extents);
    known(abi::Slot::stride, type.getStridesAndOffset().first, view.strides);
    return view;
  }

  /// Argument `number`, a scalar: the low bits of its slot.
  Value scalar(int number) {
    Value word = parameters[indexOf(abi::Slot::scalar, number)];
    const Type type = types[number];
    if (type.isInteger(64))
      return word;
    if (type.isInteger(1)) {
      const Value byte = arith::TruncIOp::create(builder, loc, builder.getI8Type(), word);
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, byte,
                                   arith::ConstantIntOp::create(builder, loc, 0, 8));
    }
    const unsigned bits = type.getIntOrFloatBitWidth();
    if (bits < 64)
      word = arith::TruncIOp::create(builder, loc, builder.getIntegerType(bits), word);
    return type.isInteger() ? word : arith::BitcastOp::create(builder, loc, type, word).getResult();
  }

  Value numPrograms(int64_t axis) { return grid[axis]; }
  Value programId(int64_t axis) {
    if (!ids[axis])
      ids[axis] = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), begin ? idInProblem(axis) : blockId(axis));
    return ids[axis];
  }

  /// An index as i64, the language's type.
  Value toWord(Value index) { return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index); }

private:
  /// The parameters of one problem.
  struct Problem {
    SmallVector<Value, 3> grid;
    SmallVector<Value> parameters;
  };
  Problem addProblem(Block &entry, ArrayRef<abi::Slot> slots = {}) {
    const auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), 1);
    const auto add = [&](Type type) {
      parameterTypes.push_back(type);
      return entry.addArgument(type, loc);
    };
    Problem problem;
    for (int64_t axis = 0; axis < abi::gridSlots; ++axis)
      problem.grid.push_back(add(builder.getI64Type()));
    for (const abi::Slot &slot : slots)
      problem.parameters.push_back(add(slot.kind == abi::Slot::pointer ? Type(pointer) : builder.getI64Type()));
    return problem;
  }

  /// Selects the parameters of `problem` if the program belongs to none of the preceding problems, the last of which is
  /// `before`.
  void choose(const Problem &problem, const Problem &before) {
    const auto narrow = [&](Value word) -> Value {
      return arith::TruncIOp::create(builder, loc, builder.getI32Type(), word);
    };
    if (!begin)
      begin = nextBegin = arith::ConstantIntOp::create(builder, loc, 0, 32);
    Value programs = narrow(before.grid[0]);
    for (const int64_t axis : {1, 2})
      programs = arith::MulIOp::create(builder, loc, programs, narrow(before.grid[axis]));
    nextBegin = arith::AddIOp::create(builder, loc, nextBegin, programs);
    const Value isLater = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, blockId(0), nextBegin);
    const auto select = [&](Value &value, Value other) {
      value = arith::SelectOp::create(builder, loc, isLater, other, value);
    };
    select(begin, nextBegin);
    for (auto [value, other] : llvm::zip_equal(grid, problem.grid))
      select(value, other);
    for (auto [value, other] : llvm::zip_equal(parameters, problem.parameters))
      select(value, other);
  }

  /// The block's coordinate in the launch's grid.
  Value blockId(int64_t axis) {
    if (!blockIds[axis]) {
      const std::string name = std::string("llvm.nvvm.read.ptx.sreg.ctaid.") + "xyz"[axis];
      blockIds[axis] =
          LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(), builder.getStringAttr(name), ValueRange())
              .getResult(0);
    }
    return blockIds[axis];
  }

  /// The program's coordinate in the grid of its problem.
  Value idInProblem(int64_t axis) {
    Value id = arith::SubIOp::create(builder, loc, blockId(0), begin);
    for (int64_t at = 0; at <= axis; ++at) {
      const Value extent = arith::TruncIOp::create(builder, loc, builder.getI32Type(), grid[at]);
      if (at < axis)
        id = arith::DivUIOp::create(builder, loc, id, extent);
      else if (axis < 2)
        id = arith::RemUIOp::create(builder, loc, id, extent);
    }
    return id;
  }

  Value toIndex(Value word) { return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), word); }

  size_t indexOf(abi::Slot::Kind kind, int argument, int dimension = 0) const {
    return llvm::find(slots, abi::Slot{kind, argument, dimension}) - slots.begin();
  }

  OpBuilder builder;
  const Location loc;
  const SmallVector<Type> types;
  const std::vector<abi::Slot> slots;
  SmallVector<Type> parameterTypes;
  SmallVector<Value> parameters;
  DenseMap<int, ViewValues> views;
  llvm::StringMap<Value> tables;
  SmallVector<Value, 3> grid;
  Value blockIds[3], ids[3];
  Value begin,
      nextBegin; // with several problems: the first program of the selected one, and of the last visited one
};

} // namespace

/// Replaces reads of the grid, the program's number, views and scalars.
static void lowerReads(func::FuncOp func, Arguments &arguments) {
  SmallVector<Operation *> lowered;
  const auto numberOf = [](Value view) { return static_cast<int>(cast<BlockArgument>(view).getArgNumber()); };
  func.walk([&](Operation *op) {
    SmallVector<Value> values;
    if (auto id = dyn_cast<tile::ProgramIdOp>(op)) {
      values = {arguments.programId(id.getAxis())};
    } else if (auto count = dyn_cast<tile::NumProgramsOp>(op)) {
      values = {arguments.numPrograms(count.getAxis())};
    } else if (auto dim = dyn_cast<tile::DimOp>(op)) {
      values = {arguments.toWord(arguments.view(numberOf(dim.getView())).extents[dim.getAxis()])};
    } else if (auto pointer = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(op)) {
      const StringRef table = tableOf(pointer.getSource());
      values = {table.empty() ? arguments.view(numberOf(pointer.getSource())).address : arguments.table(table)};
    } else if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
      const ViewValues &view = arguments.view(numberOf(metadata.getSource()));
      values = {Value(), Value()}; // base and offset (0) are unused
      values.append(view.extents);
      values.append(view.strides);
    } else {
      return;
    }
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
      if (value)
        result.replaceAllUsesWith(value);
    lowered.push_back(op);
  });
  for (Operation *op : lowered)
    op->erase();
  func.walk([](memref::ViewOp view) { view.erase(); });
  func.walk([](memref::GetGlobalOp table) { table.erase(); });
}

/// A constant of the module in the GPU's global memory.
static void lowerTable(memref::GlobalOp table) {
  OpBuilder builder(table);
  const auto bytes = cast<DenseElementsAttr>(*table.getInitialValue());
  const auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.getNumElements());
  LLVM::GlobalOp::create(builder, table.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal, table.getName(),
                         bytes, *table.getAlignment(), /*addrSpace=*/1);
  table.erase();
}

namespace {
struct LowerKernelArguments : impl::LowerKernelArgumentsBase<LowerKernelArguments> {
  using LowerKernelArgumentsBase::LowerKernelArgumentsBase;

  void runOnOperation() override {
    for (func::FuncOp func : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (func->hasAttr("tile.kernel"))
        lower(func);
    llvm::for_each(llvm::to_vector(getOperation().getOps<memref::GlobalOp>()), lowerTable);
  }

  /// Comments in the PTX with the layout of shared memory, for readers and the simulator.
  static void nameSharedParts(func::FuncOp kernel, ArrayAttr parts) {
    SmallVector<Attribute> lines;
    for (const auto part : parts.getAsRange<StringAttr>())
      lines.push_back(StringAttr::get(kernel.getContext(),
                                      llvm::Twine(abi::sharedPart) + kernel.getName() + " " + part.getValue()));
    kernel->getParentOp()->setAttr(LLVM::LLVMDialect::getModuleLevelAsmAttrName(),
                                   ArrayAttr::get(kernel.getContext(), lines));
  }

  static void lower(func::FuncOp func) {
    OpBuilder builder(func);
    Block &entry = func.front();
    const unsigned count = entry.getNumArguments();
    Arguments arguments(func, entry);
    for (BlockArgument old : entry.getArguments().take_front(count))
      if (!isa<MemRefType>(old.getType()) && !old.use_empty())
        old.replaceAllUsesWith(arguments.scalar(static_cast<int>(old.getArgNumber())));
    lowerReads(func, arguments);
    entry.eraseArguments(0, count);

    const auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(func.getContext()), arguments.signature());
    auto kernel = LLVM::LLVMFuncOp::create(builder, func.getLoc(), func.getName(), type);
    kernel.setCConv(LLVM::CConv::PTX_Kernel);
    // One program per SM is enough unless the kernel requests more. Without this directive ptxas spills a few registers
    // to fit another program.
    const auto property = [&](StringRef name, int64_t value) -> Attribute {
      return builder.getArrayAttr({builder.getStringAttr(name), builder.getStringAttr(std::to_string(value))});
    };
    kernel.setPassthroughAttr(builder.getArrayAttr(
        {property("nvvm.reqntid", 32 * warpsOf(func)), property("nvvm.minctasm", minCtasPerSm(func))}));
    kernel.getBody().takeBody(func.getBody());
    if (const auto bytes = func->getAttrOfType<IntegerAttr>("simt.shared_bytes");
        bytes && bytes.getInt() > maxStaticShared)
      LLVM::GlobalOp::create(builder, func.getLoc(), builder.getI64Type(), /*isConstant=*/true, LLVM::Linkage::External,
                             (func.getName() + abi::sharedSuffix).str(), builder.getI64IntegerAttr(bytes.getInt()),
                             /*alignment=*/8, /*addrSpace=*/1);
    if (const auto parts = func->getAttrOfType<ArrayAttr>("simt.shared_parts"))
      nameSharedParts(func, parts);
    kernel.walk([](func::ReturnOp op) {
      OpBuilder at(op);
      LLVM::ReturnOp::create(at, op.getLoc(), ValueRange());
      op.erase();
    });
    func.erase();
  }
};
} // namespace

} // namespace kiln::lowering::gpu
