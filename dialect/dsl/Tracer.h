// What a trace keeps while a kernel runs: where the next operation goes, which `Tile` variables (cells) are
// alive, and which loop and branch bodies are open. Internal to dialect/dsl; users see Tile.h, callers see
// Trace.h.
//
// Loops use eager iteration arguments. When a `range` body opens, every live cell that holds a value gets its
// own block argument in a detached block; when it closes, the cells that no longer hold their argument are
// carried and the others get their old value back. Since each cell has its own argument, aliases and swaps
// come out right without any analysis.

#pragma once

#include "dialect/dsl/Trace.h"
#include "dialect/tile/TileDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

namespace kiln {

/// Ends a trace that cannot go on; its error has been reported.
struct Abandoned {};

/// A C++ number among a verb's operands.
struct Literal {
  bool isReal = false, isTruth = false;
  bool isHuge = false; // an integer of 2^63 or more: 2^64 more than `integer` says
  int64_t integer = 0;
  double real = 0;
  /// The integer, or boolean, all of whose bits are set.
  static Literal allOnes(Type type);
  double asReal() const;
  std::string text() const;
};

/// What an expression of C++ has done to memory: the views, by their numbers, that its loads and atomics worked on.
struct Effects {
  llvm::SmallVector<int, 2> read, changed;
  void add(const Effects &other) {
    read.append(other.read);
    changed.append(other.changed);
  }
  /// Whether it matters which of the two comes first.
  bool clashes(const Effects &other) const;
};

/// A cell as it was when a body opened.
struct FrameCell {
  Tile *tile = nullptr; // null when there is none, and when it was destroyed inside the body
  Loc declared;
  void *content = nullptr;      // what it held outside, be it unset, poison or out of scope
  mlir::Value before;           // the same where it may be used
  mlir::BlockArgument argument; // loops: what it holds when an iteration begins
};

/// What ends before its end where the program leaves it: a round of the innermost loop, that loop, or all.
enum class Leave { round, loop, program };
inline constexpr Leave everyLeave[] = {Leave::round, Leave::loop, Leave::program};

/// Whether the program has left, in each way: booleans, null where it cannot have.
struct Leaves {
  mlir::Value &operator[](Leave kind) { return flags[static_cast<size_t>(kind)]; }
  mlir::Value operator[](Leave kind) const { return flags[static_cast<size_t>(kind)]; }
  bool areNone() const { return !flags[0] && !flags[1] && !flags[2]; }

  mlir::Value flags[3];
  bool always = false; // the end is never reached
};

/// What a block that is being traced is: of a loop; a side of a branch; the condition of a loop; the function of a
/// scan; or the rest of such a body behind where the program may leave it, which ends with the body.
enum class Body { loop, branch, condition, function, rest };

/// An open body.
struct Frame {
  mlir::Block *body = nullptr;
  Body kind = Body::branch;
  Loc loc;
  mlir::Value left;             // of a rest: whether the program has left before it
  Leaves leaves;                // of a rest: how, where it has
  std::vector<FrameCell> cells; // by position in the list of live cells
  std::vector<Loc> destroyed;   // where cells were declared that died inside the body
};

/// What a loop or branch did to the cells that there were before it.
struct Outcome {
  bool isLoop = false;
  struct Change {
    size_t position; // of a cell that holds a result
    mlir::Type type;
    bool isUnsigned;
  };
  std::vector<Change> changed;
  bool leaves[3] = {};     // how the program may have left in it, as later results say
  bool isLeft = false;     // a loop that may end before its end
  bool keepsTiles = false; // a tile of its body outlived it
};
/// The outcomes of a trace: of the loops and branches that stand at each depth, in program order.
using Outcomes = std::vector<std::vector<Outcome>>;

/// What select() has left of an argument: for each of its dimensions the index that is fixed, or nothing.
struct Selection {
  std::vector<std::optional<Tile>> at;
};

/// While it lives the kernel that is traced runs for one example of a batch (vmap): the programs along grid axis 2 are
/// those of the example.
class Example {
public:
  /// `program` of `programs`; `shared` are the arguments that all examples have together.
  Example(const Tile &program, const Tile &programs, llvm::SmallVector<int> shared);
  ~Example();
  Example(const Example &) = delete;

  Tile program, programs;
  const llvm::SmallVector<int> shared;
  const Example *const outer; // of which this is one of several
};

class Tracer {
public:
  /// How loop and branch bodies are traced.
  struct Bodies {
    bool twice = false;                     // each two times, and the second is kept
    const Outcomes *withoutThose = nullptr; // not at all at `depth`: the trace goes on with these outcomes
    size_t depth = 0;
  };

  /// Builds an empty function for `kernel`.
  Tracer(mlir::MLIRContext &context, const Kernel &kernel, const Specialisation &facts, Bodies bodies);
  ~Tracer();
  Tracer(const Tracer &) = delete;

  /// The tracer of this thread; null when no kernel is being traced.
  static Tracer *active();
  /// The same; throws Error when there is none.
  static Tracer &current();

  /// Calls the kernel and completes the function. False when an error was reported.
  bool run(const std::string &config);

  mlir::Location at(Loc loc);
  mlir::InFlightDiagnostic error(Loc loc);
  /// Counts one more use of the language, at `loc`. Throws Abandoned, reported, when there are more than any kernel
  /// needs or the kernel's functions call each other too deeply: such a trace would not end.
  void countVerb(Loc loc);
  void fail() { failed = true; }

  // Cells.
  void enlist(Tile &tile);
  void dismiss(Tile &tile);
  /// A new cell that holds `value`; a null value makes it poison, which any verb passes on in silence.
  Tile make(mlir::Value value, Loc loc);
  /// What a tile holds. Null, reported unless the tile is poison, when there is nothing that may be used
  /// here.
  mlir::Value read(const Tile &tile, Loc loc);
  static std::optional<Literal> literalOf(const At &operand);
  static const Tile &tileOf(const At &operand) { return *operand.tile; }
  /// What the operand, if it is the result of another verb of the same C++ expression, did to memory on its way.
  const Effects *effectsOf(const At &operand) const;
  /// The operand as one that no other verb has just given.
  static At lasting(At operand) {
    operand.isTemporary = false;
    return operand;
  }
  void noteEffects(mlir::Value value, const Effects &done) { effects[value].add(done); }
  /// The value that a tile holds, wherever it is valid; null when unset or poison.
  static mlir::Value held(const Tile &tile);
  static Loc declaredAt(const Tile &tile) { return tile.declared; }
  static void rebind(Tile &tile, mlir::Value value);
  /// Whether the cell, of a branch, holds something else than when the body opened.
  static bool isChanged(const FrameCell &cell) { return cell.tile->value != cell.content; }
  /// Gives the cell back what it held when the body opened.
  static void restore(const FrameCell &cell) { cell.tile->value = cell.content; }
  /// Every live cell that holds a key of `map` holds the value from now on.
  void replaceInCells(const llvm::DenseMap<mlir::Value, mlir::Value> &map);

  // Element types. MLIR's integers have no sign: which values are unsigned is noted here.
  Type elementOf(mlir::Value value) const;
  /// Notes the type of a value's elements.
  void note(mlir::Value value, Type type) {
    if (isUnsigned(type))
      naturals.insert(value);
    else
      naturals.erase(value);
  }
  /// Notes that `to` is of `from`'s type.
  void noteLike(mlir::Value to, mlir::Value from) { note(to, elementOf(from)); }
  /// Notes of what an operation gives that it is unsigned where an operand of the same integer type is.
  void noteResults(mlir::Operation *op);

  // Bodies.
  /// Opens a body, the insertion point at its end. A loop's, and its condition's, gets an i64 argument and one for each
  /// cell that holds a value.
  size_t open(Body kind, Loc loc);
  /// Opens a body and calls `trace` in it, as often as bodyTraces() says; the last one stays open. Gives its depth.
  /// What `trace` throws ends the body, and the loop or branch that was begun last.
  size_t openTraced(Body kind, Loc loc, llvm::function_ref<void()> trace);
  Frame &innermost() { return frames.back(); }
  /// Takes the innermost body off the stack; its operations stay in the frame's block, which the caller owns.
  Frame close();
  /// Opens the rest of the innermost body, which is not run where one of the `leaves` is true.
  void leave(const Leaves &leaves, Loc loc);
  /// Closes the rests above the first `open` bodies, for the last of these or, without any, the program. Gives how the
  /// program may have left at its end.
  Leaves closeRests(size_t open);
  /// Where the program can be left in this way, if it cannot be from here; empty when all is well.
  const char *whyNoLeave(Leave kind) const;
  /// Gives up all bodies from `depth` on: cells hold again what they held before.
  void discard(size_t depth);
  void bury(mlir::Block *block) { graveyard.push_back(block); }
  /// Whether values of `block` may be used at the insertion point.
  bool isOpen(mlir::Block *block) const;
  /// Whether this is the trace that speaks: the others, which bodies() asks for, repeat it.
  bool isFirst() const { return !bodies.twice && !bodies.withoutThose; }

  /// How often a body that begins now is to be traced. Inside a rehearsal once will do: the real trace follows, and a
  /// nest of depth d costs d + 1 traces of its innermost body instead of 2 to the power d.
  int bodyTraces() const { return bodies.twice && rehearsals == 0 ? 2 : 1; }

  /// Begins a loop or branch. Gives its outcome when its bodies are to be left out: rebind() the cells to results then.
  /// Throws Abandoned, reported, when this trace has come to another place than the one that it should repeat.
  const Outcome *beginBodies(bool isLoop, Loc loc);
  /// Ends what beginBodies began: `changed` are the cells that hold its results, `before` is how many cells there were,
  /// and `leaves` are further results. What follows is a rest if there are any.
  Outcome &endBodies(llvm::ArrayRef<Tile *> changed, size_t before, const Leaves &leaves, Loc loc);
  /// Ends it where one of its bodies was left before its end.
  void abandonBodies() { begun.pop_back(); }
  /// Notes that an exception left the body of the loop or branch at `loc`: an error unless it ends the kernel.
  void noteThrown(Loc loc) { thrownOutOf = loc; }
  size_t cellCount() const { return cells.size(); }
  Tile &cellAt(size_t position) { return *cells[position]; }

  // Views.
  const ArgFacts &factsOf(const View &view) const { return facts.args[view.index()]; }
  mlir::Value valueOf(const View &view);
  /// The dimensions of its argument that a view has.
  llvm::SmallVector<int> dimensionsOf(const View &view) const;
  /// The index at which a dimension of its argument is fixed; null where the view has it.
  static const Tile *fixedAt(const View &view, int dimension);
  static View selected(const View &view, Selection selection);
  bool readsStages() const { return facts.stages; }
  void ask(const View &view, int axis) { asked.insert({view.index(), dimensionsOf(view)[axis]}); }

  const Kernel &kernel;
  const Bodies bodies;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  const Example *example = nullptr; // the innermost
  int rehearsals = 0;               // open bodies that will be traced once more
  std::set<std::pair<int, int>> asked;
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
  llvm::SmallDenseMap<const char *, mlir::StringAttr, 4> files; // names of those that lines lie in
  std::vector<Tile *> cells; // live cells in order of declaration; null where one has gone
  std::vector<Frame> frames;
  std::vector<mlir::Block *> graveyard; // bodies that were given up; cells may still point into them
  std::vector<size_t> begun;            // loops and branches that have not ended: their places among the outcomes
  std::optional<Loc> thrownOutOf;
  llvm::DenseMap<mlir::Value, Effects> effects; // of expressions, by their values
  llvm::DenseSet<mlir::Value> naturals;         // those whose elements are unsigned
  int64_t verbs = 0;
  const char *stack = nullptr; // where the kernel was called
  bool failed = false;
};

/// Operands and numbers of one function, all at the line where the user wrote it.
struct Line {
  Loc loc;
  template <class T> At operator()(T operand) const { return At(operand, loc); }
};

/// One use of a verb of the language: its name, its line, and the operations that it emits.
class Verb {
public:
  Verb(const char *name, Loc loc);

  /// Reports `'name' expected …` at the user's line.
  mlir::InFlightDiagnostic expected();
  Tile poison() { return tracer.make({}, loc); }
  Tile result(mlir::Value value);

  template <class Op, class... Args> Op emit(Args &&...args) {
    Op op = Op::create(tracer.builder, location, std::forward<Args>(args)...);
    tracer.noteResults(op);
    return op;
  }
  /// A value whose elements are of a type that its operation does not tell.
  mlir::Value of(Type type, mlir::Value value) {
    tracer.note(value, type);
    return value;
  }

  /// The value of an operand that is a tile; null, reported unless it is poison, where there is none.
  mlir::Value read(const At &operand);
  /// Notes what operands that C++ computes one after the other, or one alone, did to memory before: together with what
  /// other operands did it may be in another order than it seems.
  void follow(llvm::ArrayRef<At> operands);
  /// The value of an operand; a number alone is boolean, i32 (i64 where it does not fit) or f32.
  mlir::Value value(const At &operand);
  /// The value of an operand, a number as a scalar of `type`.
  mlir::Value valueAs(const At &operand, Type type);
  /// An integer scalar: `what` names it in messages.
  mlir::Value integer(const At &operand, const char *what);
  /// The same as i64, for offsets and bounds, as position() has it.
  mlir::Value index(const At &operand, const char *what);
  /// A boolean scalar; false where there is none, which is reported: `what` names it in messages.
  mlir::Value truth(const At &operand, const char *what);
  /// A constant of `type`, for each element of `shape`. Null, reported, when the number does not fit.
  mlir::Value constant(Literal number, Type type, const Shape &shape);
  /// A constant with a number for each element. Null, reported, when one does not fit.
  mlir::Value constants(llvm::ArrayRef<double> numbers, Type type, const Shape &shape);

  mlir::Value cast(mlir::Value value, Type type);
  /// Integers as i64, in which unsigned ones from 2^63 on are 2^63 - 1.
  mlir::Value position(mlir::Value value);
  mlir::Value reshape(mlir::Value value, const Shape &shape);
  /// As NumPy: leading extents of 1, then repetition. The shapes fit.
  mlir::Value broadcast(mlir::Value value, const Shape &shape);
  /// Reports unless every extent is at least 1 and the rank at most 5.
  bool checkShape(const Shape &shape);

  Tracer &tracer;
  const char *name;
  Loc loc;
  mlir::Location location;
  Effects effects; // of its operands and itself
  bool warned = false;
};

/// Operands brought to one element type and one shape.
struct Operands {
  llvm::SmallVector<mlir::Value, 3> values; // empty when an operand was poison or an error was reported
  Type type = Type::f32;
  Shape shape;
  explicit operator bool() const { return !values.empty(); }
};
Operands unify(Verb &verb, llvm::ArrayRef<const At *> operands);

/// Shape that operands of these shapes broadcast to; nothing when they do not.
std::optional<Shape> broadcastShape(const Shape &a, const Shape &b);

/// What integers, and booleans, are summed in: 32 bits at least.
Type totalOf(Type type);
/// `axis` counted from the front of a tile; nothing, reported, when there is none such.
std::optional<int64_t> axisOf(Verb &verb, mlir::Value tile, int axis);
/// The mask for a tile of `shape`, that of the operation in `full`: null where all elements are wanted; nothing,
/// reported, when it is no mask for it.
std::optional<mlir::Value> maskOf(Verb &verb, const At &written, const Shape &shape, const Shape &full);

/// A constant of the type of another value, with zeros.
mlir::Value zeroOf(mlir::OpBuilder &builder, mlir::Value like);

/// Reports unless a tile may become `now` in a body that it had the value of `cell` before.
bool checkChange(Tracer &tracer, const FrameCell &cell, mlir::Value now, const char *body);
/// Reports the cells that died in a body although they were there before it.
void reportDestroyed(Tracer &tracer, const Frame &frame, const char *body, Loc loc);

Type elementOf(mlir::Value value);
Shape shapeOf(mlir::Value value);
mlir::Type typeOf(mlir::MLIRContext *context, Type element, const Shape &shape = {});
/// `f32[64x32]`, or `f32 scalar`.
std::string describe(mlir::Value value);

} // namespace kiln
