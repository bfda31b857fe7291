// Chooses the number of lanes of the vectors of a nest.
//
// By default, an iteration of a loop computes as many elements as a native vector has 32-bit lanes, because most
// elements have 32 bits. If all elements of a nest are narrower, its vectors have more lanes and fill a register:
//
//     store(y, {n}, load(x, {n}, {4096}) + 1)      // i8: 32 lanes on AVX2, not 8
//
// This is only for tiles inside their views. At a view's edge, vectors have masks, and AVX2 would test masks of bytes
// one by one. If an access has its own mask, the code first tests whether it is true for a whole vector.

#include "lowering/cpu/Nest.h"

#include "lowering/cpu/Lanes.h"

using namespace mlir;

namespace kiln::lowering::cpu {

static constexpr int64_t widest = 32, narrowest = 8;

namespace {

class Widths {
public:
  explicit Widths(const Evaluator &e) : e(e) {}

  /// Accounts for a root and its operands.
  void add(const Root &root) {
    if (root.kind == Root::Kind::reduce || root.kind == Root::Kind::scan)
      return useAtLeast(widest);
    if (root.kind == Root::Kind::store)
      addAccess(cast<tile::AccessOp>(root.op));
    useAtLeast(getElementTypeOrSelf(root.value.getType()).getIntOrFloatBitWidth());
    visit(root.value);
  }

  int64_t bits() {
    const auto keepAll = [&] {
      return llvm::all_of(moves, [&](tile::MoveOp move) { return keepsVectors(move, e.machine.vectorBits / found); });
    };
    while (found < widest && (e.machine.vectorBits / found > maxLanes || !keepAll()))
      found *= 2;
    return found;
  }

private:
  void useAtLeast(int64_t bits) { found = std::max(found, std::min(bits, widest)); }

  /// Loads of gathered rows without a mask use vectors, which do not cross rows. Other accesses with index tiles use
  /// the fewest lanes.
  void addAccess(tile::AccessOp access) {
    const RankedTensorType type = access.getTile().getType();
    const int64_t indexRank = access.getIndexRank();
    if (indexRank > 0 && (access.getMaskIfAny() || access.isStore() || indexRank == type.getRank()))
      useAtLeast(widest);
    else if (indexRank > 0)
      maxLanes = std::min(maxLanes, type.getShape().back());
  }

  /// Whether a tile depends only on positions and constants; most of it is folded at compile time.
  bool isKnown(Value tile) {
    Operation *op = tile.getDefiningOp();
    if (!op || e.isBuffered(tile) || !isInlinable(op))
      return false;
    if (auto entry = known.find(tile); entry != known.end())
      return entry->second;
    const bool result = llvm::all_of(op->getOperands(), [&](Value operand) { return isKnown(operand); });
    return known[tile] = result;
  }

  void visit(Value tile) {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    if (!type || !seen.insert(tile).second || isKnown(tile))
      return;
    useAtLeast(type.getElementTypeBitWidth());
    Operation *op = tile.getDefiningOp();
    if (!op || e.isBuffered(tile))
      return;
    if (isLoad(op))
      return addAccess(cast<tile::AccessOp>(op));
    if (auto move = dyn_cast<tile::MoveOp>(op); move && !isPlain(move))
      moves.push_back(move);
    llvm::for_each(op->getOperands(), [&](Value operand) { visit(operand); });
  }

  const Evaluator &e;
  int64_t found = narrowest;
  int64_t maxLanes = std::numeric_limits<int64_t>::max(); // the most lanes that are in one row
  SmallVector<tile::MoveOp> moves;
  llvm::SmallDenseSet<Value> seen;
  llvm::SmallDenseMap<Value, bool> known;
};

} // namespace

int64_t elementBitsOf(ArrayRef<Root> roots, const Evaluator &e) {
  Widths widths(e);
  for (const Root &root : roots)
    widths.add(root);
  return widths.bits();
}

SmallVector<Piece> piecesOf(int64_t from, int64_t to, int64_t lanes, int64_t least) {
  SmallVector<Piece> pieces;
  while (from < to) {
    if (to - from < lanes && lanes > least) {
      lanes /= 2;
      continue;
    }
    pieces.push_back({from, lanes, std::min(lanes, to - from)});
    from += lanes;
  }
  return pieces;
}

} // namespace kiln::lowering::cpu
