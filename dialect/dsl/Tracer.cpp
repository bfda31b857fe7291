// Cells, errors and the traced function itself.

#include "dialect/dsl/Tracer.h"

#include "dialect/dsl/Expansion.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

static thread_local Tracer *activeTracer = nullptr;
static constexpr size_t unlisted = SIZE_MAX;
static char poisonMark; // its address marks a poisoned cell

/// Limits of a kernel: far above sizes that compile quickly, and a fraction of the smallest usual stack.
static constexpr int64_t maxCalls = 1 << 14, maxStack = 2 << 20;

// --- Tile: a registered cell -----------------------------------------------------------------------------------------

Tile::Tile(Loc loc) : declared(loc), cell(unlisted) {
  if (activeTracer)
    activeTracer->enlist(*this);
}

Tile::Tile(const Tile &other) : value(other.value), declared(other.declared), cell(unlisted) {
  if (activeTracer)
    activeTracer->enlist(*this);
}

Tile &Tile::operator=(const Tile &other) {
  value = other.value;
  return *this;
}

Tile &Tile::operator=(Tile &&other) {
  const mlir::Value number = activeTracer ? activeTracer->numberLike(*this, other) : mlir::Value();
  value = number ? number.getAsOpaquePointer() : other.value;
  return *this;
}

Tile::~Tile() {
  if (activeTracer && cell != unlisted)
    activeTracer->dismiss(*this);
}

/// A tile's value for a query by the host at `loc`. Without a value, tracing cannot continue.
static mlir::Value askedValue(const Tile &tile, Loc loc) {
  mlir::Value value = Tracer::current().read(tile, loc);
  if (!value)
    throw Abandoned();
  return value;
}

kiln::Type Tile::type(Loc loc) const { return elementOf(askedValue(*this, loc)); }
Shape Tile::shape(Loc loc) const { return shapeOf(askedValue(*this, loc)); }

int64_t Tile::extent(int axis, Loc loc) const {
  Shape extents = shape(loc);
  int rank = static_cast<int>(extents.size());
  if (axis >= -rank && axis < rank)
    return extents[axis < 0 ? axis + rank : axis];
  Call("extent", loc).expected() << "an axis of a tile of shape " << textOf(extents) << ", but got " << axis;
  throw Abandoned();
}

void Tile::hold(const At &number) {
  Call call("Tile", number.loc);
  auto literal = *Tracer::literalOf(number);
  const kiln::Type type = literal.isFloating ? f32 : literal.isBoolean ? boolean : i64;
  *this = call.result(call.constant(literal, type, {}));
  call.tracer.noteNumber(Tracer::held(*this), literal);
}

mlir::Value Tracer::numberLike(const Tile &to, const Tile &from) {
  const mlir::Value now = held(to), next = held(from);
  const auto number = numbers.find(next);
  if (!now || !next || number == numbers.end() || !kiln::shapeOf(now).empty())
    return {};
  const Literal literal = number->second;
  const kiln::Type type = elementOf(now);
  const bool isOfKind = literal.isBoolean ? type == boolean : literal.isFloating ? isFloat(type) : type != boolean;
  if (!isOfKind || type == elementOf(next))
    return {};
  return Call("Tile", from.declared).constant(literal, type, {});
}

void Tracer::enlist(Tile &tile) {
  tile.cell = cells.size();
  cells.push_back(&tile);
}

void Tracer::dismiss(Tile &tile) {
  for (Frame &frame : frames)
    if (tile.cell < frame.cells.size() && frame.cells[tile.cell].tile == &tile) {
      frame.cells[tile.cell].tile = nullptr;
      frame.destroyed.push_back(tile.declared);
    }
  cells[tile.cell] = nullptr;
  while (!cells.empty() && !cells.back())
    cells.pop_back();
}

Tile Tracer::make(mlir::Value value, Loc loc) {
  Tile tile(loc);
  tile.value = value ? value.getAsOpaquePointer() : &poisonMark;
  return tile;
}

mlir::Value Tracer::held(const Tile &tile) {
  return tile.value && tile.value != &poisonMark ? mlir::Value::getFromOpaquePointer(tile.value) : mlir::Value();
}

kiln::Type Tracer::elementOf(mlir::Value value) const {
  const auto type = static_cast<kiln::Type>(*tile::typeNumber(getElementTypeOrSelf(value.getType())));
  const auto other = otherTypes.find(value);
  return other == otherTypes.end() ? type : other->second;
}

void Tracer::noteResults(Operation *op) {
  if (otherTypes.empty())
    return;
  for (mlir::Value operand : op->getOperands())
    if (const auto other = otherTypes.find(operand); other != otherTypes.end()) {
      const kiln::Type type = other->second;
      for (mlir::Value result : op->getResults())
        if (getElementTypeOrSelf(result.getType()) == getElementTypeOrSelf(operand.getType()))
          otherTypes[result] = type;
    }
}

void Tracer::rebind(Tile &tile, mlir::Value value) { tile.value = value.getAsOpaquePointer(); }

mlir::Value Tracer::read(const Tile &tile, Loc loc) {
  if (tile.value == &poisonMark)
    return {};
  mlir::Value value = held(tile);
  if (!value) {
    error(loc) << "a tile is used before it is assigned";
    return {};
  }
  if (!isOpen(value.getParentBlock())) {
    auto diagnostic = error(loc) << "a tile is used outside the loop or branch body that computed it; declare "
                                    "and initialise it before the body";
    diagnostic.attachNote(value.getLoc()) << "computed here";
    return {};
  }
  return value;
}

std::optional<Literal> Tracer::literalOf(const At &operand) {
  if (operand.tile)
    return {};
  Literal literal;
  literal.isFloating = operand.kind == At::Kind::floating;
  literal.isBoolean = operand.kind == At::Kind::boolean;
  literal.isHuge = operand.isHuge;
  literal.integer = operand.integer;
  literal.real = operand.real;
  return literal;
}

const Effects *Tracer::effectsOf(const At &operand) const {
  if (!operand.isTemporary)
    return nullptr;
  const auto found = effects.find(held(*operand.tile));
  return found == effects.end() ? nullptr : &found->second;
}

void Tracer::replaceInCells(const DenseMap<mlir::Value, mlir::Value> &map) {
  for (Tile *tile : cells)
    if (tile)
      if (mlir::Value value = held(*tile))
        if (auto found = map.find(value); found != map.end())
          rebind(*tile, found->second);
}

// --- Errors ----------------------------------------------------------------------------------------------------------

Location Tracer::at(Loc loc) {
  StringAttr &file = files[loc.file];
  if (!file)
    file = builder.getStringAttr(loc.file);
  return FileLineColLoc::get(file, loc.line, 1);
}

/// An address in the caller's frame. Stacks grow downwards.
static const char *stackHere() { return static_cast<const char *>(__builtin_frame_address(0)); }

void Tracer::countCall(Loc loc) {
  calls += rehearsals == 0;
  if (calls > maxCalls)
    error(loc) << "kernel '" << kernel.name << "' has more than " << maxCalls
               << " operations: use range() in place of host loops, which unroll";
  else if (stack - stackHere() > maxStack)
    error(loc) << "kernel '" << kernel.name << "' calls its functions more than " << maxStack
               << " bytes of stack deep: end the recursion by a host condition";
  else
    return;
  throw Abandoned();
}

InFlightDiagnostic Tracer::error(Loc loc) {
  failed = true;
  return emitError(at(loc));
}

// --- The function ----------------------------------------------------------------------------------------------------

Tracer *Tracer::active() { return activeTracer; }

Tracer &Tracer::current() {
  if (!activeTracer)
    throw Error("expected the tile language to be used in a kernel that is being traced");
  return *activeTracer;
}

Tracer::Tracer(MLIRContext &context, const Kernel &kernel, const Specialisation &facts, Bodies bodies)
    : kernel(kernel), bodies(bodies), builder(&context), facts(facts) {
  activeTracer = this;
  buildFunction();
}

Tracer::~Tracer() {
  discard(0);
  releaseCells();
  activeTracer = nullptr;
  for (Block *block : graveyard)
    block->dropAllReferences();
  for (Block *block : graveyard) {
    block->dropAllDefinedValueUses();
    delete block;
  }
}

/// Cells that outlive the trace (statics, leaks) become unset.
void Tracer::releaseCells() {
  for (Tile *tile : cells)
    if (tile) {
      tile->value = nullptr;
      tile->cell = unlisted;
    }
  cells.clear();
}

mlir::Type Tracer::argumentType(size_t index) const {
  const ArgFacts &arg = facts.args[index];
  MLIRContext *context = builder.getContext();
  if (!arg.isView)
    return typeOf(context, arg.type);
  size_t rank = arg.extents.size();
  SmallVector<int64_t> extents(rank, ShapedType::kDynamic), strides(rank, ShapedType::kDynamic);
  for (size_t axis = 0; axis < rank; ++axis)
    if (staticExtents.count({static_cast<int>(index), static_cast<int>(axis)}))
      extents[axis] = arg.extents[axis];
  if (arg.innerStride != 0)
    strides.back() = arg.innerStride;
  mlir::Type element = typeOf(context, arg.type == boolean ? i8 : arg.type);
  return MemRefType::get(extents, element, StridedLayoutAttr::get(context, 0, strides));
}

void Tracer::buildFunction() {
  Location loc = at(kernel.loc);
  module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<mlir::Type> types;
  for (size_t i = 0; i < facts.args.size(); ++i)
    types.push_back(argumentType(i));
  function = func::FuncOp::create(builder, loc, kernel.name, builder.getFunctionType(types, {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  for (auto [argument, parameter] : llvm::zip(function.getArguments(), kernel.parameters))
    if (!parameter.name.empty()) // printed as %a; not part of cache keys
      argument.setLoc(NameLoc::get(builder.getStringAttr(identifierOf(parameter.name)), loc));
}

/// Extents read by View::extent become part of the argument types; operations on a view follow their operand.
void Tracer::finishFunction(const std::string &config) {
  func::ReturnOp::create(builder, at(kernel.loc));
  SmallVector<mlir::Type> types;
  for (size_t i = 0; i < facts.args.size(); ++i) {
    types.push_back(argumentType(i));
    function.getArgument(i).setType(types.back());
  }
  function.setFunctionType(builder.getFunctionType(types, {}));
  attachFacts(config);
}

/// The value of an integer config field, if there is one of that name.
static std::optional<int64_t> integerField(const Kernel &kernel, StringRef config, StringRef name) {
  if (llvm::none_of(kernel.fields, [&](const Field &field) { return field.name == name; }))
    return {};
  for (StringRef entry : llvm::split(config, ',')) {
    int64_t value = 0;
    if (entry.consume_front(name) && entry.consume_front("=") && !entry.getAsInteger(10, value))
      return value;
  }
  return {};
}

void Tracer::attachFacts(const std::string &config) {
  function->setAttr("tile.kernel", builder.getUnitAttr());
  const auto attach = [&](bool isRead, StringRef name, StringRef attribute) {
    if (auto value = integerField(kernel, config, name); value && isRead && *value != 0)
      function->setAttr(attribute, builder.getI64IntegerAttr(*value));
  };
  attach(facts.warps, "warps", "tile.warps");
  attach(facts.warps, "min_ctas_per_sm", "tile.programs");
  attach(facts.stages, "stages", "tile.stages");
  if (facts.problems > 1)
    function->setAttr("tile.problems", builder.getI64IntegerAttr(facts.problems));
  for (auto [i, arg] : llvm::enumerate(facts.args)) {
    if (!arg.isView)
      continue;
    if (arg.alignment > 1)
      function.setArgAttr(i, "tile.align", builder.getI64IntegerAttr(arg.alignment));
    if (arg.stridesBy16)
      function.setArgAttr(i, "tile.strides_by_16", builder.getUnitAttr());
    if (arg.extentBy16)
      function.setArgAttr(i, "tile.extent_by_16", builder.getUnitAttr());
    if (arg.fits32)
      function.setArgAttr(i, "tile.fits_32", builder.getUnitAttr());
  }
  SmallVector<Attribute> pairs;
  for (auto [i, j] : facts.disjoint)
    pairs.push_back(builder.getDenseI64ArrayAttr({i, j}));
  if (!pairs.empty())
    function->setAttr("tile.disjoint", builder.getArrayAttr(pairs));
}

/// `'as' has 1 view, 'bs' has 2 views`, the lists with a view; empty without one.
static std::string listsText(const Kernel &kernel) {
  SmallVector<std::pair<StringRef, size_t>> lists;
  for (const Kernel::Parameter &parameter : kernel.parameters) {
    const auto [list, index] = StringRef(parameter.name).split('[');
    if (index.empty())
      continue;
    if (lists.empty() || lists.back().first != list)
      lists.emplace_back(list, 0);
    ++lists.back().second;
  }
  std::string text;
  for (const auto &[list, count] : lists)
    text += (text.empty() ? "'" : ", '") + list.str() + "' has " + std::to_string(count) +
            (count == 1 ? " view" : " views");
  return text;
}

bool Tracer::run(const std::string &config) {
  stack = stackHere();
  std::vector<View> views;
  {
    std::vector<Tile> scalars;
    for (size_t i = 0; i < facts.args.size(); ++i)
      if (facts.args[i].isView) {
        views.push_back(View(static_cast<int>(i)));
      } else {
        note(function.getArgument(i), facts.args[i].type);
        scalars.push_back(make(function.getArgument(i), kernel.loc));
      }
    try {
      kernel.call(views, scalars, kernel.counts, config);
      closeRests(0);
      if (thrownOutOf)
        error(*thrownOutOf) << "expected the body of a traced loop or branch to reach its end, but it was left by an "
                               "exception that the kernel caught";
    } catch (const Abandoned &) {
    } catch (const std::out_of_range &exception) {
      const std::string lists = listsText(kernel);
      error(kernel.loc) << (lists.empty() ? "" : "the kernel reads beyond the end of a list (" + lists + "): ")
                        << exception.what();
    } catch (const std::exception &exception) {
      error(kernel.loc) << exception.what();
    } catch (...) {
      error(kernel.loc) << "expected a kernel to throw only a std::exception, but got something else";
    }
  }
  if (failed)
    return false;
  finishFunction(kernel.configText(config));
  return true;
}

// --- Views -----------------------------------------------------------------------------------------------------------

mlir::Value Tracer::valueOf(const View &view) { return function.getArgument(view.index()); }

const Tile *Tracer::fixedAt(const View &view, int dimension) {
  return view.selection && view.selection->at[dimension] ? &*view.selection->at[dimension] : nullptr;
}

const Selection::Slice *Tracer::sliceOf(const View &view, int dimension) {
  return view.selection && view.selection->slices[dimension] ? &*view.selection->slices[dimension] : nullptr;
}

Selection Tracer::selectionOf(const View &view) const {
  if (view.selection)
    return *view.selection;
  Selection all;
  all.at.resize(factsOf(view).extents.size());
  all.slices.resize(all.at.size());
  return all;
}

SmallVector<int> Tracer::dimensionsOf(const View &view) const {
  SmallVector<int> dimensions;
  for (int dimension = 0; dimension < static_cast<int>(factsOf(view).extents.size()); ++dimension)
    if (!fixedAt(view, dimension))
      dimensions.push_back(dimension);
  return dimensions;
}

View Tracer::selected(const View &view, Selection selection) {
  View result(view.index());
  result.selection = std::make_shared<Selection>(std::move(selection));
  return result;
}

} // namespace kiln
