// Converts DLPack tensors and scalars to Kiln's arguments.

#include "tools/libkiln/handles.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::c {

// --- Types -----------------------------------------------------------------------------------------------------------

namespace {
/// A type's code in DLPack, its bits and its lanes.
struct Coded {
  int code, bits;
  Type type;
  int lanes = 1;
};

/// An argument in messages: `argument 1`, or `argument 1[0]` in a list.
struct Place {
  size_t argument;
  std::optional<size_t> item = {};
};
} // namespace

enum : int {
  codeSigned = 0,
  codeUnsigned = 1,
  codeFloat = 2,
  codeBfloat = 4,
  codeBool = 6,
  codeE4m3 = 10,
  codeE5m2 = 12,
  codeE8m0 = 14,
  codeE2m1 = 17
};

static constexpr Coded types[] = {
    {codeSigned, 8, i8},        {codeSigned, 16, i16},   {codeSigned, 32, i32},   {codeSigned, 64, i64},
    {codeUnsigned, 8, u8},      {codeUnsigned, 16, u16}, {codeUnsigned, 32, u32}, {codeUnsigned, 64, u64},
    {codeFloat, 16, f16},       {codeFloat, 32, f32},    {codeFloat, 64, f64},    {codeBfloat, 16, bf16},
    {codeBool, 8, boolean},     {codeE4m3, 8, f8e4m3},   {codeE5m2, 8, f8e5m2},   {codeE8m0, 8, f8e8m0},
    {codeE2m1, 4, f4e2m1x2, 2},
};

static Error wrong(const Place &place, const std::string &text) {
  const std::string item = place.item ? fmt::format("[{}]", *place.item) : "";
  return Error(fmt::format("argument {}{}: expected {}", place.argument, item, text));
}

static Type typeOf(int code, int bits, int lanes, const Place &place) {
  for (const Coded &each : types)
    if (each.code == code && each.bits == bits && each.lanes == lanes)
      return each.type;
  std::string known;
  for (const Coded &each : types)
    known += fmt::format("{}{} ({}, {}, {})", known.empty() ? "" : ", ", nameOf(each.type), each.code, each.bits,
                         each.lanes);
  throw wrong(place,
              fmt::format("a type code, bits and lanes out of {}, but got ({}, {}, {})", known, code, bits, lanes));
}

// --- Tensors ---------------------------------------------------------------------------------------------------------

/// DLPack's device types.
enum : int32_t { onHost = 1, onCuda = 2, onPinnedHost = 3, onManaged = 13 };

static std::string placeText(int32_t type, int32_t id) {
  return type == onHost || type == onPinnedHost ? "the host"
         : type == onCuda                       ? fmt::format("cuda:{}", id)
         : type == onManaged                    ? "managed memory"
                                                : fmt::format("DLPack's device ({}, {})", type, id);
}

static void expectPlace(const kiln_device &device, const kiln_tensor &tensor, const Place &place) {
  const bool isHost = tensor.device_type == onHost || tensor.device_type == onPinnedHost;
  const bool isHere = device.type == onHost ? isHost
                                            : (tensor.device_type == onCuda && tensor.device_id == device.id) ||
                                                  tensor.device_type == onManaged;
  if (!isHere)
    throw wrong(place,
                fmt::format("memory of {}, where '{}' computes, but it is on {}", placeText(device.type, device.id),
                            device.device->name(), placeText(tensor.device_type, tensor.device_id)));
}

/// Sets the strides of row-major memory without gaps.
static void setDense(TensorRef &ref, const Place &place) {
  ref.strides.resize(ref.extents.size());
  int64_t step = 1;
  bool overflows = false;
  for (size_t axis = ref.extents.size(); axis-- > 0;) {
    ref.strides[axis] = step;
    overflows |= __builtin_mul_overflow(step, std::max<int64_t>(ref.extents[axis], 1), &step);
  }
  if (overflows)
    throw wrong(place, fmt::format("a tensor of less than 2^63 elements, but got shape {}", textOf(ref.extents)));
}

/// Sets `ref`, whose memory for extents and strides is used again.
static void setTensor(TensorRef &ref, const kiln_device &device, const kiln_tensor &tensor, const Place &place) {
  static constexpr int maxRank = 5;
  if (tensor.rank < 0 || tensor.rank > maxRank)
    throw wrong(place, fmt::format("a tensor of rank 0 to {}, but got rank {}", maxRank, tensor.rank));
  const auto rank = static_cast<size_t>(tensor.rank);
  if (rank > 0 && !tensor.shape)
    throw wrong(place, fmt::format("a shape with a tensor of rank {}, but got null", rank));
  ref.type = typeOf(tensor.type_code, tensor.type_bits, tensor.lanes, place);
  ref.extents.assign(tensor.shape, tensor.shape + rank);
  if (rank == 0)
    ref.extents.assign(1, 1);
  bool isEmpty = false;
  for (const int64_t extent : ref.extents) {
    isEmpty |= extent == 0;
    if (extent < 0)
      throw wrong(place, fmt::format("extents from 0, but got {}", textOf(ref.extents)));
  }
  if (!isEmpty)
    expectPlace(device, tensor, place);
  ref.data = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset);
  if (!isEmpty && !tensor.data)
    throw wrong(place, fmt::format("memory for a tensor of shape {}, but got null", textOf(ref.extents)));
  if (reinterpret_cast<uintptr_t>(ref.data) % static_cast<uintptr_t>(bytesOf(ref.type)))
    throw wrong(place, fmt::format("memory at a multiple of {} bytes for {}, but got {}", bytesOf(ref.type),
                                   nameOf(ref.type), ref.data));
  if (rank == 0 || !tensor.strides)
    setDense(ref, place);
  else
    ref.strides.assign(tensor.strides, tensor.strides + rank);
}

// --- Arguments -------------------------------------------------------------------------------------------------------

static Arg scalarOf(const kiln_argument &argument, const Place &place) {
  const Type type = typeOf(argument.type_code, argument.type_bits, 1, place);
  if (isFloat(type))
    return Arg(argument.value.real).as(type);
  if (isUnsigned(type)) // its bits fit an int64_t
    return Arg(static_cast<uint64_t>(argument.value.integer)).as(type);
  return Arg(argument.value.integer).as(type);
}

static void setArg(Arg &arg, const kiln_device &device, const kiln_argument &argument, const Place &place) {
  if (argument.tensor) {
    arg.kind = Arg::Kind::tensor;
    arg.items.clear();
    return setTensor(arg.ref, device, *argument.tensor, place);
  }
  if (argument.type_bits) {
    arg = scalarOf(argument, place);
    return;
  }
  arg = std::nullopt;
  if (!argument.is_list)
    return;
  if (place.item)
    throw wrong(place, "a tensor, but got a list");
  if (argument.count > 0 && !argument.items)
    throw wrong(place, fmt::format("a list of {}, but got null", argument.count));
  std::vector<Arg> items(argument.count, std::nullopt);
  for (size_t i = 0; i < argument.count; ++i)
    setArg(items[i], device, argument.items[i], {place.argument, i});
  arg = Arg::list(std::move(items));
}

void setArgs(std::vector<Arg> &args, const kiln_device &device, const kiln_argument *arguments, size_t count) {
  if (count > 0)
    expectGiven(arguments, "arguments");
  args.resize(count, std::nullopt);
  for (size_t i = 0; i < count; ++i)
    setArg(args[i], device, arguments[i], {i});
}

void expectWritable(const std::string &kernel, const Signature &signature, const kiln_argument *arguments,
                    size_t count) {
  size_t next = 0; // in the signature's parameters
  const auto check = [&](const kiln_argument &argument) {
    const Signature::Parameter &parameter = signature.parameters[next++];
    if (parameter.isView && parameter.written && argument.is_read_only)
      throw Error(fmt::format("kernel '{}': expected memory that may be written for {}, but got a read-only tensor",
                              kernel, calledArgument(parameter.name, next - 1)));
  };
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].tensor || arguments[i].type_bits)
      check(arguments[i]);
    else if (arguments[i].is_list)
      std::for_each(arguments[i].items, arguments[i].items + arguments[i].count, check);
  }
}

// --- Loans -----------------------------------------------------------------------------------------------------------

namespace {
struct Range {
  uintptr_t begin, end;
};
} // namespace

/// The bytes from the first element to the end of the last one. Throws Error if they exceed the address space.
static Range rangeOf(const TensorRef &tensor) {
  int64_t begin = 0, end = bytesOf(tensor.type);
  bool overflows = false;
  for (size_t i = 0; i < tensor.extents.size(); ++i) {
    int64_t bytes = 0;
    overflows |= __builtin_mul_overflow(tensor.extents[i] - 1, tensor.strides[i], &bytes);
    overflows |= __builtin_mul_overflow(bytes, bytesOf(tensor.type), &bytes);
    overflows |= __builtin_add_overflow(bytes < 0 ? begin : end, bytes, bytes < 0 ? &begin : &end);
  }
  const auto at = reinterpret_cast<uintptr_t>(tensor.data);
  const Range range = {at + static_cast<uintptr_t>(begin), at + static_cast<uintptr_t>(end)};
  if (overflows || range.begin > at || range.end < at)
    throw Error(fmt::format("expected a tensor within the address space, but got {} with strides {}",
                            textOf(tensor.extents), textOf(tensor.strides)));
  return range;
}

/// The address ranges of all nonempty tensors; overlapping ones are merged.
static std::vector<Range> rangesOf(const std::vector<TensorRef> &tensors) {
  std::vector<Range> ranges, merged;
  for (const TensorRef &tensor : tensors)
    ranges.push_back(rangeOf(tensor));
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
  for (const Range &range : ranges) {
    if (!merged.empty() && range.begin < merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  }
  return merged;
}

Loan::Loan(const kiln_device &device, const std::vector<Arg> &args) {
  if (!device.borrowsHostMemory)
    return;
  auto &simulator = static_cast<SimulatorDevice &>(*device.device);
  std::vector<TensorRef> tensors;
  const auto add = [&](const Arg &argument) {
    if (argument.kind == Arg::Kind::tensor && argument.ref.count() > 0)
      tensors.push_back(argument.ref);
  };
  for (const Arg &argument : args) {
    add(argument);
    std::for_each(argument.items.begin(), argument.items.end(), add);
  }
  lent.reserve(tensors.size());
  for (const Range &range : rangesOf(tensors)) {
    const auto own = device.own.upper_bound(range.begin);
    if (own != device.own.begin() && range.end <= std::prev(own)->second)
      continue; // in the simulator's memory already
    auto *const begin = reinterpret_cast<void *>(range.begin);
    simulator.lend(begin, static_cast<int64_t>(range.end - range.begin));
    lent.emplace_back(begin, TakeBack{&simulator});
  }
}

} // namespace kiln::c
