// Traces a kernel to a module. Bodies of loops and branches must not change host variables. To check this, the kernel
// is traced again in two ways; it is an error if the module changes.
//
//   - Each body runs twice. The module changes if a body reads a variable that it changed (`i++` on an int).
//   - Bodies at one depth of nesting do not run, for each depth. The module changes if code after a body reads a
//     variable that the body changed (`flag = true`).

#include "dialect/dsl/Tracer.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace kiln {

/// Reports unless the facts match the kernel's parameters.
static bool checkKernel(MLIRContext &context, const Kernel &kernel, const Specialisation &facts) {
  Location loc = FileLineColLoc::get(&context, kernel.loc.file, kernel.loc.line, 1);
  auto expected = [&] { return std::move(emitError(loc) << "kernel '" << kernel.name << "': expected "); };
  if (kernel.isVariadic()) {
    expected() << "a form of it for certain numbers of views, which expanded() makes";
    return false;
  }
  if (facts.args.size() != kernel.parameters.size()) {
    expected() << kernel.parameters.size() << " arguments, but got " << facts.args.size();
    return false;
  }
  return llvm::all_of(llvm::enumerate(facts.args), [&](auto numbered) {
    auto [i, arg] = numbered;
    bool isView = kernel.parameters[i].isView();
    if (arg.isView != isView) {
      expected() << kernel.called(i) << " to be " << (isView ? "a tensor" : "a scalar") << ", but got "
                 << (isView ? "a scalar" : "a tensor");
      return false;
    }
    bool ranked = !isView || (!arg.extents.empty() && arg.extents.size() <= 5);
    if (!ranked)
      expected() << kernel.called(i) << " to be of rank 1 to 5, but got rank " << arg.extents.size();
    return ranked;
  });
}

/// Compares two traces of a kernel, operation by operation. Skipped bodies are not compared.
class Comparison {
public:
  /// The first operation of `a` that differs from its partner in `b`; null when all agree.
  Operation *differing(Operation *a, Operation *b) {
    if (a->getName() != b->getName() || a->getNumOperands() != b->getNumOperands() ||
        a->getNumRegions() != b->getNumRegions() || a->getResultTypes() != b->getResultTypes() ||
        a->getRawDictionaryAttrs() != b->getRawDictionaryAttrs() ||
        !a->getName().compareOpProperties(a->getPropertiesStorage(), b->getPropertiesStorage()))
      return a;
    for (auto [x, y] : llvm::zip(a->getOperands(), b->getOperands()))
      if (partner.lookup(x) != y)
        return a;
    if (!llvm::all_of(b->getRegions(), [](Region &region) { return region.empty(); }))
      for (auto [x, y] : llvm::zip(a->getRegions(), b->getRegions()))
        if (Operation *found = differing(x, y, a))
          return found;
    for (auto [x, y] : llvm::zip(a->getResults(), b->getResults()))
      partner[x] = y;
    return nullptr;
  }

private:
  Operation *differing(Region &a, Region &b, Operation *parent) {
    if (a.empty() || b.empty())
      return a.empty() == b.empty() ? nullptr : parent;
    if (a.front().getArgumentTypes() != b.front().getArgumentTypes())
      return parent;
    for (auto [x, y] : llvm::zip(a.getArguments(), b.getArguments()))
      partner[x] = y;
    auto second = b.front().begin();
    for (Operation &first : a.front()) {
      if (second == b.front().end())
        return &first;
      if (Operation *found = differing(&first, &*second++))
        return found;
    }
    return second == b.front().end() ? nullptr : parent;
  }

  DenseMap<mlir::Value, mlir::Value> partner;
};

/// Traces the kernel in another way, and reports if the module differs; `how` names that way in the message.
static bool checkTrace(Tracer &tracer, const std::string &config, ModuleOp first, const char *how) {
  MLIRContext &context = *first.getContext();
  std::optional<Location> different;
  Operation *body = nullptr;
  {
    ScopedDiagnosticHandler silence(&context, [&](Diagnostic &diagnostic) {
      if (!different)
        different = diagnostic.getLocation();
      return success();
    });
    if (tracer.run(config))
      if (Operation *found = Comparison().differing(first, *tracer.module)) {
        different = found->getLoc();
        body = found->getParentOfType<func::FuncOp>() == found->getParentOp() ? nullptr : found->getParentOp();
      }
  }
  if (!different)
    return true;
  auto diagnostic = emitError(*different);
  diagnostic
      << "a C++ variable changes in the body of a traced loop or branch: this line differs when the body is " << how
      << "; use a Tile for a value that changes while the kernel runs, with an initial value before the loop or branch";
  if (body)
    diagnostic.attachNote(body->getLoc()) << "in the body of this loop or branch";
  return false;
}

/// Reports if a body depends on a host variable that it changes, or if code after a body depends on one.
static bool checkRepeatable(MLIRContext &context, const Kernel &kernel, const Specialisation &facts,
                            const std::string &config, ModuleOp first, const Outcomes &outcomes) {
  {
    Tracer second(context, kernel, facts, {.twice = true});
    if (!checkTrace(second, config, first, "traced again"))
      return false;
  }
  for (size_t depth = 0; depth < outcomes.size(); ++depth) {
    Tracer without(context, kernel, facts, {.withoutThose = &outcomes, .depth = depth});
    if (!checkTrace(without, config, first, "left out"))
      return false;
  }
  return true;
}

/// Sets the arguments that a kernel uses, reads and writes. Removes from `tile.disjoint` the pairs without a written
/// argument.
static void collectAccessed(func::FuncOp function, Traced &traced) {
  for (const BlockArgument argument : function.getArguments())
    if (!argument.use_empty())
      traced.used.insert(static_cast<int>(argument.getArgNumber()));
  function.walk([&](tile::AccessOp access) {
    const auto view = dyn_cast<BlockArgument>(access.getView());
    if (view && access.readsView())
      traced.read.insert(static_cast<int>(view.getArgNumber()));
    if (view && access.writesView())
      traced.written.insert(static_cast<int>(view.getArgNumber()));
  });
  if (const auto pairs = function->getAttrOfType<ArrayAttr>("tile.disjoint")) {
    const auto kept = llvm::filter_to_vector(pairs.getValue(), [&](Attribute pair) {
      return llvm::any_of(cast<DenseI64ArrayAttr>(pair).asArrayRef(),
                          [&](int64_t argument) { return traced.written.count(static_cast<int>(argument)) > 0; });
    });
    kept.empty() ? void(function->removeAttr("tile.disjoint"))
                 : function->setAttr("tile.disjoint", ArrayAttr::get(function.getContext(), kept));
  }
}

/// Makes an extent of an argument static.
static void makeStatic(func::FuncOp function, std::pair<int, int> extent, int64_t number) {
  BlockArgument argument = function.getArgument(extent.first);
  const auto view = cast<MemRefType>(argument.getType());
  SmallVector<int64_t> shape(view.getShape());
  shape[extent.second] = number;
  argument.setType(MemRefType::get(shape, view.getElementType(), view.getLayout()));
}

/// Of extents that are equal, makes all static if one is. Others are written on the function. Arguments that the kernel
/// does not use are left out: launches pass any view in their place.
static void relateExtents(func::FuncOp function, const Specialisation &facts, Traced &traced) {
  const auto isUsed = [&](const std::pair<int, int> &extent) { return traced.used.count(extent.first) > 0; };
  SmallVector<Attribute> groups;
  for (const Kernel::NamedExtent &extents : facts.equalExtents) {
    Kernel::NamedExtent used;
    llvm::copy_if(extents, std::back_inserter(used), isUsed);
    if (!isUsed(extents.front()) || used.size() < 2)
      continue;
    SmallVector<int64_t> numbers;
    const bool isStatic =
        llvm::any_of(used, [&](const auto &extent) { return traced.staticExtents.count(extent) > 0; });
    for (const std::pair<int, int> &extent : used) {
      numbers.append({extent.first, extent.second});
      if (isStatic && traced.staticExtents.insert(extent).second)
        makeStatic(function, extent, facts.args[extent.first].extents[extent.second]);
    }
    if (isStatic)
      continue;
    groups.push_back(DenseI64ArrayAttr::get(function.getContext(), numbers));
    traced.equalExtents.push_back(std::move(used));
  }
  function.setFunctionType(FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(), {}));
  if (!groups.empty())
    function->setAttr("tile.equal_extents", ArrayAttr::get(function.getContext(), groups));
}

/// Whether a launch of the kernel can be noticed: it writes memory, prints or asserts.
static bool hasEffect(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        auto access = dyn_cast<tile::AccessOp>(op);
        return (access && access.writesView()) || isa<tile::PrintOp, tile::CheckOp>(op) ? WalkResult::interrupt()
                                                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a number is a sum or product with a program's number times a constant above 1, such as
/// `program_id(0) * 1024`.
static bool isOfBlocks(mlir::Value number) {
  Operation *op = number.getDefiningOp();
  if (!op || !isa<arith::AddIOp, arith::MulIOp, arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return false;
  APInt factor;
  if (isa<arith::MulIOp>(op) && matchPattern(op->getOperand(1), m_ConstantInt(&factor)) && factor.sgt(1))
    return llvm::any_of(op->getOperands(), [](mlir::Value each) { return each.getDefiningOp<tile::ProgramIdOp>(); });
  return llvm::any_of(op->getOperands(), isOfBlocks);
}

/// A load of one element at the begin of a program's block, in a kernel whose tiles all have one element, without a
/// loop. Nearly every element is then never read: the load lacks its shape. Null if there is none.
static tile::LoadOp loadWithoutShape(ModuleOp module) {
  tile::LoadOp found;
  const WalkResult walked = module.walk([&](Operation *op) {
    if (isa<LoopLikeOpInterface>(op) || llvm::any_of(op->getResultTypes(), [](mlir::Type type) {
          const auto tile = dyn_cast<RankedTensorType>(type);
          return tile && tile.getNumElements() > 1;
        }))
      return WalkResult::interrupt();
    if (auto load = dyn_cast<tile::LoadOp>(op); load && !found && llvm::any_of(load.getOffsets(), isOfBlocks))
      found = load;
    return WalkResult::advance();
  });
  return walked.wasInterrupted() ? tile::LoadOp() : found;
}

Traced trace(MLIRContext &context, const Kernel &kernel, const Specialisation &facts, const std::string &config,
             bool verifies) {
  Traced traced;
  if (Tracer *outer = Tracer::active()) {
    auto diagnostic = outer->error(kernel.loc);
    diagnostic << "expected no trace within a trace, but kernel '" << kernel.name << "' was traced in kernel '"
               << outer->kernel.name << "'; call its function instead";
    diagnostic.attachNote(outer->at(outer->kernel.loc)) << "the outer kernel is registered here";
    return traced;
  }
  if (!checkKernel(context, kernel, facts))
    return traced;
  Outcomes outcomes;
  {
    Tracer tracer(context, kernel, facts, {});
    if (!tracer.run(config))
      return traced;
    traced.staticExtents = tracer.staticExtents;
    traced.module = std::move(tracer.module);
    outcomes = std::move(tracer.outcomes);
  }
  if (!checkRepeatable(context, kernel, facts, config, *traced.module, outcomes) ||
      (verifies && failed(verify(*traced.module))))
    traced.module = {};
  if (traced.module) {
    func::FuncOp function = *traced.module->getOps<func::FuncOp>().begin();
    collectAccessed(function, traced);
    relateExtents(function, facts, traced);
  }
  if (traced.module && !hasEffect(*traced.module))
    emitWarning(FileLineColLoc::get(&context, kernel.loc.file, kernel.loc.line, 1))
        << "kernel '" << kernel.name << "' has no effect: it stores nothing, prints nothing and asserts nothing";
  if (tile::LoadOp load = traced.module ? loadWithoutShape(*traced.module) : tile::LoadOp())
    emitWarning(load.getLoc())
        << "'load' without a shape loads one element, and kernel '" << kernel.name
        << "' has neither a larger tile nor a loop; for a block, give its shape: load(x, {n}, {64})";
  return traced;
}

} // namespace kiln
