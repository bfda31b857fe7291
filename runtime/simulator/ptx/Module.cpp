// Names and widths of types and state spaces. Immediate post-dominators by the algorithm of Cooper, Harvey and Kennedy
// on the reversed control-flow graph, and reads of registers that may not have been written.

#include "runtime/simulator/ptx/Module.h"

#include <algorithm>

namespace kiln::ptx {

namespace {
struct TypeInfo {
  const char *name;
  int bits;
};
} // namespace

static constexpr TypeInfo types[] = {
    {"pred", 1},   {"b8", 8},      {"b16", 16}, {"b32", 32},  {"b64", 64},  {"b128", 128}, {"u8", 8},
    {"u16", 16},   {"u32", 32},    {"u64", 64}, {"s8", 8},    {"s16", 16},  {"s32", 32},   {"s64", 64},
    {"u16x2", 32}, {"s16x2", 32},  {"f16", 16}, {"bf16", 16}, {"f32", 32},  {"f64", 64},   {"tf32", 32},
    {"f16x2", 32}, {"bf16x2", 32}, {"e4m3", 8}, {"e5m2", 8},  {"f32x2", 64}};

int bitsOf(Type type) { return types[static_cast<size_t>(type)].bits; }

const char *nameOf(Type type) { return types[static_cast<size_t>(type)].name; }

std::optional<Type> typeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(types); ++i)
    if (name == types[i].name)
      return static_cast<Type>(i);
  return std::nullopt;
}

const char *nameOf(Space space) {
  static constexpr const char *names[] = {"generic", "global", "shared", "local", "const", "param"};
  return names[static_cast<int>(space)];
}

namespace {
struct Block {
  int begin = 0, end = 0; // instructions
  std::vector<int> successors, predecessors;
};

struct Graph {
  std::vector<Block> blocks; // the last one is the end of the function, without instructions
  std::vector<int> blockOf;  // of each instruction
};
} // namespace

static bool endsBlock(const Instruction &instruction) {
  return instruction.opcode == "bra" || instruction.opcode == "brx" || instruction.opcode == "ret" ||
         instruction.opcode == "exit" || instruction.opcode == "trap";
}

/// The targets of a branch.
static std::vector<int> targetsOf(const Function &function, const Instruction &instruction) {
  std::vector<int> targets;
  for (const Operand &operand : function.operandsOf(instruction)) {
    if (operand.kind == Operand::Kind::label)
      targets.push_back(function.labels[static_cast<size_t>(operand.index)]);
    if (operand.kind == Operand::Kind::list && instruction.opcode == "brx")
      for (const int label : function.branchTargets[static_cast<size_t>(operand.index)])
        targets.push_back(function.labels[static_cast<size_t>(label)]);
  }
  return targets;
}

static Graph makeGraph(const Function &function) {
  const int count = static_cast<int>(function.instructions.size());
  std::vector<bool> begins(static_cast<size_t>(count) + 1, false);
  begins[0] = true;
  for (const int label : function.labels)
    begins[static_cast<size_t>(std::max(label, 0))] = true;
  for (int i = 0; i < count; ++i)
    if (endsBlock(function.instructions[static_cast<size_t>(i)]))
      begins[static_cast<size_t>(i) + 1] = true;
  Graph graph;
  graph.blockOf.assign(static_cast<size_t>(count) + 1, 0);
  for (int i = 0; i < count; ++i) {
    if (begins[static_cast<size_t>(i)])
      graph.blocks.push_back({i, i, {}, {}});
    graph.blocks.back().end = i + 1;
    graph.blockOf[static_cast<size_t>(i)] = static_cast<int>(graph.blocks.size()) - 1;
  }
  const int end = static_cast<int>(graph.blocks.size());
  graph.blocks.push_back({count, count, {}, {}});
  graph.blockOf[static_cast<size_t>(count)] = end;
  for (int block = 0; block < end; ++block) {
    const Instruction &last =
        function.instructions[static_cast<size_t>(graph.blocks[static_cast<size_t>(block)].end) - 1];
    std::vector<int> &successors = graph.blocks[static_cast<size_t>(block)].successors;
    if (last.opcode == "ret" || last.opcode == "exit" || last.opcode == "trap")
      successors.push_back(end);
    for (const int target : targetsOf(function, last))
      successors.push_back(graph.blockOf[static_cast<size_t>(target)]);
    const bool leaves = endsBlock(last) && last.guard < 0;
    if (!leaves)
      successors.push_back(graph.blockOf[static_cast<size_t>(graph.blocks[static_cast<size_t>(block)].end)]);
    for (const int successor : successors)
      graph.blocks[static_cast<size_t>(successor)].predecessors.push_back(block);
  }
  return graph;
}

/// The blocks from which the end can be reached, each after its successors except for loops.
static std::vector<int> orderFromEnd(const Graph &graph) {
  std::vector<int> order;
  std::vector<bool> seen(graph.blocks.size(), false);
  std::vector<std::pair<int, size_t>> stack = {{static_cast<int>(graph.blocks.size()) - 1, 0}};
  seen.back() = true;
  while (!stack.empty()) {
    auto &[block, next] = stack.back();
    const std::vector<int> &predecessors = graph.blocks[static_cast<size_t>(block)].predecessors;
    if (next == predecessors.size()) {
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    const int predecessor = predecessors[next++];
    if (!seen[static_cast<size_t>(predecessor)]) {
      seen[static_cast<size_t>(predecessor)] = true;
      stack.push_back({predecessor, 0});
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// --- Registers -----------------------------------------------------------------------------------------------------

namespace {
/// A set of registers.
class Registers {
public:
  explicit Registers(size_t count, bool all = false) : words((count + 63) / 64, all ? ~uint64_t{0} : 0) {}
  bool has(int reg) const { return words[static_cast<size_t>(reg) / 64] >> (reg % 64) & 1; }
  void add(int reg) { words[static_cast<size_t>(reg) / 64] |= uint64_t{1} << (reg % 64); }
  void add(const Registers &other) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] |= other.words[i];
  }
  /// Intersects with another set; returns whether it changed.
  bool keep(const Registers &other) {
    bool went = false;
    for (size_t i = 0; i < words.size(); ++i) {
      went |= (words[i] & ~other.words[i]) != 0;
      words[i] &= other.words[i];
    }
    return went;
  }

private:
  std::vector<uint64_t> words;
};
} // namespace

std::vector<Use> unsureReads(const Function &function, const std::vector<Use> &uses) {
  if (function.instructions.empty())
    return {};
  const Graph graph = makeGraph(function);
  const size_t count = function.registers.size();
  std::vector<Registers> written(graph.blocks.size(), Registers(count)); // registers written by each block
  std::vector<Registers> before(graph.blocks.size(), Registers(count, true));
  const auto counts = [&](const Use &use) {
    return use.isWrite && function.instructions[static_cast<size_t>(use.instruction)].guard < 0;
  };
  for (const Use &use : uses)
    if (counts(use))
      written[static_cast<size_t>(graph.blockOf[static_cast<size_t>(use.instruction)])].add(use.reg);
  before[0] = Registers(count);
  std::vector<int> changed = {0};
  std::vector<bool> visited(graph.blocks.size(), false);
  while (!changed.empty()) {
    const auto block = static_cast<size_t>(changed.back());
    changed.pop_back();
    visited[block] = true;
    Registers after = before[block];
    after.add(written[block]);
    for (const int successor : graph.blocks[block].successors)
      if (before[static_cast<size_t>(successor)].keep(after) || !visited[static_cast<size_t>(successor)])
        changed.push_back(successor);
  }
  std::vector<Use> unsure;
  int current = -1;
  Registers here(count);
  for (const Use &use : uses) {
    const int block = graph.blockOf[static_cast<size_t>(use.instruction)];
    if (block != current)
      here = before[static_cast<size_t>(current = block)];
    if (!use.isWrite && !here.has(use.reg) && visited[static_cast<size_t>(block)] &&
        (unsure.empty() || unsure.back().instruction != use.instruction || unsure.back().reg != use.reg))
      unsure.push_back(use);
    if (counts(use))
      here.add(use.reg);
  }
  return unsure;
}

// --- Reconvergence points ------------------------------------------------------------------------------------------

std::vector<int> meetingPoints(const Function &function) {
  std::vector<int> points(function.instructions.size(), -1);
  if (points.empty())
    return points;
  const Graph graph = makeGraph(function);
  const std::vector<int> order = orderFromEnd(graph);
  const int end = static_cast<int>(graph.blocks.size()) - 1;
  std::vector<int> rank(graph.blocks.size(), -1), dominator(graph.blocks.size(), -1);
  for (size_t i = 0; i < order.size(); ++i)
    rank[static_cast<size_t>(order[i])] = static_cast<int>(i);
  dominator[static_cast<size_t>(end)] = end;
  const auto meet = [&](int a, int b) {
    while (a != b) {
      while (rank[static_cast<size_t>(a)] > rank[static_cast<size_t>(b)])
        a = dominator[static_cast<size_t>(a)];
      while (rank[static_cast<size_t>(b)] > rank[static_cast<size_t>(a)])
        b = dominator[static_cast<size_t>(b)];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const int block : order) {
      if (block == end)
        continue;
      int found = -1;
      for (const int successor : graph.blocks[static_cast<size_t>(block)].successors)
        if (dominator[static_cast<size_t>(successor)] >= 0)
          found = found < 0 ? successor : meet(found, successor);
      changed |= found != dominator[static_cast<size_t>(block)];
      dominator[static_cast<size_t>(block)] = found;
    }
  }
  for (size_t i = 0; i < points.size(); ++i) {
    const int block = graph.blockOf[i];
    const int at = dominator[static_cast<size_t>(block)];
    if (endsBlock(function.instructions[i]) && at >= 0 && at != end)
      points[i] = graph.blocks[static_cast<size_t>(at)].begin;
  }
  return points;
}

} // namespace kiln::ptx
