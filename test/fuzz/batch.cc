#include "test/fuzz/run.h"

#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace kiln::fuzz {

namespace {

constexpr int maxLevels = 2;
using PerLevel = std::array<bool, maxLevels>;

/// The copies of a buffer or scalar: one for each example along the levels of the batch that are set.
struct Copies {
  PerLevel isOwn = {};
  int64_t count = 1;
  bool interleaved = false; // elements of copies interleave, or each copy is contiguous
};

/// How a program uses a buffer.
struct Use {
  bool isWritten = false; // by other means than atomics whose order does not matter
  bool isChanged = false; // by these
};

class Batch {
public:
  explicit Batch(const Program &program);
  /// Whether every view has room for the dimensions of the batch.
  bool isPossible() const;
  Outcome runAtOnce(const std::shared_ptr<Device> &device) const;
  Outcome runLoop(const std::shared_ptr<Device> &device) const;
  std::string difference(const Outcome &want, const Outcome &got, bool isCpu) const;

private:
  const Program &program;
  int levels = 1;
  std::array<int64_t, maxLevels> examples = {1, 1};
  std::vector<Copies> buffers, scalars;
  std::vector<std::array<int, maxLevels>> places; // of each window: the dimension of each level

  std::mt19937_64 randomFor(int what, size_t index) const {
    return std::mt19937_64(program.seed * 7919 + static_cast<uint64_t>(program.number) * 31 + what * 1009 + index);
  }
  void findUses(const std::vector<Op> &ops, const std::vector<bool> &isUsed, std::vector<Use> &uses) const;
  int64_t levelsOf(const Window &window) const;
  bool hasRoom(const std::vector<Op> &ops, const std::vector<bool> &isTile) const;
  Copies draw(std::mt19937_64 random, bool mustOwn) const;
  int64_t copyOf(const Copies &copies, const std::array<int64_t, maxLevels> &example) const;
  int64_t scalarOf(size_t index, int64_t copy) const;
  size_t placeOf(size_t buffer, int64_t copy, size_t element) const;
  std::vector<Tensor> memory(const std::shared_ptr<Device> &device) const;
  TensorRef refOf(const std::vector<Tensor> &tensors, size_t window, int64_t copy) const;
};

} // namespace

/// Whether an operation with this order, and with an unused result, commutes. Its scope must include the other
/// examples.
static bool isCommutative(const Op &op, Type type) {
  return op.scope != Scope::block && op.verb == Verb::atomic &&
         std::string_view(atomicNames[op.axes[0]]) != "exchange" &&
         !(isFloat(type) && op.axes[0] == 0); // sums of more examples than the program's may round
}

void Batch::findUses(const std::vector<Op> &ops, const std::vector<bool> &isUsed, std::vector<Use> &uses) const {
  for (const Op &op : ops) {
    findUses(op.body, isUsed, uses);
    findUses(op.otherwise, isUsed, uses);
    if (op.window < 0 || op.verb == Verb::load || op.verb == Verb::loadRows || op.verb == Verb::atomicLoad ||
        op.verb == Verb::dim)
      continue;
    const int buffer = program.windows[op.window].buffer;
    const bool isCounter = isCommutative(op, program.buffers[buffer].type) && !isUsed[op.result];
    (isCounter ? uses[buffer].isChanged : uses[buffer].isWritten) = true;
  }
}

/// The buffers that some operation loads.
static void findLoaded(const Program &program, const std::vector<Op> &ops, std::vector<bool> &isLoaded) {
  for (const Op &op : ops) {
    findLoaded(program, op.body, isLoaded);
    findLoaded(program, op.otherwise, isLoaded);
    if (op.verb == Verb::load || op.verb == Verb::loadRows || op.verb == Verb::atomicLoad)
      isLoaded[program.windows[op.window].buffer] = true;
  }
}

Copies Batch::draw(std::mt19937_64 random, bool mustOwn) const {
  Copies result;
  for (int level = 0; level < levels; ++level) {
    result.isOwn[level] = mustOwn || random() % 10 < 6;
    result.count *= result.isOwn[level] ? examples[level] : 1;
  }
  result.interleaved = random() % 10 < 3;
  return result;
}

Batch::Batch(const Program &program) : program(program) {
  std::mt19937_64 random = randomFor(0, 0);
  levels = random() % 10 < 7 ? 1 : 2;
  for (int level = 0; level < levels; ++level)
    examples[level] = std::array{1, 2, 3, 3, 5}[random() % (level == 0 ? 5 : 3)];
  std::vector<Use> uses(program.buffers.size());
  std::vector<bool> isLoaded(program.buffers.size());
  findUses(program.ops, usedValues(program), uses);
  findLoaded(program, program.ops, isLoaded);
  for (size_t i = 0; i < program.buffers.size(); ++i)
    buffers.push_back(draw(randomFor(1, i), uses[i].isWritten || (uses[i].isChanged && isLoaded[i])));
  for (size_t i = 0; i < program.scalars.size(); ++i)
    scalars.push_back(draw(randomFor(2, i), false));
  // Every level has at least one tensor that is not shared.
  if (!program.windows.empty()) {
    Copies &first = buffers[program.windows[0].buffer];
    first = draw(randomFor(1, program.windows[0].buffer), true);
  }
  for (size_t i = 0; i < program.windows.size(); ++i) {
    std::mt19937_64 place = randomFor(3, i);
    auto rank = static_cast<uint64_t>(program.windows[i].extents.size());
    std::array<int, maxLevels> dimensions = {};
    for (int level = 0; level < levels; ++level)
      if (buffers[program.windows[i].buffer].isOwn[level])
        dimensions[level] = static_cast<int>(place() % ++rank);
    places.push_back(dimensions);
  }
}

/// Which values are tiles, of the operations.
static void findTiles(const std::vector<Op> &ops, std::vector<bool> &isTile) {
  for (const Op &op : ops) {
    if (op.result >= 0 && op.verb != Verb::loop && !op.shape.empty())
      isTile[op.result] = true;
    findTiles(op.body, isTile);
    findTiles(op.otherwise, isTile);
  }
}

/// Whether each access has room, within five dimensions, for one more scalar for each level of its batch.
bool Batch::hasRoom(const std::vector<Op> &ops, const std::vector<bool> &isTile) const {
  return std::ranges::all_of(ops, [&](const Op &op) {
    const auto isScalar = [&](const Operand &at) { return at.value < 0 || !isTile[at.value]; };
    const int64_t levelsOfView = op.window < 0 ? 0 : levelsOf(program.windows[op.window]);
    return op.index + std::ranges::count_if(op.offsets, isScalar) + static_cast<int64_t>(op.selects.size()) +
                   levelsOfView <=
               5 &&
           hasRoom(op.body, isTile) && hasRoom(op.otherwise, isTile);
  });
}

int64_t Batch::levelsOf(const Window &window) const { return std::ranges::count(buffers[window.buffer].isOwn, true); }

bool Batch::isPossible() const {
  std::vector<bool> isTile(program.values);
  findTiles(program.ops, isTile);
  return !program.windows.empty() && hasRoom(program.ops, isTile) &&
         std::ranges::all_of(program.windows, [&](const Window &window) {
           return static_cast<int64_t>(window.extents.size()) + levelsOf(window) <= 5;
         });
}

int64_t Batch::copyOf(const Copies &copies, const std::array<int64_t, maxLevels> &example) const {
  int64_t copy = 0, step = 1;
  for (int level = 0; level < levels; ++level)
    if (copies.isOwn[level]) {
      copy += example[level] * step;
      step *= examples[level];
    }
  return copy;
}

/// A scalar with the same promises as the program's: nearer to 0, on the same side, and a multiple of the same powers
/// of two.
int64_t Batch::scalarOf(size_t index, int64_t copy) const {
  const int64_t value = program.scalars[index];
  if (copy == 0 || value == 0)
    return value;
  std::mt19937_64 random = randomFor(4, index * 64 + copy);
  const auto less = static_cast<int64_t>(random() % static_cast<uint64_t>(std::abs(value) / 2 + 1));
  const int64_t whole = less - less % (value & -value);
  return value < 0 ? value + whole : value - whole;
}

size_t Batch::placeOf(size_t buffer, int64_t copy, size_t element) const {
  const Copies &copies = buffers[buffer];
  return copies.interleaved ? element * copies.count + copy : copy * program.buffers[buffer].elements + element;
}

std::vector<Tensor> Batch::memory(const std::shared_ptr<Device> &device) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Type type = program.buffers[i].type;
    std::vector<char> bytes(program.buffers[i].elements * buffers[i].count * bytesOf(type));
    for (int64_t copy = 0; copy < buffers[i].count; ++copy) {
      const auto words = contents(program, static_cast<int>(i), copy);
      for (size_t at = 0; at < words.size(); ++at)
        std::memcpy(&bytes[placeOf(i, copy, at) * bytesOf(type)], &words[at], bytesOf(type));
    }
    tensors.emplace_back(device, type, Shape{program.buffers[i].elements * buffers[i].count});
    tensors.back().upload(bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  return tensors;
}

/// A window of one copy.
TensorRef Batch::refOf(const std::vector<Tensor> &tensors, size_t window, int64_t copy) const {
  const Window &from = program.windows[window];
  TensorRef ref = tensors[from.buffer].ref();
  ref.data = static_cast<char *>(ref.data) + placeOf(from.buffer, copy, from.offset) * bytesOf(ref.type);
  ref.extents = from.extents;
  ref.strides = from.strides;
  if (buffers[from.buffer].interleaved)
    for (int64_t &stride : ref.strides)
      stride *= buffers[from.buffer].count;
  return ref;
}

Outcome Batch::runLoop(const std::shared_ptr<Device> &device) const {
  return outcomeOf(
      device, [&] { return memory(device); },
      [&](const std::vector<Tensor> &tensors) {
        const Kernel kernel = kernelOf(program);
        for (int64_t outer = 0; outer < examples[1]; ++outer)
          for (int64_t inner = 0; inner < examples[0]; ++inner) {
            std::vector<Arg> args;
            for (size_t i = 0; i < program.windows.size(); ++i)
              args.emplace_back(refOf(tensors, i, copyOf(buffers[program.windows[i].buffer], {inner, outer})));
            for (size_t i = 0; i < scalars.size(); ++i)
              args.emplace_back(scalarOf(i, copyOf(scalars[i], {inner, outer})));
            launch(*device, kernel, {program.axes[0], program.axes[1], program.axes[2]}, args);
          }
      });
}

Outcome Batch::runAtOnce(const std::shared_ptr<Device> &device) const {
  std::vector<Tensor> numbers; // of scalars that are examples' own
  return outcomeOf(
      device, [&] { return memory(device); },
      [&](const std::vector<Tensor> &tensors) {
        std::vector<Arg> args;
        std::array<std::vector<std::optional<int>>, maxLevels> axes;
        // Adds a level's dimension to a view of examples.
        const auto nest = [&](TensorRef &ref, const Copies &copies, int64_t unit,
                              const std::array<int, maxLevels> &at) {
          for (int level = 0; level < levels; ++level) {
            axes[level].push_back(copies.isOwn[level] ? std::optional(at[level]) : std::nullopt);
            if (!copies.isOwn[level])
              continue;
            ref.extents.insert(ref.extents.begin() + at[level], examples[level]);
            ref.strides.insert(ref.strides.begin() + at[level], unit);
            unit *= examples[level];
          }
        };
        for (size_t i = 0; i < program.windows.size(); ++i) {
          const int buffer = program.windows[i].buffer;
          TensorRef ref = refOf(tensors, i, 0);
          nest(ref, buffers[buffer], buffers[buffer].interleaved ? 1 : program.buffers[buffer].elements, places[i]);
          args.emplace_back(ref);
        }
        for (size_t i = 0; i < scalars.size(); ++i) {
          std::vector<int64_t> values;
          for (int64_t copy = 0; copy < scalars[i].count; ++copy)
            values.push_back(scalarOf(i, copy));
          numbers.emplace_back(device, i64, Shape{scalars[i].count});
          numbers.back().upload(values.data(), static_cast<int64_t>(values.size() * sizeof(int64_t)));
          TensorRef ref = numbers.back().ref();
          ref.extents.clear();
          ref.strides.clear();
          nest(ref, scalars[i], 1, {});
          args.push_back(ref.extents.empty() ? Arg(values[0]) : Arg(ref));
        }
        Kernel kernel = kernelOf(program);
        for (int level = 0; level < levels; ++level)
          kernel = vmap(kernel, axes[level]);
        launch(*device, kernel, {program.axes[0], program.axes[1], program.axes[2] * examples[0] * examples[1]}, args);
      });
}

std::string Batch::difference(const Outcome &want, const Outcome &got, bool isCpu) const {
  if (!got.error.empty() || !want.error.empty())
    return got.error.empty() ? fmt::format("a launch for each example says: {}\n", want.error)
                             : fmt::format("vmap says: {}\n", got.error);
  std::string text;
  if (got.failure.empty() != want.failure.empty())
    text += fmt::format("vmap says '{}', a launch for each example '{}'\n", got.failure, want.failure);
  int left = 6;
  for (size_t index = 0; index < buffers.size(); ++index) {
    Buffer buffer = program.buffers[index];
    if (isCpu && buffers[index].count == examples[0] * examples[1]) // to the bit where examples have their own
      buffer.facts = anything(buffer.type), buffer.facts.openZero = false;
    for (int64_t copy = 0; copy < buffers[index].count; ++copy)
      for (int64_t i = 0; i < buffer.elements && left > 0; ++i) {
        const size_t at = placeOf(index, copy, i);
        const uint64_t now = wordAt(got.buffers[index], buffer.type, at);
        const uint64_t wanted = wordAt(want.buffers[index], buffer.type, at);
        if (agree(buffer, now, wanted))
          continue;
        text += fmt::format("element {} of example {} of buffer {} is {}, in a launch of its own {}\n", i, copy, index,
                            wordText(buffer.type, now), wordText(buffer.type, wanted));
        --left;
      }
  }
  return text;
}

std::optional<std::string> compareBatch(const Program &program, const std::shared_ptr<Device> &device) {
  Program plain = program;
  plain.groups.clear(); // views of a list may have examples along other dimensions here
  const Batch batch(plain);
  if (!batch.isPossible())
    return {};
  return batch.difference(batch.runLoop(device), batch.runAtOnce(device), device->name().starts_with("cpu"));
}

} // namespace kiln::fuzz
