// Emits the values of a thread, and its positions in a tile.

#include "lowering/gpu/ThreadCode.h"

#include "lowering/gpu/Threads.h"

using namespace mlir;

namespace kiln::lowering::gpu {

static int64_t sharedBytesOf(func::FuncOp func) {
  auto bytes = func->getAttrOfType<IntegerAttr>("simt.shared_bytes");
  return bytes ? bytes.getInt() : 0;
}

ThreadCode::ThreadCode(func::FuncOp func, OpBuilder &builder)
    : builder(builder), loc(func.getLoc()), entry(func.getContext()), warps(warpsOf(func)),
      sharedBytes(sharedBytesOf(func)) {
  entry.setInsertionPointToEnd(&prologue);
  Value thread = simt::ThreadOp::create(entry, loc, builder.getI32Type(), builder.getI64IntegerAttr(warps));
  const auto constant = [&](int64_t value) { return arith::ConstantIntOp::create(entry, loc, value, 32); };
  numbers[0] = arith::AndIOp::create(entry, loc, thread, constant(simt::numLanes - 1));
  numbers[1] = arith::ShRUIOp::create(entry, loc, thread, constant(simt::laneBits));
  if (sharedBytes > 0)
    base = simt::SharedBaseOp::create(entry, loc, builder.getI32Type(), sharedBytes);
}

// --- Values of a thread ----------------------------------------------------------------------------------------------

Type ThreadCode::heldType(Type type) {
  const LayoutAttr layout = simt::layoutOf(type);
  if (!layout)
    return type;
  return VectorType::get({layout.getLayout().numStored()}, cast<RankedTensorType>(type).getElementType());
}

Values ThreadCode::elementsOf(Value tile) {
  return Values(vector::ToElementsOp::create(builder, loc, held(tile)).getResults());
}

void ThreadCode::set(Value tile, ArrayRef<Value> elements) {
  set(tile, make<vector::FromElementsOp>(heldType(tile.getType()), elements));
}

Value ThreadCode::pick(Value vector, ArrayRef<int64_t> indices) {
  const auto type = cast<VectorType>(vector.getType());
  const bool isAll = static_cast<int64_t>(indices.size()) == type.getNumElements() &&
                     llvm::all_of(llvm::enumerate(indices),
                                  [](auto entry) { return static_cast<int64_t>(entry.index()) == entry.value(); });
  return isAll ? vector : make<vector::ShuffleOp>(vector, vector, indices);
}

Value ThreadCode::exchanged(Value vector, int64_t mask) {
  const auto type = cast<VectorType>(vector.getType());
  const Type element = type.getElementType(), word = builder.getI32Type();
  const unsigned bits = element.getIntOrFloatBitWidth();
  const auto shuffle = [&](Value value) {
    return make<simt::ShuffleOp>(word, value, builder.getI32IntegerAttr(static_cast<int32_t>(mask)));
  };
  Values results;
  auto parts = vector::ToElementsOp::create(builder, loc, vector);
  for (Value part : parts.getResults()) {
    Value result;
    if (bits == 64) {
      const Value pair = make<vector::BitCastOp>(VectorType::get({2}, word),
                                                 make<vector::BroadcastOp>(VectorType::get({1}, element), part));
      auto words = vector::ToElementsOp::create(builder, loc, pair);
      const Value both = make<vector::FromElementsOp>(
          VectorType::get({2}, word), ValueRange{shuffle(words.getResult(0)), shuffle(words.getResult(1))});
      result = make<vector::ExtractOp>(make<vector::BitCastOp>(VectorType::get({1}, element), both), 0);
    } else {
      const Type narrow = builder.getIntegerType(bits);
      Value integer = element.isInteger() ? part : make<arith::BitcastOp>(narrow, part);
      integer = shuffle(bits < 32 ? make<arith::ExtUIOp>(word, integer) : integer);
      integer = bits < 32 ? make<arith::TruncIOp>(narrow, integer) : integer;
      result = element.isInteger() ? integer : make<arith::BitcastOp>(element, integer);
    }
    results.push_back(result);
  }
  return make<vector::FromElementsOp>(type, results);
}

// --- Where the thread is ---------------------------------------------------------------------------------------------

Value ThreadCode::number(Hw part) { return numbers[part == Hw::lane ? 0 : 1]; }

Value ThreadCode::sharedBase() { return base; }

Value ThreadCode::threadOffset(LayoutAttr attribute, unsigned dim) {
  const auto [entryOfShare, isNew] = shares.try_emplace({attribute, dim});
  if (!isNew)
    return entryOfShare->second;
  const TileLayout layout = attribute.getLayout();
  const auto constant = [&](int64_t value) { return arith::ConstantIntOp::create(entry, loc, value, 32); };
  Value share;
  for (const Hw part : {Hw::lane, Hw::warp})
    for (const simt::BitField &field : layout.fieldsOf(part, dim)) {
      Value bits = number(part);
      if (field.from)
        bits = arith::ShRUIOp::create(entry, loc, bits, constant(field.from));
      bits = arith::AndIOp::create(entry, loc, bits, constant((int64_t{1} << field.width) - 1));
      if (field.to)
        bits = arith::ShLIOp::create(entry, loc, bits, constant(field.to));
      share = share ? arith::OrIOp::create(entry, loc, share, bits).getResult() : bits;
    }
  return shares[{attribute, dim}] = share;
}

Value ThreadCode::imageOfThread(const simt::F2Map &map) {
  const auto [known, isNew] = images.try_emplace(simt::Vecs(map.columns()));
  if (!isNew)
    return known->second;
  // Bits shifted by the same distance are combined.
  llvm::MapVector<int64_t, int64_t> masks;
  for (const auto [index, column] : llvm::enumerate(map.columns()))
    for (simt::Vec rest = column; rest; rest &= rest - 1)
      masks[static_cast<int64_t>(llvm::countr_zero(rest)) - static_cast<int64_t>(index)] |= int64_t{1} << index;
  if (masks.empty())
    return {};
  const auto constant = [&](int64_t value) { return arith::ConstantIntOp::create(entry, loc, value, 32); };
  const Value thread = simt::ThreadOp::create(entry, loc, builder.getI32Type(), builder.getI64IntegerAttr(warps));
  Value image;
  for (const auto &[up, mask] : masks) {
    Value bits = arith::AndIOp::create(entry, loc, thread, constant(mask));
    if (up > 0)
      bits = arith::ShLIOp::create(entry, loc, bits, constant(up));
    else if (up < 0)
      bits = arith::ShRUIOp::create(entry, loc, bits, constant(-up));
    image = image ? arith::XOrIOp::create(entry, loc, image, bits).getResult() : bits;
  }
  return known->second = image;
}

Value ThreadCode::isOwner(const TileLayout &layout) {
  Value owner;
  for (const Hw part : {Hw::lane, Hw::warp}) {
    const auto mask = static_cast<int64_t>(layout.replicated(part));
    if (mask)
      owner = both(owner,
                   make<arith::CmpIOp>(arith::CmpIPredicate::eq, make<arith::AndIOp>(number(part), i32(mask)), i32(0)));
  }
  return owner;
}

Value ThreadCode::isWithin(LayoutAttr attribute, int64_t stored, unsigned dim) {
  const TileLayout layout = attribute.getLayout();
  if (!layout.isRagged(stored, dim))
    return {};
  const Value position = add(threadOffset(attribute, dim), i32(layout.positionOf(stored)[dim]));
  return make<arith::CmpIOp>(arith::CmpIPredicate::slt, position, i32(layout.shape()[dim].size));
}

Value ThreadCode::paddedWith(TypedAttr padding, Value vector, LayoutAttr attribute, unsigned dim) {
  const TileLayout layout = attribute.getLayout();
  if (!layout.shape()[dim].isPadded())
    return vector;
  Values within;
  for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
    const Value is = isWithin(attribute, stored, dim);
    within.push_back(is ? is : make<arith::ConstantIntOp>(!layout.isDead(stored), 1));
  }
  const auto type = cast<VectorType>(vector.getType());
  const auto masks = cast<VectorType>(typeLike(type, builder.getI1Type()));
  const Value other = make<arith::ConstantOp>(DenseElementsAttr::get(type, Attribute(padding)));
  return make<arith::SelectOp>(make<vector::FromElementsOp>(masks, within), vector, other);
}

// --- Arithmetic ------------------------------------------------------------------------------------------------------

Value ThreadCode::times(Value a, int64_t factor) {
  if (!a || factor == 1)
    return a;
  const Type type = a.getType();
  return make<arith::MulIOp>(a, make<arith::ConstantOp>(builder.getIntegerAttr(type, factor)));
}

bool isRenaming(const TileLayout &from, const TileLayout &to) {
  if (from.bases(Hw::lane) != to.bases(Hw::lane) || from.bases(Hw::warp) != to.bases(Hw::warp))
    return false;
  return llvm::all_of(to.bases(Hw::reg), [&](simt::Vec unit) { return llvm::is_contained(from.bases(Hw::reg), unit); });
}

} // namespace kiln::lowering::gpu
