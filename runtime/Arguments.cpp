// Checks a launch's arguments, and packs them into the block that a compiled kernel reads. Every launch is checked
// twice: against the kernel, before it is compiled, and against the executable.

#include "runtime/Arguments.h"
#include "lowering/Abi.h"
#include "runtime/Facts.h"
#include "runtime/Tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace kiln {

std::string textOf(const Signature::Parameter &parameter) {
  if (!parameter.isView)
    return fmt::format("{} scalar", nameOf(parameter.type));
  std::string extents;
  for (int64_t extent : parameter.extents)
    extents += (extents.empty() ? "" : "x") + (extent == Signature::dynamic ? "?" : std::to_string(extent));
  return fmt::format("{}[{}]", nameOf(parameter.type), extents);
}

// --- Checks of every argument ----------------------------------------------------------------------------------------

/// Throws Error unless the view's extents, strides and memory are valid.
static void checkView(const std::string &kernel, const std::string &name, size_t i, const Arg &arg, void *workspace) {
  const TensorRef &ref = arg.ref;
  const auto wrong = [&](const std::string &expected, const std::string &got) {
    return Error(
        fmt::format("kernel '{}': expected {} to {}, but got {}", kernel, calledArgument(name, i), expected, got));
  };
  if (ref.strides.size() != ref.extents.size())
    throw wrong("have a stride for each extent", fmt::format("{} strides for {}", ref.strides.size(), textOf(arg)));
  const int64_t size = bytesOf(ref.type);
  int64_t bytes = size, low = 0, high = size; // first byte of the lowest element, last byte of the highest
  bool empty = false, tooLarge = false, tooFar = false;
  for (size_t d = 0; d < ref.extents.size(); ++d) {
    const int64_t extent = ref.extents[d];
    if (extent < 0 || extent > int64_t{1} << abi::extentBits)
      throw wrong(fmt::format("have extents from 0 to 2^{}", abi::extentBits), textOf(arg));
    empty |= extent == 0;
    tooLarge |= __builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes);
    if (extent <= 1)
      continue; // its stride is not used
    int64_t span = 0;
    tooFar |= __builtin_mul_overflow(extent - 1, ref.strides[d], &span) || __builtin_mul_overflow(span, size, &span);
    int64_t &end = span < 0 ? low : high;
    tooFar |= __builtin_add_overflow(end, span, &end);
  }
  if (tooLarge)
    throw wrong("take less than 2^63 bytes", textOf(arg));
  const auto outside = [&] {
    return wrong("lie within the machine's addresses",
                 fmt::format("{} with strides {}", textOf(arg), textOf(ref.strides)));
  };
  if (tooFar)
    throw outside();
  if (empty)
    return;
  if (arg.kind == Arg::Kind::workspace && !workspace)
    throw Error(fmt::format("kernel '{}': expected {} to lie in a workspace, but the launch has none", kernel,
                            calledArgument(name, i)));
  if (arg.kind == Arg::Kind::tensor && !ref.data)
    throw wrong("have memory", textOf(arg) + " without");
  const auto first = reinterpret_cast<intptr_t>(dataOf(arg, workspace));
  if (first + low < 0 || __builtin_add_overflow(first, high, &high))
    throw outside();
}

/// Throws Error unless all batched arguments have the same batch size.
static void checkExamples(const Kernel &kernel, const std::vector<std::optional<int>> &batch,
                          const std::vector<Arg> &args) {
  std::optional<size_t> first;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!batch[i] || *batch[i] >= args[i].ref.rank()) // a missing dimension is reported when the kernel is traced
      continue;
    const int64_t examples = args[i].ref.extents[*batch[i]];
    if (const int64_t want = first ? args[*first].ref.extents[*batch[*first]] : examples; examples != want)
      throw Error(fmt::format("kernel '{}': expected {} to have {} examples along dimension {}, as {} has, but got {}",
                              kernel.name, kernel.called(i), want, *batch[i], kernel.called(*first), textOf(args[i])));
    first = first.value_or(i);
  }
}

void checkArguments(const Kernel &kernel, const std::vector<Arg> &args, void *workspace) {
  if (args.size() != kernel.parameters.size())
    throw Error(fmt::format("kernel '{}': expected {} arguments, but got {}", kernel.name, kernel.parameters.size(),
                            args.size()));
  for (size_t i = 0; i < args.size(); ++i) {
    const bool wantsView = kernel.parameters[i].isView();
    if (wantsView ? !args[i].isView() : args[i].kind != Arg::Kind::scalar)
      throw Error(fmt::format("kernel '{}': expected {} to be a {}, but got {}", kernel.name, kernel.called(i),
                              wantsView ? "tensor" : "scalar", textOf(args[i])));
    if (wantsView)
      checkView(kernel.name, kernel.parameters[i].name, i, args[i], workspace);
  }
  for (const auto &batch : kernel.batches)
    checkExamples(kernel, batch, args);
}

// --- Checks against an executable ------------------------------------------------------------------------------------

/// Whether type, rank and extents match.
static bool fits(const Signature::Parameter &parameter, const Arg &arg) {
  if (arg.kind == Arg::Kind::scalar)
    return arg.scalarType == parameter.type;
  return arg.ref.type == parameter.type &&
         std::ranges::equal(parameter.extents, arg.ref.extents,
                            [](int64_t want, int64_t got) { return want == Signature::dynamic || want == got; });
}

/// Throws Error unless the argument matches the executable's specialisation.
static void checkFits(const Executable &executable, size_t i, const Arg &arg, void *workspace) {
  const std::string &kernel = executable.kernel();
  const Signature::Parameter &parameter = executable.signature().parameters[i];
  const bool isView = arg.kind != Arg::Kind::scalar;
  if (isView)
    checkView(kernel, parameter.name, i, arg, workspace);
  for (size_t d = 0; isView && parameter.written && d < arg.ref.extents.size(); ++d)
    if (arg.ref.strides[d] == 0 && arg.ref.extents[d] > 1 && arg.ref.count() > 0)
      throw Error(fmt::format("kernel '{}': expected {}, which the kernel writes, to have no stride 0, but dimension "
                              "{} of {} has",
                              kernel, calledArgument(parameter.name, i), d, textOf(arg)));
  const auto wrong = [&](const std::string &expected, const std::string &got) {
    return Error(fmt::format("kernel '{}': expected {} to {}, as it was compiled for, but got {}", kernel,
                             calledArgument(parameter.name, i), expected, got));
  };
  if (isView != parameter.isView || !fits(parameter, arg))
    throw wrong("be " + textOf(parameter), textOf(arg));
  if (!isView)
    return;
  const auto withStrides = [&] { return fmt::format("{} with strides {}", textOf(arg), textOf(arg.ref.strides)); };
  for (size_t d = 0; d < parameter.strides.size(); ++d) // the stride of a dimension of extent 0 or 1 is not used
    if (const int64_t want = parameter.strides[d];
        want != Signature::dynamic && want != arg.ref.strides[d] && arg.ref.extents[d] > 1)
      throw wrong(fmt::format("have stride {} in dimension {}", want, d), withStrides());
  if (arg.ref.device && arg.ref.device != executable.memory())
    throw Error(fmt::format("kernel '{}': expected {} to be on device '{}', but got {} on '{}'", kernel,
                            calledArgument(parameter.name, i), executable.device(), textOf(arg), *arg.ref.device));
  const Fact fact = factOf(arg, workspace,
                           {.alignment = parameter.alignment > 1,
                            .stridesBy16 = parameter.stridesBy16,
                            .extentBy16 = parameter.extentBy16,
                            .fits32 = parameter.fits32});
  if (fact.alignment < parameter.alignment)
    throw wrong(fmt::format("be aligned to {} bytes", parameter.alignment),
                fmt::format("{} aligned to {}", textOf(arg), fact.alignment));
  if (fact.stridesBy16 < parameter.stridesBy16)
    throw wrong("have outer strides divisible by 16", withStrides());
  if (fact.extentBy16 < parameter.extentBy16)
    throw wrong("have a last extent divisible by 16", textOf(arg));
  if (fact.fits32 < parameter.fits32)
    throw wrong("have extents to 2^30 and strides from 0 to 2^31 - 1 bytes", withStrides());
}

/// Throws Error if views overlap that the executable assumes to be disjoint.
static void checkDisjoint(const std::string &kernel, const Signature &signature, const std::vector<Arg> &args,
                          void *workspace) {
  if (signature.disjoint.empty())
    return;
  llvm::SmallVector<Range, 16> ranges(args.size());
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].kind != Arg::Kind::scalar)
      ranges[i] = rangeOf(args[i], workspace);
  for (const auto &[i, j] : signature.disjoint)
    if (ranges[i].overlaps(ranges[j]))
      throw Error(fmt::format("kernel '{}': {} and {} overlap, but it was compiled for arguments that do not overlap",
                              kernel, calledArgument(signature.parameters[i].name, i),
                              calledArgument(signature.parameters[j].name, j)));
}

/// Throws Error if extents differ that the executable assumes to be equal.
static void checkEqual(const std::string &kernel, const Signature &signature, const std::vector<Arg> &args) {
  for (const auto &[first, firstAxis, second, secondAxis] : signature.equalExtents)
    if (args[first].ref.extents[firstAxis] != args[second].ref.extents[secondAxis])
      throw Error(
          fmt::format("kernel '{}': expected {} to have the extent of dimension {} of {} in dimension {}, as it "
                      "was compiled for, but got {} and {}; extents of other names in its registration may differ",
                      kernel, calledArgument(signature.parameters[second].name, second), firstAxis,
                      calledArgument(signature.parameters[first].name, first), secondAxis, textOf(args[second]),
                      textOf(args[first])));
}

static void checkGrid(const std::string &kernel, Grid grid) {
  int64_t programs = 1;
  for (int64_t extent : grid)
    if (extent < 0 || extent > int64_t{1} << abi::gridBits || __builtin_mul_overflow(programs, extent, &programs))
      throw Error(fmt::format("kernel '{}': expected a grid of extents from 0 to 2^{} and less than 2^63 programs, but "
                              "got {}x{}x{}",
                              kernel, abi::gridBits, grid[0], grid[1], grid[2]));
}

// --- The argument block ----------------------------------------------------------------------------------------------

/// A scalar's slot; a narrower value is in the low bytes.
static uint64_t bitsOf(const Arg &arg) {
  if (!isFloat(arg.scalarType))
    return static_cast<uint64_t>(arg.integer);
  if (arg.scalarType == Type::f32) // the most common type
    return std::bit_cast<uint32_t>(static_cast<float>(arg.real));
  uint64_t bits = 0;
  fromDoubles({arg.real}, arg.scalarType, &bits);
  return bits;
}

/// The content of a slot.
static uint64_t wordOf(const abi::Slot &slot, const Arg &arg, void *workspace) {
  switch (slot.kind) {
  case abi::Slot::pointer:
    return reinterpret_cast<uintptr_t>(dataOf(arg, workspace));
  case abi::Slot::extent:
    return arg.ref.extents[slot.dimension];
  case abi::Slot::stride:
    return arg.ref.extents[slot.dimension] > 1 ? arg.ref.strides[slot.dimension] : 0; // not used
  case abi::Slot::scalar:
    return bitsOf(arg);
  }
  throw Error("no such kind of slot", Fault::internal);
}

ArgumentBlock pack(const Executable &executable, Grid grid, const std::vector<Arg> &args, void *workspace) {
  const std::string &kernel = executable.kernel();
  const Signature &signature = executable.signature();
  if (args.size() != signature.parameters.size())
    throw Error(fmt::format("kernel '{}': expected {} arguments, but got {}", kernel, signature.parameters.size(),
                            args.size()));
  checkGrid(kernel, grid);
  ArgumentBlock block(grid.begin(), grid.end());
  for (size_t i = 0; i < args.size(); ++i)
    checkFits(executable, i, args[i], workspace);
  checkEqual(kernel, signature, args);
  for (const abi::Slot &slot : signature.slots)
    block.push_back(wordOf(slot, args[slot.argument], workspace));
  checkDisjoint(kernel, signature, args, workspace);
  return block;
}

ArgumentBlock pack(const Executable &executable, const Launch &launch, void *workspace) {
  if (launch.others.empty())
    return pack(executable, launch.grid, launch.args, workspace);
  ArgumentBlock all = {0, 1, 1};
  int64_t programs = 0;
  const auto add = [&](const Grid &grid, const std::vector<Arg> &args) {
    const ArgumentBlock one = pack(executable, grid, args, workspace);
    if (__builtin_add_overflow(programs, programsOf(one.data()), &programs))
      throw Error(
          fmt::format("kernel '{}': expected problems of less than 2^63 programs together", executable.kernel()));
    all.append(one);
  };
  add(launch.grid, launch.args);
  for (const Launch::Problem &other : launch.others)
    add(other.grid, other.args);
  all[0] = static_cast<uint64_t>(programs);
  return all;
}

void checkGpuGrid(const Executable &executable, const uint64_t *block) {
  constexpr uint64_t most[] = {0x7fffffff, 65535, 65535};
  if (block[0] > most[0] || block[1] > most[1] || block[2] > most[2])
    throw Error(
        fmt::format("kernel '{}': expected a grid of at most {}x{}x{} programs on device '{}', but got {}x{}x{}",
                    executable.kernel(), most[0], most[1], most[2], executable.device(), block[0], block[1], block[2]));
}

} // namespace kiln
