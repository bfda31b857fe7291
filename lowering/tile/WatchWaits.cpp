// Notifies the CPU runtime when a program waits for another one, and ends waits that would never end.
//
//     for (Tile n : repeat_while([&] { return atomic_load(flag, {0}) == 0; })) {}
//     // calls kiln_waits() at the end of each iteration
//
// Enclosing while loops call it, too, so that they end with the wait.

#include "lowering/Abi.h"
#include "lowering/Passes.h"
#include "lowering/tile/Console.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_WATCHWAITS
#include "lowering/Passes.h.inc"

/// Whether `value` is computed in `body` only from values defined outside.
static bool isIndependent(Value value, Block *body) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() != body;
  Operation *const op = value.getDefiningOp();
  return op->getBlock() != body ||
         llvm::all_of(op->getOperands(), [&](Value operand) { return isIndependent(operand, body); });
}

/// The operand of the loop's yield that is the condition of the next iteration; null if there is none.
static OpOperand *conditionOf(scf::WhileOp loop) {
  const auto carried = dyn_cast<BlockArgument>(loop.getConditionOp().getCondition());
  if (!carried || carried.getOwner() != &loop.getBefore().front())
    return nullptr;
  return &loop.getYieldOp()->getOpOperand(carried.getArgNumber());
}

/// Whether the loop only waits: it reads memory by atomic loads, changes nothing, and its condition does not depend on
/// carried values.
static bool onlyWaits(scf::WhileOp loop) {
  Block *const body = &loop.getAfter().front();
  const auto reads = [](Operation &op) { return isa<tile::AtomicLoadOp>(op); };
  const auto isHarmless = [&](Operation &op) {
    return reads(op) || isa<tile::AssumeOp, tile::CheckOp>(op) || (isPure(&op) && op.getNumRegions() == 0);
  };
  OpOperand *const again = conditionOf(loop);
  return again && llvm::any_of(*body, reads) && llvm::all_of(body->without_terminator(), isHarmless) &&
         isIndependent(again->get(), body);
}

namespace {
struct WatchWaits : impl::WatchWaitsBase<WatchWaits> {
  using WatchWaitsBase::WatchWaitsBase;

  void runOnOperation() override {
    SmallVector<scf::WhileOp> waits;
    llvm::SetVector<scf::WhileOp> around;
    getOperation().walk([&](scf::WhileOp loop) {
      if (!onlyWaits(loop))
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
    const Value waits = isWait ? arith::ExtUIOp::create(b, loc, i64, again->get()) : zero;
    const Value arguments[] = {textAddress(b, loc, symbols.text(whereOf(loc))), emitLinearProgram(b, loc), waits};
    const Value never = func::CallOp::create(b, loc, abi::waits, TypeRange{i64}, arguments).getResult(0);
    const Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, never, zero);
    again->set(arith::AndIOp::create(b, loc, again->get(), goesOn));
  }
};
} // namespace

} // namespace kiln::lowering
