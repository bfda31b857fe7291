// Declares the functions that `tile.check` and `tile.print` call, and their texts; emits the calls.
//
// Function passes must not change the module, so globals and declarations are created here, before them.

#include "lowering/Abi.h"
#include "lowering/Passes.h"
#include "lowering/tile/Console.h"

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_DECLARECONSOLE
#include "lowering/Passes.h.inc"

std::string innermostLine(Location loc) {
  std::string where = "unknown";
  loc->walk([&](Location inner) {
    auto place = dyn_cast<FileLineColLoc>(inner);
    if (!place)
      return WalkResult::advance();
    where = (place.getFilename().getValue() + ":" + Twine(place.getLine())).str();
    return WalkResult::interrupt();
  });
  return where;
}

/// x + grid[0] * (y + grid[1] * z).
Value emitLinearProgram(OpBuilder &b, Location loc) {
  auto id = [&](int64_t axis) -> Value { return tile::ProgramIdOp::create(b, loc, axis); };
  auto count = [&](int64_t axis) -> Value { return tile::NumProgramsOp::create(b, loc, axis); };
  Value plane = arith::AddIOp::create(b, loc, id(1), arith::MulIOp::create(b, loc, count(1), id(2)));
  return arith::AddIOp::create(b, loc, id(0), arith::MulIOp::create(b, loc, count(0), plane));
}

int64_t textNumber(Operation *op, StringRef attribute) {
  StringRef name = op->getAttrOfType<FlatSymbolRefAttr>(attribute).getValue();
  int64_t number = 0;
  name.consume_front(abi::textPrefix);
  name.getAsInteger(10, number);
  return number;
}

/// The number of the printed element type in kiln::Type.
static int64_t elementNumber(tile::PrintOp op) {
  if (auto number = op->getAttrOfType<IntegerAttr>("tile.element"))
    return number.getInt();
  const int64_t number = *tile::typeNumber(getElementTypeOrSelf(op.getValue().getType()));
  return tile::isUnsigned(op) ? number + 1 : number; // it follows the signed one
}

Value textAddress(OpBuilder &b, Location loc, FlatSymbolRefAttr text) {
  return LLVM::AddressOfOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), text.getValue());
}

static Value textAddress(OpBuilder &b, Operation *op, StringRef attribute) {
  return textAddress(b, op->getLoc(), op->getAttrOfType<FlatSymbolRefAttr>(attribute));
}

/// A memref's first byte as a pointer.
static Value address(OpBuilder &b, Location loc, Value buffer) {
  Value index = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
  Value word = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  return LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), word);
}

void emitCheckFailed(OpBuilder &b, tile::CheckOp op, Value element) {
  Location loc = op.getLoc();
  Value arguments[] = {textAddress(b, op, "tile.message"), textAddress(b, op, "tile.where"), emitLinearProgram(b, loc),
                       element};
  func::CallOp::create(b, loc, abi::checkFailed, TypeRange{}, arguments);
}

void emitPrint(OpBuilder &b, tile::PrintOp op, Value data) {
  Location loc = op.getLoc();
  auto shape = tile::shapeOf(op.getValue().getType());
  int64_t slots = std::max<int64_t>(shape.size(), 1);
  Value extents = memref::AllocaOp::create(b, loc, MemRefType::get({slots}, b.getI64Type()),
                                           b.getI64IntegerAttr(abi::scratchAlignment));
  for (auto [axis, extent] : llvm::enumerate(shape)) {
    Value slot = arith::ConstantIndexOp::create(b, loc, axis);
    memref::StoreOp::create(b, loc, arith::ConstantIntOp::create(b, loc, extent, 64), extents, slot);
  }
  Value type = arith::ConstantIntOp::create(b, loc, elementNumber(op), 32);
  Value rank = arith::ConstantIntOp::create(b, loc, shape.size(), 64);
  Value arguments[] = {textAddress(b, op, "tile.label"), emitLinearProgram(b, loc), type, rank,
                       address(b, loc, extents),         address(b, loc, data)};
  func::CallOp::create(b, loc, abi::printTile, TypeRange{}, arguments);
}

void ConsoleSymbols::declare(StringRef name, TypeRange parameters, TypeRange results) {
  if (module.lookupSymbol(name))
    return;
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  auto type = builder.getFunctionType(parameters, results);
  func::FuncOp::create(builder, builder.getUnknownLoc(), name, type).setPrivate();
}

FlatSymbolRefAttr ConsoleSymbols::text(StringRef value) {
  FlatSymbolRefAttr &known = texts[value];
  if (known)
    return known;
  std::string name;
  do
    name = (abi::textPrefix + Twine(count++)).str();
  while (module.lookupSymbol(name));
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  std::string bytes = value.str() + '\0';
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
  LLVM::GlobalOp::create(builder, builder.getUnknownLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                         builder.getStringAttr(bytes));
  return known = FlatSymbolRefAttr::get(module.getContext(), name);
}

namespace {

struct DeclareConsole : impl::DeclareConsoleBase<DeclareConsole> {
  using DeclareConsoleBase::DeclareConsoleBase;

  void runOnOperation() override {
    ConsoleSymbols symbols(getOperation());
    mlir::Type pointer = LLVM::LLVMPointerType::get(&getContext()), i64 = IntegerType::get(&getContext(), 64),
               i32 = IntegerType::get(&getContext(), 32);
    getOperation().walk([&](Operation *op) {
      if (auto check = dyn_cast<tile::CheckOp>(op)) {
        op->setAttr("tile.message", symbols.text(check.getMessage()));
        op->setAttr("tile.where", symbols.text(innermostLine(op->getLoc())));
        symbols.declare(abi::checkFailed, {pointer, pointer, i64, i64});
      } else if (auto print = dyn_cast<tile::PrintOp>(op)) {
        op->setAttr("tile.label", symbols.text(print.getLabel()));
        if (tile::isUnsigned(op) || tile::isByteFloat(getElementTypeOrSelf(print.getValue().getType())))
          op->setAttr("tile.element", IntegerAttr::get(i32, elementNumber(print)));
        symbols.declare(abi::printTile, {pointer, i64, i32, i64, pointer, pointer});
      }
    });
  }
};

} // namespace

} // namespace kiln::lowering
