// Emits nests for pairs that are joined and stored as one row, (…, 32, 2) as (…, 64), as in rotary embeddings. The nest
// runs along the halves, computes a vector of each, and interleaves them by shuffles. A nest along the row would
// compute both halves for every lane, and half of the results would be unused.

#include "lowering/cpu/Group.h"
#include "lowering/cpu/Lanes.h"
#include "lowering/cpu/Nest.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// The constant integer of a tile where the last position is `last` of `extent`; none if it is not constant.
static std::optional<APInt> valueAt(Value tile, int64_t extent, int64_t last) {
  APInt number;
  if (matchPattern(tile, m_ConstantInt(&number)))
    return number;
  const auto shape = tile::shapeOf(tile.getType());
  if (shape.empty() || shape.back() != extent)
    return std::nullopt;
  if (auto iota = tile.getDefiningOp<tile::IotaOp>())
    return APInt(iota.getType().getElementTypeBitWidth(), last);
  if (auto broadcast = tile.getDefiningOp<tile::BroadcastOp>())
    return valueAt(broadcast.getSource(), extent, last);
  if (auto reshape = tile.getDefiningOp<tile::ReshapeOp>();
      reshape && differsByUnits(reshape.getSource().getType(), tile.getType()))
    return valueAt(reshape.getSource(), extent, last);
  if (auto compare = tile.getDefiningOp<arith::CmpIOp>()) {
    const auto a = valueAt(compare.getLhs(), extent, last), b = valueAt(compare.getRhs(), extent, last);
    if (a && b)
      return APInt(1, arith::applyCmpPredicate(compare.getPredicate(), *a, *b));
  }
  return std::nullopt;
}

std::optional<JoinedRows> findJoinedRows(tile::StoreOp store, int64_t lanes, int64_t most) {
  auto reshape = store.getValue().getDefiningOp<tile::ReshapeOp>();
  if (!reshape || !reshape->hasOneUse() || reshape->getBlock() != store->getBlock() ||
      reshape->hasAttr("cpu.scratch") || tile::AccessOp(store).getMaskIfAny() ||
      tile::AccessOp(store).getIndexRank() > 0)
    return std::nullopt;
  const auto from = tile::shapeOf(reshape.getSource().getType()), to = tile::shapeOf(reshape.getType());
  if (from.size() < 2 || from.back() < 2 || from.back() > most || from[from.size() - 2] < lanes ||
      to.size() + 1 != from.size() || to.drop_back() != from.drop_back(2))
    return std::nullopt;
  JoinedRows joined;
  SmallVector<Value> work = {reshape.getSource()};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value tile = work.pop_back_val();
    Operation *op = tile.getDefiningOp();
    if (!isa<RankedTensorType>(tile.getType()) || !seen.insert(tile).second)
      continue;
    if (!op || op->hasAttr("cpu.scratch"))
      return std::nullopt;
    if (auto broadcast = dyn_cast<tile::BroadcastOp>(op);
        broadcast && broadcast.getSource().getType().getShape().back() == 1)
      continue; // an operand of one of the row's elements
    if (op->hasTrait<OpTrait::ConstantLike>())
      continue;
    if (!isElementwise(op))
      return std::nullopt;
    auto select = dyn_cast<arith::SelectOp>(op);
    if (!select || !isa<RankedTensorType>(select.getCondition().getType())) {
      llvm::append_range(work, op->getOperands());
      continue;
    }
    JoinedRows::Choice choice = {select.getCondition(), {}};
    for (int64_t last = 0; last < from.back(); ++last) {
      const auto chosen = valueAt(select.getCondition(), from.back(), last);
      if (!chosen)
        return std::nullopt;
      choice.values.push_back(!chosen->isZero());
    }
    joined.choices.push_back(std::move(choice));
    work.append({select.getTrueValue(), select.getFalseValue()});
  }
  if (joined.choices.empty())
    return std::nullopt;
  return joined;
}

SmallVector<Value> Nest::joinedAt(const Root &root, Index index) {
  Values parts;
  for (int64_t part = 0; part < shape.back(); ++part) {
    index.back() = e.fixed(part);
    for (const JoinedRows::Choice &choice : root.joined->choices)
      e.assumed[choice.condition] = choice.values[part];
    parts.push_back(e.vectorAt(root.value, index));
  }
  for (const JoinedRows::Choice &choice : root.joined->choices)
    e.assumed.erase(choice.condition);
  return parts;
}

void Nest::writeJoined(const Root &root, const Index &index) {
  const Values parts = joinedAt(root, index);
  const int64_t lanes = e.machine.lanes(), count = shape.back();
  const Ix &row = index[laneAxis];
  Value begin = e.make<arith::MulIOp>(row.at, e.constantIndex(count));
  for (int64_t vector = 0; vector < count && vector * lanes < row.valid * count; ++vector) {
    Value all = parts[0];
    for (int64_t part = 1; part < count; ++part) {
      SmallVector<int64_t> order;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t element = vector * lanes + lane, of = element % count;
        order.push_back(of == part ? lanes + element / count : of == 0 && part == 1 ? element / count : lane);
      }
      e.moveTo(e.depth());
      all = e.noted(vector::ShuffleOp::create(e.builder, e.loc, all, parts[part], order), e.depth());
    }
    Index to(ArrayRef<Ix>(index).drop_back());
    to[laneAxis] = lanesAt(begin, vector * lanes, std::min(lanes, row.valid * count - vector * lanes));
    e.store(all, cast<tile::AccessOp>(root.op), to);
  }
}

} // namespace kiln::lowering::cpu
