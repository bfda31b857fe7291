// See Group.h.

#include "lowering/cpu/Group.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace kiln::lowering::cpu {

static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

llvm::SetVector<tile::AccessOp> accessesOf(ArrayRef<Root> roots, const Evaluator &e) {
  llvm::SetVector<tile::AccessOp> found;
  llvm::SmallDenseSet<Value> seen;
  std::function<void(Value)> visit = [&](Value tile) {
    Operation *op = tile.getDefiningOp();
    if (!isTile(tile) || e.isBuffered(tile) || !op || !seen.insert(tile).second)
      return;
    if (isLoad(op))
      found.insert(cast<tile::AccessOp>(op));
    llvm::for_each(op->getOperands(), visit);
  };
  for (const Root &root : roots) {
    if (root.isScan())
      llvm::for_each(root.op->getOperands(), visit);
    visit(root.value);
    if (root.kind != Root::Kind::store)
      continue;
    found.insert(cast<tile::AccessOp>(root.op));
    llvm::for_each(root.op->getOperands(), visit);
  }
  return found;
}

void Group::add(Root root) {
  if (root.kind == Root::Kind::place || root.buffer || root.isScan())
    results.insert_range(root.op->getResults());
  reads.push_back(collectReads(root));
  DenseSet<Value> seen;
  cost += costOf(root, seen);
  computed.insert(seen.begin(), seen.end());
  roots.push_back(std::move(root));
}

int64_t Group::costOf(const Root &root, DenseSet<Value> &seen) const {
  int64_t cost = root.isScan() ? scanned : isElementwise(root.op) ? cpu::costOf(root.op) : 0;
  SmallVector<Value> work;
  const auto read = [&](Operation *op) {
    if (auto access = dyn_cast<tile::AccessOp>(op))
      cost += access.getIndexRank() == 0 ? 1 : addressed;
    llvm::copy_if(op->getOperands(), std::back_inserter(work), isTile);
  };
  for (read(root.op); !work.empty() && cost < longestNest;) {
    const Value value = work.pop_back_val();
    Operation *const op = value.getDefiningOp();
    if (computed.contains(value) || !seen.insert(value).second || !op || results.contains(value) ||
        buffers.contains(value))
      continue;
    if (isElementwise(op))
      cost += cpu::costOf(op);
    if (isLoad(op) || isInlinable(op))
      read(op);
  }
  return cost;
}

Reads Group::collectReads(Value tile) const {
  Reads reads;
  DenseSet<std::pair<Value, int>> seen;
  collect(tile, true, reads, seen);
  return reads;
}

bool Group::isReadAfter(Value result) const {
  return llvm::any_of(readersOf(result), [&](const Reader &reader) {
    return !reader.sameElement ||
           llvm::none_of(roots, [&](const Root &root) { return root.op == reader.operand->getOwner(); });
  });
}

SmallVector<tile::ExtractOp> Group::lastElements(OpResult result) {
  auto scan = cast<tile::ScanOp>(result.getOwner());
  SmallVector<int64_t> begin(tile::shapeOf(result.getType()).size(), 0), shape(tile::shapeOf(result.getType()));
  begin[scan.getAxis()] = std::exchange(shape[scan.getAxis()], 1) - 1;
  SmallVector<tile::ExtractOp> lasts;
  for (Operation *user : result.getUsers()) {
    auto extract = dyn_cast<tile::ExtractOp>(user);
    if (!extract || extract.getBegin() != ArrayRef(begin) || extract.getType().getShape() != ArrayRef(shape) ||
        llvm::any_of(llvm::enumerate(extract.getSteps()),
                     [&](auto entry) { return entry.value() != 1 && shape[entry.index()] != 1; }))
      return {};
    lasts.push_back(extract);
  }
  return lasts;
}

void Group::collect(Value value, bool same, Reads &reads, DenseSet<std::pair<Value, int>> &seen) const {
  if (!seen.insert({value, same}).second)
    return;
  if (!isTile(value)) {
    reads.scalars.push_back(value);
    return;
  }
  Operation *op = value.getDefiningOp();
  bool pending = results.contains(value);
  if (!op || pending || buffers.contains(value)) {
    reads.buffered.push_back({value, same});
    return;
  }
  if (isLoad(op))
    reads.loads.push_back({cast<tile::AccessOp>(op), same});
  bool keeps = same && isElementwise(op);
  for (Value operand : op->getOperands())
    if (!isa<MemRefType>(operand.getType()))
      collect(operand, keeps, reads, seen);
}

Reads Group::collectReads(const Root &root) const {
  Reads reads;
  DenseSet<std::pair<Value, int>> seen;
  if (root.kind == Root::Kind::place && isLoad(root.op))
    reads.loads.push_back({cast<tile::AccessOp>(root.op), true});
  if (auto scan = dyn_cast<tile::ScanOp>(root.op)) {
    for (Value source : scan.getSources())
      collect(source, true, reads, seen);
    llvm::SetVector<Value> outside;
    getUsedValuesDefinedAbove(scan.getBy(), outside);
    llvm::append_range(reads.scalars, outside);
  } else if (root.kind == Root::Kind::reduce || root.kind == Root::Kind::check) {
    collect(root.value, true, reads, seen);
  } else if (root.kind == Root::Kind::store) {
    auto store = cast<tile::AccessOp>(root.op);
    const bool isBlock = store.getIndexRank() == 0 && !root.places && !root.joined;
    collect(root.value, isBlock, reads, seen);
    for (Value subscript : store.getSubscripts())
      if (isTile(subscript))
        collect(subscript, false, reads, seen);
    if (Value mask = store.getMaskIfAny())
      collect(mask, isBlock, reads, seen);
  } else {
    bool keeps = isElementwise(root.op);
    for (Value operand : root.op->getOperands())
      if (!isa<MemRefType>(operand.getType()))
        collect(operand, keeps, reads, seen);
  }
  for (Value operand : root.op->getOperands())
    if (!isTile(operand) && !isa<MemRefType>(operand.getType()))
      reads.scalars.push_back(operand);
  return reads;
}

static bool writes(const Root &root) { return root.kind == Root::Kind::store; }
static Value writtenBy(const Root &root) { return cast<tile::AccessOp>(root.op).getView(); }

bool Group::hasForm(const Root &root) const {
  const Root &first = roots.front();
  const bool isPassive = root.kind == Root::Kind::store || root.kind == Root::Kind::place;
  if (first.isColumns() ? !(root.isColumns() ? root.axis == first.axis : first.isScan() && isPassive)
                        : root.isColumns())
    return false;
  return isPassive || llvm::all_of(roots, [&](const Root &member) {
           return member.kind == Root::Kind::store || member.kind == Root::Kind::place ||
                  member.isBackwards() == root.isBackwards();
         });
}

bool Group::canJoin(const Root &root) const {
  const Root &first = roots.front();
  if (root.isTransposed() || first.isTransposed() || root.joined.has_value() != first.joined.has_value())
    return false;
  if (root.shape() != first.shape() || root.op->getBlock() != first.op->getBlock() || !hasForm(root))
    return false;
  DenseSet<Value> seen;
  if (cost + costOf(root, seen) > longestNest + addressed) // a nest of that cost may still be joined by its store
    return false;
  const Reads needed = collectReads(root);
  for (Value scalar : needed.scalars)
    if (Operation *def = scalar.getDefiningOp())
      if (def->getBlock() == first.op->getBlock() && !def->isBeforeInBlock(first.op))
        return false;
  for (auto &[value, same] : needed.buffered)
    for (const Root &member : roots)
      if (member.op == value.getDefiningOp() &&
          !((member.kind == Root::Kind::place || member.isScan()) && same && root.kind != Root::Kind::check))
        return false;
  for (const auto &[member, read] : llvm::zip_equal(roots, reads)) {
    if (writes(member)) {
      for (auto [load, same] : needed.loads)
        if (member.op->isBeforeInBlock(load) && touches(member.op, load.getView()))
          return false;
      if (writes(root) && touches(member.op, writtenBy(root)))
        return false;
    }
    if (writes(root) && !mayWriteAfter(member, read, root))
      return false;
  }
  return true;
}

bool Group::mayWriteAfter(const Root &member, const Reads &reads, const Root &root) const {
  return llvm::all_of(reads.loads, [&](const auto &read) {
    auto [load, same] = read;
    return !touches(root.op, load.getView()) ||
           (member.kind != Root::Kind::check && same && isSamePlace(load, cast<tile::AccessOp>(root.op)));
  });
}

} // namespace kiln::lowering::cpu
