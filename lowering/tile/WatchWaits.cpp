// Detects deadlocks on a CPU: a loop that waits for another program calls the runtime, which ends the wait if no
// program can make progress.
//
//     for (Tile n : repeat_while([&] { return atomic_load(flag, {0}) == 0; })) {}
//     // calls kiln_waits() at the end of each iteration
//
// An iteration that takes no lock, such as atomic_compare_exchange(lock, {0}, 0, 1) of a lock that is 1, changes
// nothing and waits, too. Whether atomics have changed memory is known from the old values that they return.
//
// Enclosing while loops call it, too, so that they end with the wait.

#include "lowering/Abi.h"
#include "lowering/Passes.h"
#include "lowering/tile/Atomics.h"
#include "lowering/tile/Console.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_WATCHWAITS
#include "lowering/Passes.h.inc"

/// Whether the values are computed in `body` only from values defined outside and from memory.
static bool areIndependent(ValueRange values, Block *body) {
  SmallVector<Value> left(values);
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!left.empty()) {
    const Value value = left.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == body)
        return false;
    } else if (Operation *const op = value.getDefiningOp(); op->getBlock() == body && seen.insert(op).second) {
      llvm::append_range(left, op->getOperands());
    }
  }
  return true;
}

/// The operand of the loop's yield that is the condition of the next iteration; null if there is none.
static OpOperand *conditionOf(scf::WhileOp loop) {
  const auto carried = dyn_cast<BlockArgument>(loop.getConditionOp().getCondition());
  if (!carried || carried.getOwner() != &loop.getBefore().front())
    return nullptr;
  return &loop.getYieldOp()->getOpOperand(carried.getArgNumber());
}

/// Whether `op` is an atomic whose old values show whether it has changed memory.
static bool isReadingAtomic(Operation &op) {
  if (auto update = dyn_cast<tile::AtomicRmwOp>(op))
    return update.getKind() == tile::AtomicKind::Exchange || update.getType().getElementType().isInteger();
  return isa<tile::AtomicLoadOp, tile::AtomicCasOp>(op);
}

/// Whether an iteration that changes no memory only waits. It does if it reads memory by atomics, and if neither its
/// condition nor the values that its atomics may write depend on carried values.
static bool mayWait(scf::WhileOp loop) {
  Block *const body = &loop.getAfter().front();
  const auto isHarmless = [&](Operation &op) {
    if (isReadingAtomic(op))
      return isa<tile::AtomicLoadOp>(op) || areIndependent(op.getOperands(), body);
    return isa<tile::AssumeOp, tile::CheckOp>(op) || (isPure(&op) && op.getNumRegions() == 0);
  };
  OpOperand *const again = conditionOf(loop);
  return again && llvm::any_of(*body, isReadingAtomic) && llvm::all_of(body->without_terminator(), isHarmless) &&
         areIndependent(again->get(), body);
}

/// Whether an atomic has left all elements as they were, i1.
static Value emitUnchanged(OpBuilder &b, Location loc, tile::AccessOp atomic) {
  Value bits = emitChangedBits(b, loc, atomic);
  const auto type = cast<RankedTensorType>(bits.getType());
  const Type element = type.getElementType(), row = RankedTensorType::get({type.getNumElements()}, element);
  if (type.getNumElements() > 1)
    bits = tile::ReduceOp::create(b, loc, element, tile::ReduceKind::Or,
                                  type == row ? bits : tile::ReshapeOp::create(b, loc, row, bits).getResult(), 0);
  else
    bits = tile::ReshapeOp::create(b, loc, element, bits);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, bits,
                               arith::ConstantIntOp::create(b, loc, element, 0));
}

namespace {
struct WatchWaits : impl::WatchWaitsBase<WatchWaits> {
  using WatchWaitsBase::WatchWaitsBase;

  void runOnOperation() override {
    SmallVector<scf::WhileOp> waits;
    llvm::SetVector<scf::WhileOp> around;
    getOperation().walk([&](scf::WhileOp loop) {
      if (!mayWait(loop))
        return;
      waits.push_back(loop);
      for (auto outer = loop->getParentOfType<scf::WhileOp>(); outer; outer = outer->getParentOfType<scf::WhileOp>())
        around.insert(outer);
    });
    for (scf::WhileOp loop : waits)
      watch(loop, /*isWait=*/true);
    for (scf::WhileOp loop : around)
      watch(loop, /*isWait=*/false);
  }

  /// Whether the iteration has changed nothing and another one follows.
  static Value emitWaits(OpBuilder &b, scf::WhileOp loop, Value again) {
    for (Operation &op : loop.getAfter().front())
      if (isa<tile::AtomicRmwOp, tile::AtomicCasOp>(op))
        again =
            arith::AndIOp::create(b, loop.getLoc(), again, emitUnchanged(b, loop.getLoc(), cast<tile::AccessOp>(op)));
    return again;
  }

  void watch(scf::WhileOp loop, bool isWait) {
    OpOperand *const again = conditionOf(loop);
    if (!again)
      return;
    ConsoleSymbols symbols(getOperation());
    const Type pointer = LLVM::LLVMPointerType::get(&getContext()), i64 = IntegerType::get(&getContext(), 64);
    symbols.declare(abi::waits, {pointer, i64, i64}, i64);
    OpBuilder b(loop.getYieldOp());
    const Location loc = loop.getLoc();
    const Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
    const Value waits = isWait ? arith::ExtUIOp::create(b, loc, i64, emitWaits(b, loop, again->get())) : zero;
    const Value arguments[] = {textAddress(b, loc, symbols.text(innermostLine(loc))), emitLinearProgram(b, loc), waits};
    const Value never = func::CallOp::create(b, loc, abi::waits, TypeRange{i64}, arguments).getResult(0);
    const Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, never, zero);
    again->set(arith::AndIOp::create(b, loc, again->get(), goesOn));
  }
};
} // namespace

} // namespace kiln::lowering
