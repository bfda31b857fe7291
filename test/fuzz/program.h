// A random program as data: memory, views of it, and operations. It can be traced as a kernel, printed as C++, and made
// smaller; all of it follows from a seed.

#pragma once

#include "dialect/dsl/Kernel.h"
#include "test/fuzz/facts.h"

#include <array>

namespace kiln::fuzz {

/// Memory of one element type, with a margin of other elements on both sides of its views.
struct Buffer {
  /// The initial values of its elements.
  enum class Fill { small, real, wild, zero } fill = Fill::small;
  Type type = Type::f32;
  int64_t elements = 0;
  Facts facts;          // of its elements at all times
  bool written = false; // by some operation, at some time
  bool loaded = true;   // false: only written, with values that may differ within `facts`
  bool closed = false;  // no other operation accesses the memory
};

/// A view of a buffer. Strides may be 0 or negative where nothing is written.
struct Window {
  int buffer = 0;
  int64_t offset = 0; // of its first element in the buffer
  Shape extents, strides;
  std::vector<int> asked; // dimensions with static extents: part of the specialisation
  bool writable = true;
};

/// An operand of an operation: a value of the program, or a number.
struct Operand {
  int value = -1;
  bool isReal = false;
  int64_t integer = 0;
  double real = 0;
  static Operand of(int value) { return {.value = value}; }
  static Operand number(int64_t integer) { return {.integer = integer}; }
  static Operand number(double real) { return {.isReal = true, .real = real}; }
};

enum class Verb {
  elementwise, // `which` is the row of elementwise()
  cast,        // `which` is 0, one more than the number of the rounding, or 5: stochastic, by operands[1]
  full,
  constant, // a number for each element
  iota,
  programId,
  numPrograms,
  dim,
  reshape,
  transpose,
  broadcast,
  unsqueeze, // `axes` is the order, or the axis
  roll,      // `which` is by how much, axes[0] along what
  bitcast,
  pack,       // along axes[0]
  unpack,     // along axes[0]
  extract,    // from `begin` in `steps`
  split,      // the half of that number, `which`
  join,       // of two, along a new dimension
  interleave, // of two, along the last one
  concat,     // along axes[0]
  pad,        // `begin` elements of operands[1] before each dimension's, `steps` behind
  insert,     // operands[1] in the place of a part, which begins at `begin`
  topk,       // as many as the shape says along axes[0]: them, or where they were, by `which`
  softmax,    // along axes[0]
  reduce,     // `which` is the row of reductions(); `axes` stay at extent 1 where `keeps` is set
  scan,       // `which` is the row of scans(), along axes[0]; `keeps`: the other way
  gather,     // along axes[0]
  histogram,  // of operands[0] where the mask says, of shape[0] bins
  dot,
  dotScaled,
  load,
  store,
  loadRows,  // at the rows operands[0]
  storeRows, // operands[1] at the rows operands[0]
  atomicLoad,
  atomicStore,
  atomic,          // axes[0] is the row of atomicNames
  compareExchange, // `which` is the padding, or the order
  randomBits,
  random,
  randomNormal,
  deviceAssert, // that all of operands[0] hold
  assume,       // that operands[0] is a multiple of `which`, and from begin[0] to begin[1]
  copy,         // a variable of its own that begins as operands[0]
  assign,       // operands[0] becomes the value of `result`, which has one already
  loop,         // `result` runs from operands[0] below operands[1] in steps of operands[2] through `body`
  repeat,       // `result` is the iteration of `body`, below operands[0], while operands[1], if any, is true
  leave,        // where operands[0] holds; `which` is the row of leaveNames
  if_           // `body` where operands[0] holds, else `otherwise`
};

/// A dimension of a view and the index there.
struct Selected {
  int axis = 0;
  Operand index;
};

/// A dimension of a view and the positions that are left of it.
struct Sliced {
  int axis = 0;
  int64_t begin = 0, end = 0;
};

/// The atomics that change an element by a value, in the order of the language.
inline constexpr std::array atomicNames = {"add", "min", "max", "and", "or", "xor", "exchange"};

/// The functions that leave an iteration, a loop or the program.
inline constexpr std::array leaveNames = {"continue_if", "break_if", "return_if"};

struct Op {
  Verb verb = Verb::full;
  int result = -1; // the value that it gives, if any
  Type type = Type::f32;
  Shape shape; // of the result
  std::vector<Operand> operands = {};
  int which = 0;
  int window = -1;
  std::vector<Operand> offsets = {}; // of what is left when `selects` have each taken a dimension away
  std::vector<Selected> selects = {};
  std::vector<Sliced> slices = {}; // before them
  int index = 0;                   // how many dimensions of `shape` are those of the tiles among the offsets
  int mask = -1;                   // the value that says which elements are accessed, if there is one
  int cache = 0;                   // the hint of that number
  Scope scope = Scope::device;     // of an atomic
  bool keeps = false;
  Precision precision = Precision::ieee; // of a product
  Hints hints = {};                      // of a loop
  std::vector<int> axes = {};
  Shape begin = {}, steps = {}; // of a part
  std::vector<Op> body = {}, otherwise = {};
};

/// Windows that are one parameter of the kernel.
struct Parameter {
  Kernel::Parameter::Kind kind = Kernel::Parameter::Kind::view;
  int begin = 0, count = 1; // 0: an optional view that is absent, or an empty list
};

struct Program {
  uint64_t seed = 0;
  int number = 0;
  int64_t grid = 1;       // programs, …
  Shape axes = {1, 1, 1}; // … along each axis
  int warps = 4;          // of a program on a GPU: the config field of that name
  int stages = 0;         // rounds whose operands a GPU holds: the config field of that name, 0 the compiler's choice
  std::vector<Buffer> buffers;
  std::vector<Window> windows;        // the kernel's views, in order …
  std::vector<int64_t> scalars;       // … and its i64 scalars: values 0, 1, …
  std::vector<Parameter> groups = {}; // optional views and lists, in order
  int values = 0;
  std::vector<Op> ops;
};

/// Whether such an operation gives a value that is new.
bool givesValue(Verb verb);
/// The program of that number: a function of both alone.
Program generate(uint64_t seed, int number);
/// Which values some operation reads.
std::vector<bool> usedValues(const Program &program);
/// The parameters that are views, in order: the groups, and each window that is in none.
std::vector<Parameter> viewParameters(const Program &program);
/// The text of the parameter's registration: `(E4, E16)` names the extents of a view, equal ones alike, in every second
/// program.
std::string aboutOf(const Program &program, const Parameter &parameter);
/// The program as a kernel, which keeps a copy of it. Its parameters are viewParameters(), then the scalars.
Kernel kernelOf(const Program &program);
/// The program as a C++ kernel, with its memory in comments.
std::string listing(const Program &program);

} // namespace kiln::fuzz
