// Draws a program statement by statement. Every program is well typed and has the same meaning on every machine: no
// program of the grid reads an element that another one writes, no row is scattered twice, no sum is without a bound.

#pragma once

#include "test/fuzz/program.h"

#include <array>
#include <functional>
#include <random>

namespace kiln::fuzz {

inline int64_t countOf(const Shape &shape) {
  int64_t count = 1;
  for (const int64_t extent : shape)
    count *= extent;
  return count;
}

/// A value that is in scope.
struct Known {
  int value = -1;
  Type type = Type::f32;
  Shape shape;
  Facts facts;
  bool isVariable = false; // may be assigned whatever implies `facts`
  Operand operand() const { return Operand::of(value); }
};

/// The use of a window. Values in which machines may differ are written to memory that is never read.
enum class Access { read, write, writeLoose, atomic };

class Generator {
public:
  Generator(uint64_t seed, int number);
  Program take() { return std::move(program); }

private:
  std::mt19937_64 random;
  Program program;
  std::vector<Op> *block; // where operations are appended
  std::vector<Known> known;
  std::vector<int> uses;        // of each value
  std::vector<int64_t> palette; // extents that this program's tiles are made of
  std::vector<Type> types;      // and their types
  std::vector<Access> purposes; // of each window
  Known programNumber;          // in a grid: selects the part of what is written that is this program's
  int depth = 0;                // of loops and branches
  int loops = 0;                // around that may be left
  bool even = false;            // rows begin at whole vectors and tiles are powers of two, as tensor cores take them
  bool isAnyones = false;       // whichever program of a grid does it, it must be the same
  bool checks = false;          // whether there is a check: one, so that one failure is the first on every machine

  // --- generate.cc: choices and statements
  int64_t below(int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T> const T &pick(const std::vector<T> &list) { return list[below(list.size())]; }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  void numberPrograms();
  Shape drawShape(int rank);
  Known emit(Op op, const Facts &facts);
  void use(const std::vector<Operand> &operands);
  void statement();
  bool loadStatement();
  bool storeStatement();
  void finish();
  void groupWindows();

  // --- generate_memory.cc
  bool isOwn(Access access) const;
  int window(Access access, Type type, const Shape &tile);
  int newWindow(Access access, Type type, const Shape &tile, bool closed = false);
  /// A view like `other` of the same memory: the same elements, or shifted by one or by a row.
  int sibling(int other, Access access);
  int newBuffer(Access access, Type type);
  void drawStrides(Window &result, bool writable, bool leads);
  void place(Window &window, bool isNew);
  Operand offset(int64_t tile, int64_t extent);
  std::vector<Operand> offsets(int window, const Shape &tile, int skip = 0);
  int padding(Type type);
  Facts padded(const Facts &facts, int padding) const;
  Known load(Type type, const Shape &shape);
  Known loadAt(int window, const Shape &shape, std::vector<Operand> offsets);
  bool store(const Known &value);
  void storeAt(int window, const Known &value, std::vector<Operand> offsets);
  bool loadRows();
  bool storeRows();
  Known rows(int64_t count, int64_t extent, bool unique);

  // --- generate_access.cc
  /// The window and position of an access, as in an `Op`.
  struct Place {
    std::vector<Operand> offsets;
    int index = 0;
    bool unique = true; // no element is named twice
  };
  int maskFor(const Shape &shape, int percent);
  /// A hint for caches, mostly none.
  int cache() { return chance(10) ? static_cast<int>(between(1, 2)) : 0; }
  /// The block alone, if there is one.
  Scope atomicScope() {
    return chance(50) ? Scope::device : program.grid == 1 && chance(50) ? Scope::block : Scope::system;
  }
  void slice(Op &op);
  void select(Op &op);
  bool isTile(const Operand &offset) const;
  Known numbers(const Shape &shape, int64_t extent, bool unique);
  std::optional<Place> named(int window, const Shape &index, const Shape &blocks, bool unique);
  Shape extentsFor(int named, const Shape &blocks);
  bool loadNamed();
  bool storeNamed();
  bool atomic();
  bool drawAtomicOperands(Op &op, int kind, bool unique);

  // --- generate_values.cc
  /// A value in scope of that type and shape, or a new one; with `exact`, one on which machines agree.
  Known valueOf(Type type, const Shape &shape, bool exact = true);
  /// A value in scope; with `moves`, perhaps one of a type without arithmetic.
  std::optional<Known> find(const std::function<bool(const Known &)> &wanted, bool moves = false);
  Known scalar(); // an i64 scalar
  Known number(Type type, const Shape &shape);
  Operand literal(Type type);
  Facts literalFacts(Type type, const Operand &literal) const;
  /// `value`, clamped and rounded as far as `facts` require.
  Known fit(const Known &value, const Facts &facts);
  Known apply(const char *text, const std::vector<Operand> &operands, Type type, const Shape &shape,
              const Facts &facts);
  Known condition(const Shape &shape);
  Known mask(const Shape &shape);
  Known cast(const Known &value, Type type);
  bool elementwiseStatement();
  bool creationStatement();
  bool checkStatement();
  bool assumeStatement();

  // --- generate_shapes.cc
  bool reshapeStatement();
  bool reduceStatement();
  bool scanStatement();
  bool lookUpStatement();
  bool viewBits(const Known &value);
  bool packStatement();
  bool castStatement();
  bool roundStatement(const Known &value, Type type);

  // --- generate_moves.cc
  Known extract(const Known &from);
  bool moveStatement();
  Known permuted(const Known &from);
  /// A chain of steps that combine a tile with a permutation of it.
  bool chainStatement();

  // --- generate_dots.cc
  Known factor(Type type, const Shape &shape, const Operand *k, int kAxis);
  Type drawPartner(Type type);
  Precision precisionFor(Type type);
  std::array<int64_t, 3> productExtents();
  Shape leadingExtents(int most);
  bool dotStatement();
  bool dotLoop();
  std::array<Known, 2> scaledFactor(const Shape &leading, int64_t rows, int64_t columns, int kAxis, int64_t length);
  bool dotScaled();

  // --- generate_hazards.cc
  bool sweep();
  bool lastProgram();
  bool handOver();
  Known countPrograms();
  int claimed(int window);
  std::vector<Operand> zeros(int window) const;

  // --- generate_control.cc
  void drawRange(Op &loop, double &bound);
  /// The number of the iteration, in the body of `loop`; its magnitude is at most `bound`.
  Known openLoop(Op &loop, double bound);
  /// The hints of a loop whose body is complete.
  void drawHints(Op &loop);
  Known variable(const Known &value, const Facts &facts);
  std::vector<Known> variables();
  void assign(const Known &variable, const Known &value);
  /// Runs `body`, which appends operations to `into`. Values defined in it go out of scope afterwards.
  void scope(std::vector<Op> &into, const std::function<void()> &body);
  void drawBody(const std::vector<Known> &changed);
  bool loopStatement();
  bool stencilStatement();
  bool repeatStatement();
  Known branchCondition();
  bool whenStatement();
  bool leaveStatement();
};

} // namespace kiln::fuzz
