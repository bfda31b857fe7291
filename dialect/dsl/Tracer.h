// The state of a trace: the insertion point, the live `Tile` variables (*cells*), and the open loop and branch bodies.
// Internal to dialect/dsl. Users see Tile.h, callers see Trace.h.
//
// Loops use eager iteration arguments. When a `range` body opens, every live cell with a value gets its own block
// argument in a detached block. When the body closes, a cell that no longer holds its argument is loop-carried; the
// others get their old value back. Each cell has its own argument, so aliases and swaps are correct without analysis.

#pragma once

#include "dialect/dsl/Trace.h"
#include "dialect/tile/TileDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

namespace kiln {

/// Thrown to end a trace that cannot continue; its error has been reported.
struct Abandoned {};

/// A C++ number among the operands.
struct Literal {
  bool isFloating = false, isBoolean = false;
  bool isHuge = false; // an integer of at least 2^63: 2^64 more than `integer`
  int64_t integer = 0;
  double real = 0;
  /// The integer or boolean with all bits set.
  static Literal allOnes(Type type);
  double asReal() const;
  std::string text() const;
};

/// Memory effects of a C++ expression: the views, by number, that its loads and atomics accessed.
struct Effects {
  llvm::SmallVector<int, 2> read, changed;
  void add(const Effects &other) {
    read.append(other.read);
    changed.append(other.changed);
  }
  /// Whether the order of the two matters.
  bool clashes(const Effects &other) const;
};

/// The state of a cell when a body opened.
struct FrameCell {
  Tile *tile = nullptr; // null if there is none, or if it was destroyed inside the body
  Loc declared;
  void *content = nullptr;      // the value outside, also if unset, poison or out of scope
  mlir::Value before;           // the value outside, if it may be used
  mlir::BlockArgument argument; // loops: the value at the begin of an iteration
};

/// Early exits: from an iteration (continue), from the innermost loop (break), or from the program (return).
enum class Leave { iteration, loop, program };
inline constexpr Leave everyLeave[] = {Leave::iteration, Leave::loop, Leave::program};

/// Booleans that say whether each kind of early exit was taken; null if it cannot have been.
struct Leaves {
  mlir::Value &operator[](Leave kind) { return flags[static_cast<size_t>(kind)]; }
  mlir::Value operator[](Leave kind) const { return flags[static_cast<size_t>(kind)]; }
  bool areNone() const { return !flags[0] && !flags[1] && !flags[2]; }

  mlir::Value flags[3];
  bool always = false; // the end is never reached
};

/// Kinds of blocks that are traced. `branch` is one side of an if_(), `condition` that of a repeat_while(), `function`
/// that of a scan or reduction. A *rest* is the part of such a body after a possible early exit; it ends with the body.
enum class Body { loop, branch, condition, function, rest };

/// An open body.
struct Frame {
  mlir::Block *body = nullptr;
  Body kind = Body::branch;
  Loc loc;
  mlir::Value left;             // of a rest: whether the program has exited before it
  Leaves leaves;                // of a rest: how the program has exited
  std::vector<FrameCell> cells; // by index in the list of live cells
  std::vector<Loc> destroyed;   // declarations of cells that were destroyed inside the body
};

/// The effect of a loop or branch on the cells declared before it.
struct Outcome {
  bool isLoop = false;
  struct Change {
    size_t position; // of a cell that holds a result
    mlir::Type type;
    Type element;
  };
  std::vector<Change> changed;
  bool leaves[3] = {};     // possible kinds of early exit, as further results say
  bool isLeft = false;     // a loop that may break
  bool keepsTiles = false; // a tile of its body outlived it
};
/// The outcomes of a trace, for each depth the loops and branches in program order.
using Outcomes = std::vector<std::vector<Outcome>>;

/// The result of View::select() and View::slice(): what they left of each dimension of the argument.
struct Selection {
  /// Positions `begin` to `begin` + `extent` − 1 of a dimension, both i64 and inside of the argument.
  struct Slice {
    Tile begin, extent;
  };
  std::vector<std::optional<Tile>> at;      // the fixed index, or nothing
  std::vector<std::optional<Slice>> slices; // nothing if all of the dimension is left
};

/// During its lifetime the kernel is traced for one example of a batch (vmap). Programs along grid axis 2 are those of
/// the example.
class Example {
public:
  /// `program` of `programs`; `shared` are the arguments that all examples share.
  Example(const Tile &program, const Tile &programs, llvm::SmallVector<int> shared);
  ~Example();
  Example(const Example &) = delete;

  Tile program, programs;
  const llvm::SmallVector<int> shared;
  const Example *const outer; // the enclosing batch
};

class Tracer {
public:
  /// How to trace loop and branch bodies.
  struct Bodies {
    bool twice = false;                     // trace each body twice and keep the second trace
    const Outcomes *withoutThose = nullptr; // do not trace bodies at `depth`; use these outcomes
    size_t depth = 0;
  };

  /// Builds an empty function for `kernel`.
  Tracer(mlir::MLIRContext &context, const Kernel &kernel, const Specialisation &facts, Bodies bodies);
  ~Tracer();
  Tracer(const Tracer &) = delete;

  /// The tracer of this thread; null when no kernel is being traced.
  static Tracer *active();
  /// The tracer of this thread; throws Error if there is none.
  static Tracer &current();

  /// Calls the kernel and completes the function. False if an error was reported.
  bool run(const std::string &config);

  mlir::Location at(Loc loc);
  mlir::InFlightDiagnostic error(Loc loc);
  /// Counts an API call at `loc`. Throws Abandoned, reported, for more calls than any kernel needs and for too deep
  /// recursion: such a trace would not end.
  void countCall(Loc loc);
  void fail() { failed = true; }

  // Cells.
  void enlist(Tile &tile);
  void dismiss(Tile &tile);
  /// A new cell with `value`. A null value makes it poison, which every operation propagates silently.
  Tile make(mlir::Value value, Loc loc);
  /// The value of a tile. Null if it has no usable value here; that is reported unless the tile is poison.
  mlir::Value read(const Tile &tile, Loc loc);
  static std::optional<Literal> literalOf(const At &operand);
  static const Tile &tileOf(const At &operand) { return *operand.tile; }
  /// The memory effects of an operand that is a temporary of this C++ expression; null for others.
  const Effects *effectsOf(const At &operand) const;
  /// The operand, no longer marked as a temporary.
  static At lasting(At operand) {
    operand.isTemporary = false;
    return operand;
  }
  void noteEffects(mlir::Value value, const Effects &done) { effects[value].add(done); }
  /// Records that a constant is a C++ number without a type of its own, `Tile n = 0`.
  void noteNumber(mlir::Value value, Literal number) { numbers[value] = number; }
  /// The number `from`, if it is one, in the type of the scalar that `to` holds; null if that type is not of its kind.
  mlir::Value numberLike(const Tile &to, const Tile &from);
  /// The value of a tile, wherever it is valid; null if unset or poison.
  static mlir::Value held(const Tile &tile);
  static Loc declaredAt(const Tile &tile) { return tile.declared; }
  static void rebind(Tile &tile, mlir::Value value);
  /// Whether a branch changed the cell since the body opened.
  static bool isChanged(const FrameCell &cell) { return cell.tile->value != cell.content; }
  /// Resets the cell to its value when the body opened.
  static void restore(const FrameCell &cell) { cell.tile->value = cell.content; }
  /// Replaces values in all live cells: a key of `map` becomes its value.
  void replaceInCells(const llvm::DenseMap<mlir::Value, mlir::Value> &map);

  // Element types. Several may be one in MLIR, whose integers are signless; `otherTypes` has those of values that are
  // not the first of them.
  Type elementOf(mlir::Value value) const;
  /// Records the element type of a value.
  void note(mlir::Value value, Type type) {
    if (isUnsigned(type) || isPair(type))
      otherTypes[value] = type;
    else
      otherTypes.erase(value);
  }
  /// Gives `to` the element type of `from`.
  void noteLike(mlir::Value to, mlir::Value from) { note(to, elementOf(from)); }
  /// Gives the results of an operation the element type of an operand that is one with theirs in MLIR.
  void noteResults(mlir::Operation *op);

  // Bodies.
  /// Opens a body with the insertion point at its end. A loop body and a condition have an i64 argument and one
  /// argument for each cell with a value.
  size_t open(Body kind, Loc loc);
  /// Opens a body and calls `trace` in it, bodyTraces() times. The last one stays open; returns its depth. An exception
  /// from `trace` ends the body and the innermost loop or branch.
  size_t openTraced(Body kind, Loc loc, llvm::function_ref<void()> trace);
  Frame &innermost() { return frames.back(); }
  /// Pops the innermost body. Its operations stay in the frame's block, which the caller owns.
  Frame close();
  /// Opens the rest of the innermost body. It is skipped if one of the `leaves` is true.
  void leave(const Leaves &leaves, Loc loc);
  /// Closes the rests above the first `open` bodies. Returns the possible early exits of the last of these bodies, or
  /// of the program if `open` is 0.
  Leaves closeRests(size_t open);
  /// The reason why this kind of early exit is not allowed here; empty if it is allowed.
  const char *whyNoLeave(Leave kind) const;
  /// Drops all bodies from `depth` on; cells get their old values back.
  void discard(size_t depth);
  void bury(mlir::Block *block) { graveyard.push_back(block); }
  /// Whether values of `block` may be used at the insertion point.
  bool isOpen(mlir::Block *block) const;
  /// Whether this trace reports warnings. The others, which bodies() asks for, repeat it.
  bool isFirst() const { return !bodies.twice && !bodies.withoutThose; }

  /// How often a body that begins now is traced. Inside a rehearsal once is enough, because the real trace follows. So
  /// a nest of depth d costs d + 1 traces of its innermost body instead of 2^d.
  int bodyTraces() const { return bodies.twice && rehearsals == 0 ? 2 : 1; }

  /// Begins a loop or branch. Returns its outcome if its bodies are not to be traced; the caller then rebinds the cells
  /// to results. Throws Abandoned, reported, if this trace deviates from the one that it repeats.
  const Outcome *beginBodies(bool isLoop, Loc loc);
  /// Ends a loop or branch. `changed` are the cells that hold its results; `before` is the number of cells before it.
  /// `leaves` are further results; if there are any, a rest follows.
  Outcome &endBodies(llvm::ArrayRef<Tile *> changed, size_t before, const Leaves &leaves, Loc loc);
  /// Ends a loop or branch whose body was left by an exception.
  void abandonBodies() { begun.pop_back(); }
  /// Records that an exception left the body of the loop or branch at `loc`: an error unless it ends the kernel.
  void noteThrown(Loc loc) { thrownOutOf = loc; }
  size_t cellCount() const { return cells.size(); }
  Tile &cellAt(size_t position) { return *cells[position]; }

  // Views.
  const ArgFacts &factsOf(const View &view) const { return facts.args[view.index()]; }
  mlir::Value valueOf(const View &view);
  /// The dimensions of its argument that a view still has.
  llvm::SmallVector<int> dimensionsOf(const View &view) const;
  /// The fixed index of a dimension of its argument; null if the view has the dimension.
  static const Tile *fixedAt(const View &view, int dimension);
  /// The slice of a dimension of its argument; null if the view has all of the dimension.
  static const Selection::Slice *sliceOf(const View &view, int dimension);
  /// The selection of a view, with an entry for each dimension of its argument.
  Selection selectionOf(const View &view) const;
  static View selected(const View &view, Selection selection);
  bool readsStages() const { return facts.stages; }
  bool checksAssumptions() const { return facts.checksAssumptions; }
  void makeStatic(const View &view, int axis) { staticExtents.insert({view.index(), dimensionsOf(view)[axis]}); }

  const Kernel &kernel;
  const Bodies bodies;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  const Example *example = nullptr; // the innermost one
  int rehearsals = 0;               // open bodies that will be traced again
  std::set<std::pair<int, int>> staticExtents;
  Outcomes outcomes;

private:
  void buildFunction();
  void finishFunction(const std::string &config);
  mlir::Type argumentType(size_t index) const;
  void attachFacts(const std::string &config);
  void releaseCells();
  void checkNesting(Loc loc);
  Leaves closeRest(const Leaves &inner, Body around);

  const Specialisation &facts;
  mlir::func::FuncOp function;
  llvm::SmallDenseMap<const char *, mlir::StringAttr, 4> files; // file names of source lines
  std::vector<Tile *> cells;                                    // live cells in order of declaration; null if destroyed
  std::vector<Frame> frames;
  std::vector<mlir::Block *> graveyard; // dropped bodies; cells may still point into them
  std::vector<size_t> begun;            // open loops and branches: their indices among the outcomes
  std::optional<Loc> thrownOutOf;
  llvm::DenseMap<mlir::Value, Effects> effects; // of expressions, by their values
  llvm::DenseMap<mlir::Value, Literal> numbers; // C++ numbers that became tiles, by their values
  llvm::DenseMap<mlir::Value, kiln::Type> otherTypes;
  int64_t calls = 0;
  const char *stack = nullptr; // stack address of the call of the kernel
  bool failed = false;
};

/// Operands and numbers of one API function, all at the user's line.
struct Line {
  Loc loc;
  template <class T> At operator()(T operand) const { return At(operand, loc); }
};

class Call;

/// The error of an API call, reported at the end of the statement. A function that returns it returns an unusable
/// result: a poisoned tile, no value, or false.
class Mistake {
public:
  Mistake(Call &call, mlir::InFlightDiagnostic error) : call(call), error(std::move(error)) {}
  template <class Part> Mistake &operator<<(Part &&part) & {
    error << std::forward<Part>(part);
    return *this;
  }
  template <class Part> Mistake &&operator<<(Part &&part) && { return std::move(*this << std::forward<Part>(part)); }
  mlir::Diagnostic &attachNote(mlir::Location where) { return error.attachNote(where); }
  operator Tile();
  operator mlir::Value() { return {}; }
  template <std::same_as<bool> Bool> operator Bool() { return false; }
  template <class T> operator std::optional<T>() { return {}; }

private:
  Call &call;
  mlir::InFlightDiagnostic error;
};

/// One API call: its name, its line, and the operations that it emits.
class Call {
public:
  Call(const char *name, Loc loc);

  /// Reports `'name' expected …` at the user's line.
  Mistake expected();
  Tile poison() { return tracer.make({}, loc); }
  Tile result(mlir::Value value);

  template <class Op, class... Args> Op emit(Args &&...args) {
    Op op = Op::create(tracer.builder, location, std::forward<Args>(args)...);
    tracer.noteResults(op);
    return op;
  }
  /// Records the element type of a value that its operation does not determine.
  mlir::Value of(Type type, mlir::Value value) {
    tracer.note(value, type);
    return value;
  }

  /// The value of a tile operand. Null if it has none; that is reported unless the tile is poison.
  mlir::Value read(const At &operand);
  /// Adds the memory effects of operands that C++ evaluates in order, or of one operand. With effects of other
  /// operands, their order may be unspecified.
  void follow(llvm::ArrayRef<At> operands);
  /// The value of an operand. A number alone is boolean, i32 (i64 if it does not fit) or f32.
  mlir::Value value(const At &operand);
  /// The value of an operand; a number becomes a scalar of `type`.
  mlir::Value valueAs(const At &operand, Type type);
  /// An integer scalar; messages call it `what`.
  mlir::Value integer(const At &operand, const char *what);
  /// An integer scalar as i64 by position(), for offsets and bounds.
  mlir::Value index(const At &operand, const char *what);
  /// A boolean scalar; messages call it `what`. Null, reported, if it is not one.
  mlir::Value condition(const At &operand, const char *what);
  /// A constant of `type`, repeated over `shape`. Null, reported, if the number does not fit.
  mlir::Value constant(Literal number, Type type, const Shape &shape);
  /// A constant with one number per element. Null, reported, if one does not fit.
  mlir::Value constants(llvm::ArrayRef<double> numbers, Type type, const Shape &shape);

  mlir::Value cast(mlir::Value value, Type type);
  /// Integers as i64. Unsigned ones from 2^63 on become 2^63 − 1.
  mlir::Value position(mlir::Value value);
  mlir::Value reshape(mlir::Value value, const Shape &shape);
  /// NumPy broadcasting: leading extents of 1, then repetition. The shapes fit.
  mlir::Value broadcast(mlir::Value value, const Shape &shape);
  /// Reports an error unless every extent is at least 1 and the rank at most 5.
  bool checkShape(const Shape &shape);

  Tracer &tracer;
  const char *name;
  Loc loc;
  mlir::Location location;
  Effects effects; // of its operands and of itself
  bool warned = false;
};

/// Operands converted to one element type and one shape.
struct Operands {
  llvm::SmallVector<mlir::Value, 3> values; // empty if an operand was poison or an error was reported
  Type type = Type::f32;
  Shape shape;
  explicit operator bool() const { return !values.empty(); }
};
Operands unify(Call &call, llvm::ArrayRef<const At *> operands);

/// Reports an error unless the language computes with the value's type.
bool checkArithmetic(Call &call, mlir::Value value);
/// Reports an error unless the value can be converted to `type`.
bool checkCast(Call &call, mlir::Value value, Type type);
/// The shape that operands of these shapes broadcast to; nothing if they do not broadcast.
std::optional<Shape> broadcastShape(const Shape &a, const Shape &b);

/// The accumulator type of sums of integers and booleans: at least 32 bits.
Type accumulatorType(Type type);
/// `axis` counted from the front; nothing, reported, if the tile has no such axis.
std::optional<int64_t> axisOf(Call &call, mlir::Value tile, int axis);
/// The mask for a tile of `shape`; the operation has shape `full`. Null if all elements are accessed; nothing,
/// reported, if the mask does not fit.
std::optional<mlir::Value> maskOf(Call &call, const At &written, const Shape &shape, const Shape &full);

/// A constant of zeros of the type of another value.
mlir::Value zeroOf(mlir::OpBuilder &builder, mlir::Value like);

/// Reports an error unless a tile may change from the value of `cell` to `now` in a body.
bool checkChange(Tracer &tracer, const FrameCell &cell, mlir::Value now, const char *body);
/// Reports cells declared before a body that were destroyed in it.
void reportDestroyed(Tracer &tracer, const Frame &frame, const char *body, Loc loc);

Type elementOf(mlir::Value value);
Shape shapeOf(mlir::Value value);
mlir::Type typeOf(mlir::MLIRContext *context, Type element, const Shape &shape = {});
/// `f32[64x32]`, or `f32 scalar`.
std::string describe(mlir::Value value);
/// As above, where a tile of rank 1 or more is expected: of an element that was loaded it says how a block is loaded.
std::string describeTile(mlir::Value value);

} // namespace kiln
