// Walking loops, naming tiles, and following copies through shared memory.

#include "test/lowering/gpu/RingWalk.h"

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/Hashing.h"

#include <algorithm>
#include <stdexcept>

using namespace mlir;

namespace kiln::test {

// --- Numbers and names -----------------------------------------------------------------------------------------------

int64_t RingWalk::number(Value value) const {
  const Known known = values.lookup(value);
  if (!known.number)
    throw std::runtime_error("expected a scalar that is known, but got one of '" +
                             (value.getDefiningOp() ? value.getDefiningOp()->getName().getStringRef().str() : "") +
                             "'");
  return *known.number;
}

/// The name of what an operation makes of what it gets, by the operation's own attributes; none of what has no name.
uint64_t RingWalk::nameOf(Operation &op) const {
  uint64_t name = llvm::hash_value(op.getName().getStringRef());
  for (const NamedAttribute each : op.getAttrs())
    if (!each.getName().strref().starts_with("simt."))
      name = llvm::hash_combine(name, mlir::hash_value(each.getName()), mlir::hash_value(each.getValue()));
  for (const Value operand : op.getOperands()) {
    const Known known = values.lookup(operand);
    if (!known.number && !known.name)
      return 0;
    name = llvm::hash_combine(name, known.number.value_or(0), known.name);
  }
  return name;
}

/// The name that a transposition of what has a name gets.
uint64_t RingWalk::transposed(uint64_t name, MLIRContext *context) const {
  const OperationName op(tile::TransposeOp::getOperationName(), context);
  const uint64_t made = llvm::hash_combine(llvm::hash_value(op.getStringRef()),
                                           mlir::hash_value(tile::TransposeOp::getPermutationAttrName(op)),
                                           mlir::hash_value(Attribute(DenseI64ArrayAttr::get(context, {1, 0}))));
  return llvm::hash_combine(made, int64_t{0}, name);
}

/// Arithmetic on numbers by the operation's folder; a name for what moves a tile about.
void RingWalk::runOther(Operation &op) {
  if (op.getNumRegions())
    throw std::runtime_error("expected no other regions than loops, but got '" + op.getName().getStringRef().str() +
                             "'");
  SmallVector<Attribute> operands;
  for (const Value operand : op.getOperands())
    if (const Known known = values.lookup(operand); known.number && operand.getType().isIntOrIndex())
      operands.push_back(IntegerAttr::get(operand.getType(), *known.number));
  SmallVector<OpFoldResult> folded;
  const bool isArithmetic = isa<arith::ArithDialect>(op.getDialect()) && operands.size() == op.getNumOperands();
  if (isArithmetic && succeeded(op.fold(operands, folded)))
    for (const auto [result, to] : llvm::zip(op.getResults(), folded)) {
      const auto attribute = llvm::dyn_cast<Attribute>(to);
      if (!attribute)
        values[result] = values.lookup(llvm::cast<Value>(to));
      else if (auto integer = dyn_cast<IntegerAttr>(attribute))
        values[result].number =
            integer.getType().isInteger(1) ? integer.getValue().getZExtValue() : integer.getValue().getSExtValue();
    }
  if (isa<tile::TransposeOp>(op))
    values[op.getResult(0)].name = nameOf(op);
}

// --- Shared memory ---------------------------------------------------------------------------------------------------

void RingWalk::fault(const std::string &text) {
  if (std::ranges::find(walked.faults, text) == walked.faults.end())
    walked.faults.push_back(text);
}

RingWalk::Bytes RingWalk::bytesOf(Value buffer, Value at, Attribute sharedLayout) const {
  auto op = cast<simt::BufferOp>(buffer.getDefiningOp());
  const int64_t begin = static_cast<int64_t>(op.getOffset().value()) + (at ? number(at) : 0);
  const int64_t bytes = sharedLayout ? cast<simt::SharedLayoutAttr>(sharedLayout).getBytes()
                                     : cast<MemRefType>(buffer.getType()).getNumElements();
  return {begin, begin + bytes};
}

/// Something else comes to where the place's bytes are.
void RingWalk::overwrite(const Place &place) {
  for (const Bytes &read : ringReads)
    if (read.meets(place.bytes))
      fault("a slot is filled that other threads may be reading");
  for (const auto &reads : products)
    for (const Bytes &read : reads)
      if (read.meets(place.bytes))
        fault("a slot is filled that a product is reading");
  for (const Place &old : places)
    if (old.bytes.meets(place.bytes) && old.isCopy) {
      if (!old.landed)
        fault("a slot is filled to which a copy is under way");
      else if (!old.wasRead && !old.isZeros)
        fault("a slot is filled before its tile was read");
    }
  std::erase_if(places, [&](const Place &old) { return old.bytes.meets(place.bytes); });
  places.push_back(place);
}

void RingWalk::fetch(Operation &op) {
  auto fetch = cast<simt::FetchOp>(op);
  Place place{.bytes = bytesOf(fetch.getBuffer(), fetch.getAt(), fetch.getSharedLayout()), .isCopy = true};
  if (fetch.getPredicate() && !number(fetch.getPredicate())) {
    place.isZeros = true;
    open.push_back(place.bytes);
    return overwrite(place);
  }
  place.name = llvm::hash_combine(values.lookup(fetch.getView()).name);
  for (const Value offset : fetch.getOffsets())
    place.name = llvm::hash_combine(place.name, number(offset));
  ++walked.copies;
  open.push_back(place.bytes);
  overwrite(place);
}

void RingWalk::wait(int64_t pending, bool shown) {
  while (static_cast<int64_t>(groups.size()) > pending) {
    for (const Bytes &bytes : groups.front())
      for (Place &place : places)
        if (place.bytes == bytes && place.isCopy && !place.landed)
          place.landed = barriers, place.isShown = shown;
    groups.erase(groups.begin());
  }
}

/// The name of what is read from a slot, here and now.
uint64_t RingWalk::readSlot(Bytes bytes, bool byProduct) {
  const auto at = std::ranges::find_if(places, [&](const Place &place) { return place.bytes == bytes; });
  if (at == places.end() || !at->isCopy || at->isZeros)
    fault("a slot is read that holds no tile");
  else if (!at->landed)
    fault("a slot is read for whose copy nobody has waited");
  else if (*at->landed == barriers)
    fault("a slot is read without a barrier behind the wait");
  else if (byProduct && !at->isShown)
    fault("a product reads a slot that it was not shown");
  if (at == places.end())
    return 0;
  at->wasRead = true;
  return at->name;
}

void RingWalk::read(Operation &op) {
  auto read = cast<simt::ReadOp>(op);
  const Bytes bytes = bytesOf(read.getBuffer(), read.getOffset(), read.getSharedLayoutAttr());
  if (read.getSlot()) {
    ringReads.push_back(bytes);
    values[read.getResult()].name = readSlot(bytes, /*byProduct=*/false);
    return;
  }
  const auto at = std::ranges::find_if(places, [&](const Place &place) { return place.bytes == bytes; });
  if (at == places.end())
    return;
  at->wasRead = true;
  values[read.getResult()].name = at->name;
}

void RingWalk::multiply(Operation &op) {
  auto product = cast<simt::MultiplyOp>(op);
  const Bytes left = bytesOf(product.getLeft(), product.getLeftAt(), product.getLeftLayout()),
              right = bytesOf(product.getRight(), product.getRightAt(), product.getRightLayout());
  begin(op, {left, right});
  const auto name = [&](Bytes bytes, bool isTransposed) {
    const uint64_t read = readSlot(bytes, /*byProduct=*/true);
    return isTransposed ? transposed(read, op.getContext()) : read;
  };
  const uint64_t first = name(left, product.getLeftTransposed()), second = name(right, product.getRightTransposed());
  walked.products.emplace_back(first, second);
}

/// Its left operand is in registers.
void RingWalk::multiplyRows(Operation &op) {
  auto product = cast<simt::MultiplyRowsOp>(op);
  const Bytes right = bytesOf(product.getRight(), product.getRightAt(), product.getRightLayout());
  const uint64_t read = readSlot(right, /*byProduct=*/true);
  begin(op, {right});
  walked.products.emplace_back(values.lookup(product.getLeft()).name,
                               product.getRightTransposed() ? transposed(read, op.getContext()) : read);
}

void RingWalk::begin(Operation &product, std::vector<Bytes> reads) {
  products.push_back(std::move(reads));
  values[product.getResult(0)].product = ++begun;
}

/// Threads that have waited for a product know that its slots were read; others do behind a barrier.
void RingWalk::waitForProducts(Operation &op) {
  auto wait = cast<simt::WaitMultiplyOp>(op);
  while (static_cast<int64_t>(products.size()) > static_cast<int64_t>(wait.getPending())) {
    ringReads.insert(ringReads.end(), products.front().begin(), products.front().end());
    products.erase(products.begin());
  }
  for (const auto [acc, result] : llvm::zip_equal(wait.getAcc(), wait.getResults()))
    values[result].product = values.lookup(acc).product;
}

/// Only products and waits may take the accumulator of a product that is pending, and rows may not be one.
void RingWalk::checkOperands(Operation &op) {
  const int64_t complete = begun - static_cast<int64_t>(products.size());
  for (const Value operand : op.getOperands()) {
    const bool mayPend = isa<simt::WaitMultiplyOp, simt::MultiplyOp, scf::ForOp>(op) ||
                         (isa<simt::MultiplyRowsOp>(op) && operand != op.getOperand(0));
    if (!mayPend && values.lookup(operand).product > complete)
      fault("an accumulator is used for which nobody has waited");
  }
}

// --- The walk --------------------------------------------------------------------------------------------------------

void RingWalk::runLoop(Operation &op) {
  auto loop = cast<scf::ForOp>(op);
  SmallVector<Known> carried;
  for (const Value init : loop.getInitArgs())
    carried.push_back(values.lookup(init));
  const int64_t end = number(loop.getUpperBound()), step = number(loop.getStep());
  for (int64_t at = number(loop.getLowerBound()); at < end; at += step) {
    values[loop.getInductionVar()] = {.number = at};
    for (const auto [argument, known] : llvm::zip(loop.getRegionIterArgs(), carried))
      values[argument] = known;
    runBlock(*loop.getBody());
    for (const auto [known, yielded] : llvm::zip(carried, loop.getYieldedValues()))
      known = values.lookup(yielded);
  }
  for (const auto [result, known] : llvm::zip(loop.getResults(), carried))
    values[result] = known;
}

void RingWalk::runOp(Operation &op) {
  checkOperands(op);
  for (const Value result : op.getResults())
    values[result] = {};
  if (isa<scf::ForOp>(op))
    return runLoop(op);
  if (auto choice = dyn_cast<scf::IfOp>(op)) {
    Region &side = number(choice.getCondition()) ? choice.getThenRegion() : choice.getElseRegion();
    if (side.empty())
      return;
    runBlock(side.front());
    for (const auto [result, yielded] : llvm::zip(op.getResults(), side.front().getTerminator()->getOperands()))
      values[result] = values.lookup(yielded);
  } else if (isa<tile::ProgramIdOp>(op)) {
    values[op.getResult(0)].number = 0;
  } else if (isa<tile::NumProgramsOp>(op)) {
    values[op.getResult(0)].number = 1;
  } else if (auto dim = dyn_cast<tile::DimOp>(op)) {
    const auto view = cast<BlockArgument>(dim.getView());
    values[dim.getResult()].number = extent(view.getArgNumber(), static_cast<int64_t>(dim.getAxis()));
  } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
    uint64_t name = llvm::hash_combine(values.lookup(load.getView()).name);
    for (const Value offset : load.getOffsets())
      name = llvm::hash_combine(name, number(offset));
    values[load.getResult()].name = name;
  } else if (isa<simt::ConvertOp, tile::ReshapeOp>(op)) { // the same elements in the same order
    values[op.getResult(0)] = values.lookup(op.getOperand(0));
  } else if (auto dot = dyn_cast<tile::DotOp>(op)) {
    walked.products.emplace_back(values.lookup(dot->getOperand(0)).name, values.lookup(dot->getOperand(1)).name);
  } else if (isa<simt::FetchOp>(op)) {
    fetch(op);
  } else if (isa<simt::ReadOp>(op)) {
    read(op);
  } else if (auto write = dyn_cast<simt::WriteOp>(op)) {
    overwrite({.bytes = bytesOf(write.getBuffer(), {}, write.getSharedLayoutAttr()),
               .name = values.lookup(write.getValue()).name});
  } else if (isa<simt::CommitCopiesOp>(op)) {
    groups.push_back(std::exchange(open, {}));
  } else if (auto copies = dyn_cast<simt::WaitCopiesOp>(op)) {
    wait(static_cast<int64_t>(copies.getPending()), copies.getShown());
  } else if (isa<simt::MultiplyOp>(op)) {
    multiply(op);
  } else if (isa<simt::MultiplyRowsOp>(op)) {
    multiplyRows(op);
  } else if (isa<simt::WaitMultiplyOp>(op)) {
    waitForProducts(op);
  } else if (isa<simt::BarrierOp>(op)) {
    ++barriers;
    ringReads.clear();
  } else {
    runOther(op);
  }
}

void RingWalk::runBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    runOp(op);
}

Walked RingWalk::run(ModuleOp module) {
  auto func = *module.getOps<func::FuncOp>().begin();
  for (const BlockArgument argument : func.getArguments())
    values[argument].name = argument.getArgNumber() + 1;
  runBlock(func.getBody().front());
  if (!open.empty() || std::ranges::any_of(groups, [](const auto &group) { return !group.empty(); }))
    fault("copies are under way at the end");
  if (!products.empty())
    fault("a product is under way at the end");
  if (std::ranges::any_of(places, [](const Place &place) { return place.isCopy && !place.wasRead && !place.isZeros; }))
    fault("a tile is copied that nobody reads");
  return std::move(walked);
}

} // namespace kiln::test
