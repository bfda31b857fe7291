// Follows loaded integers through a traced kernel.

#include "tools/kilnc/Trace.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"

namespace kiln::tools {

using namespace mlir;
using Kind = IntegerUse::Kind;

/// The argument of the kernel that a view is; −1 for none.
static int argumentOf(Value view) {
  const auto argument = dyn_cast<BlockArgument>(view);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp()) ? static_cast<int>(argument.getArgNumber())
                                                                           : -1;
}

namespace {
/// Follows the values of one view.
class Follower {
public:
  Follower(const std::vector<ArgFacts> &args, int self) : args(args), self(self) {}
  /// Follows a value. `isWhole`: it is the loaded value, at most moved or converted.
  void follow(Value value, bool isWhole);

  void note(Kind kind) { use.kind = std::max(use.kind, kind); }

  IntegerUse use;

private:
  void visit(OpOperand &operand, bool isWhole);
  void noteIndex(tile::AccessOp access, int64_t axis);
  void noteIndex(int64_t extent) {
    use.bound = std::min(use.bound.value_or(extent), extent);
    note(Kind::index);
  }
  void followAlong(Operation *op, bool isWhole) {
    for (const Value result : op->getResults())
      follow(result, isWhole);
  }

  const std::vector<ArgFacts> &args;
  const int self;                             // the view's argument
  llvm::DenseSet<std::pair<Value, int>> seen; // with isWhole
};
} // namespace

void Follower::follow(Value value, bool isWhole) {
  if (!seen.insert({value, isWhole ? 1 : 0}).second)
    return;
  note(Kind::data);
  for (OpOperand &operand : value.getUses())
    visit(operand, isWhole);
}

/// Notes a position along a dimension of a view.
void Follower::noteIndex(tile::AccessOp access, int64_t axis) {
  const int argument = argumentOf(access.getView());
  if (argument < 0)
    return note(Kind::unknown);
  noteIndex(args[static_cast<size_t>(argument)].extents[static_cast<size_t>(axis)]);
}

/// Whether operations of this kind compute a value from others and decide nothing else.
static bool computes(Operation *op) { return op->getNumRegions() == 0 && isPure(op); }

void Follower::visit(OpOperand &operand, bool isWhole) {
  Operation *const op = operand.getOwner();
  if (auto access = dyn_cast<tile::AccessOp>(op)) {
    const OperandRange subscripts = access.getSubscripts();
    const unsigned number = operand.getOperandNumber(), first = subscripts.getBeginOperandIndex();
    if (number >= first && number < first + subscripts.size())
      return isWhole ? noteIndex(access, number - first) : note(Kind::unknown);
    // A stored value or a mask decides values, unless the kernel reads it again.
    const bool isRead = llvm::any_of(access.getView().getUsers(), [](Operation *user) {
      auto other = dyn_cast<tile::AccessOp>(user);
      return other && other.readsView();
    });
    return note(!access.writesView() || !isRead        ? Kind::data
                : argumentOf(access.getView()) == self ? Kind::counter
                                                       : Kind::unknown);
  }
  // Other numbers are legal, and stand for no element and no bin.
  if (auto take = dyn_cast<tile::TakeOp>(op); take && isWhole && operand.get() == take.getIndex())
    noteIndex(take.getSource().getType().getDimSize(static_cast<unsigned>(take.getAxis())));
  if (auto histogram = dyn_cast<tile::HistogramOp>(op); histogram && isWhole && operand.get() == histogram.getSource())
    noteIndex(histogram.getType().getDimSize(0));
  const bool keeps = isa<tile::MoveOp>(op) || isa<tile::CastOp>(op);
  if (keeps || computes(op))
    return followAlong(op, isWhole && keeps);
  if (isa<scf::IfOp, tile::PrintOp>(op))
    return note(Kind::data);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    const int64_t carried = static_cast<int64_t>(operand.getOperandNumber()) - loop.getNumControlOperands();
    if (carried < 0)
      return note(Kind::unknown);
    follow(loop.getRegionIterArgs()[static_cast<size_t>(carried)], isWhole);
    return follow(loop.getResult(static_cast<unsigned>(carried)), isWhole);
  }
  if (isa<scf::YieldOp>(op)) {
    Operation *const parent = op->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      follow(loop.getRegionIterArgs()[operand.getOperandNumber()], isWhole);
    else if (!isa<scf::IfOp>(parent))
      return note(Kind::unknown);
    return follow(parent->getResult(operand.getOperandNumber()), isWhole);
  }
  note(Kind::unknown);
}

std::optional<std::vector<IntegerUse>> integerUses(const Kernel &kernel, const std::vector<ArgFacts> &args,
                                                   const std::string &config) {
  const std::unique_ptr<MLIRContext> context = createContext();
  const lowering::ErrorCollector errors(context.get());
  Specialisation facts;
  facts.args = args;
  const Traced traced = trace(*context, kernel, facts, config);
  if (!traced.module)
    return {};
  std::vector<Follower> followers;
  for (size_t i = 0; i < args.size(); ++i)
    followers.emplace_back(args, static_cast<int>(i));
  traced.module.get()->walk([&](tile::AccessOp access) {
    const int argument = argumentOf(access.getView());
    if (argument < 0 || !access.readsView() || isFloat(args[static_cast<size_t>(argument)].type))
      return;
    Follower &follower = followers[static_cast<size_t>(argument)];
    if (access.isAtomic())
      follower.note(Kind::counter);
    for (const Value result : access->getResults())
      follower.follow(result, true);
  });
  std::vector<IntegerUse> uses;
  for (const Follower &follower : followers)
    uses.push_back(follower.use);
  return uses;
}

} // namespace kiln::tools
