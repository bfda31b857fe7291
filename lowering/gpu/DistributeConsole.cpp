// Console records: one thread writes the header, each thread its elements. lowering/Abi.h has the format.

#include "lowering/gpu/ThreadCode.h"

#include "dialect/tile/TypeRules.h"
#include "lowering/Abi.h"

#include <cstddef>

using namespace mlir;

namespace kiln::lowering::gpu {

/// Whether this is the first thread of the program.
static Value isFirst(ThreadCode &code) {
  const Value both = code.make<arith::OrIOp>(code.number(simt::Hw::lane), code.number(simt::Hw::warp));
  return code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, both, code.i32(0));
}

void distribute(ThreadCode &code, simt::ReserveOp op) {
  const Value console = code.make<simt::ConsoleOp>(code.builder.getI64Type());
  const Value place = code.make<simt::AtomicRmwOp>(
      code.builder.getI64Type(), tile::AtomicKindAttr::get(code.builder.getContext(), tile::AtomicKind::Add),
      code.i64(op.getBytes()), console, int64_t(offsetof(abi::GpuConsole, printed)), isFirst(code));
  code.set(op.getResult(), ArrayRef<Value>(place));
}

void distribute(ThreadCode &code, simt::PrintOp op) {
  const simt::LayoutAttr attribute = simt::layoutOf(op.getValue());
  const simt::TileLayout layout = attribute.getLayout();
  const auto tile = cast<RankedTensorType>(op.getValue().getType());
  const Type element = tile.getElementType();
  const int64_t size = std::max(1u, element.getIntOrFloatBitWidth() / 8);
  const int64_t bytes = sizeof(abi::GpuLine) + llvm::alignTo(tile.getNumElements() * size, 8);

  const Value console = code.make<simt::ConsoleOp>(code.builder.getI64Type());
  const Value place = code.elementsOf(op.getPlace())[0];
  const Value hasRoom =
      code.make<arith::CmpIOp>(arith::CmpIPredicate::ule, place, code.i64(int64_t(abi::GpuConsole::lineBytes) - bytes));
  const Value line = code.add(console, code.add(place, code.i64(offsetof(abi::GpuConsole, lines))));

  // The header.
  const Value first = code.both(hasRoom, isFirst(code));
  const auto put = [&](Value word, int64_t displacement) {
    const auto vectorType = VectorType::get({1}, word.getType());
    simt::StoreOp::create(code.builder, code.loc, simt::Space::Global, code.make<vector::BroadcastOp>(vectorType, word),
                          line, displacement, first);
  };
  const auto vectorType = VectorType::get({1}, code.builder.getI64Type());
  const Value zero = code.make<arith::ConstantOp>(code.builder.getZeroAttr(vectorType));
  const Value launch = code.make<simt::LoadOp>(vectorType, simt::Space::Global, console,
                                               int64_t(offsetof(abi::GpuConsole, launch)), first, zero);
  put(code.make<vector::ExtractOp>(launch, 0), offsetof(abi::GpuLine, launch));
  put(code.held(op.getProgram()), offsetof(abi::GpuLine, program));
  put(code.i32(op.getLabel()), offsetof(abi::GpuLine, label));
  const auto number = op->getAttrOfType<IntegerAttr>("tile.element"); // if MLIR's type is ambiguous
  put(code.i32(number ? number.getInt() : *tile::typeNumber(element)), offsetof(abi::GpuLine, type));
  put(code.i32(op.getShape().size()), offsetof(abi::GpuLine, rank));
  put(code.i32(bytes), offsetof(abi::GpuLine, bytes));
  for (const auto [dim, extent] : llvm::enumerate(op.getShape()))
    put(code.i64(extent), offsetof(abi::GpuLine, extents) + 8 * dim);

  // The elements, dense in row-major order.
  SmallVector<int64_t> strides(tile.getRank(), size);
  for (int64_t dim = tile.getRank() - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * tile.getDimSize(dim + 1);
  Value address = line;
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    if (const Value share = code.times(code.threadOffset(attribute, dim), strides[dim]))
      address = code.add(address, code.make<arith::ExtUIOp>(code.builder.getI64Type(), share));
  Value vector = code.held(op.getValue());
  const Type stored = element.isInteger(1) ? Type(code.builder.getI8Type()) : element;
  if (stored != element)
    vector = code.make<arith::ExtUIOp>(typeLike(vector.getType(), stored), vector);
  auto parts = vector::ToElementsOp::create(code.builder, code.loc, vector);
  const Value owner = code.both(hasRoom, code.isOwner(layout));
  for (int64_t index = 0; index < layout.numStored(); ++index) {
    if (layout.isDead(index))
      continue;
    Value writes = owner;
    int64_t displacement = sizeof(abi::GpuLine);
    for (const auto [dim, position] : llvm::enumerate(layout.positionOf(index))) {
      writes = code.both(writes, code.isWithin(attribute, index, static_cast<unsigned>(dim)));
      displacement += position * strides[dim];
    }
    const Value part = code.make<vector::BroadcastOp>(VectorType::get({1}, stored), parts.getResult(index));
    simt::StoreOp::create(code.builder, code.loc, simt::Space::Global, part, address, displacement, writes);
  }
}

} // namespace kiln::lowering::gpu
