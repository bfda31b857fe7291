// Tensor references of plans: slices, permutations and reshapes that move no element.

#include "dialect/dsl/Plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln {

Precision Target::precisionOf(Type type) const {
  if (type != Type::f32)
    return Precision::ieee;
  return visit([&](const CpuFacts &) { return precision.value_or(Precision::ieee); },
               [&](const GpuFacts &gpu) {
                 const Precision asked = precision.value_or(Precision::tf32);
                 return isSplit(asked) && gpu.isConsumer() ? Precision::ieee : asked;
               });
}

/// The next power of two, from `least` on.
static int64_t bucketFrom(int64_t least, int64_t count) {
  return std::max(least, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count))));
}

int64_t Target::bucket(int64_t rows) const { return elastic && rows > 0 ? bucketFrom(minRows, rows) : rows; }

int64_t Target::lengthBucket(int64_t length) const {
  const int64_t shortest =
      visit([](const CpuFacts &) { return int64_t{16}; }, [](const GpuFacts &) { return int64_t{32}; });
  return elastic ? bucketFrom(shortest, length) : length;
}

int64_t Target::partStride(int64_t rows) const { return elastic ? cdiv(rows, 64) * 64 : rows; }

Arg Target::varying(Arg argument) const {
  argument.specialised = !elastic;
  return argument;
}

static void checkStrides(const TensorRef &tensor) {
  if (tensor.strides.size() != tensor.extents.size())
    throw Error("expected a stride for each extent, but got " + std::to_string(tensor.strides.size()) +
                " strides for shape " + textOf(tensor.extents));
}

static void checkAxis(const TensorRef &tensor, int axis) {
  checkStrides(tensor);
  if (axis < 0 || axis >= tensor.rank())
    throw Error("expected a dimension below the rank " + std::to_string(tensor.rank()) + ", but got " +
                std::to_string(axis));
}

/// `data` advanced by `elements`; a reference without memory stays without.
static void *advance(const TensorRef &tensor, int64_t elements) {
  return tensor.data ? static_cast<char *>(tensor.data) + elements * bytesOf(tensor.type) : nullptr;
}

bool TensorRef::isDense() const {
  checkStrides(*this);
  int64_t stride = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (extents[axis] != 1 && strides[axis] != stride)
      return false;
    stride *= extents[axis];
  }
  return true;
}

/// `unit` times the product of the extents. Throws Error on overflow. Extents of 0 do not hide overflow of the others,
/// because strides are products, too.
static int64_t product(const TensorRef &tensor, int64_t unit) {
  int64_t least = unit;
  bool empty = false, wrong = false;
  for (int64_t extent : tensor.extents) {
    wrong |= extent < 0 || __builtin_mul_overflow(least, std::max<int64_t>(extent, 1), &least);
    empty |= extent == 0;
  }
  if (wrong)
    throw Error(std::string("expected extents from 0 whose bytes fit 64 bits, but got ") + nameOf(tensor.type) + "[" +
                textOf(tensor.extents) + "]");
  return empty ? 0 : least;
}

int64_t TensorRef::count() const { return product(*this, 1); }

int64_t TensorRef::bytes() const { return product(*this, bytesOf(type)); }

TensorRef TensorRef::dense(void *data, Type type, Shape extents) {
  TensorRef tensor{data, type, std::move(extents), {}};
  tensor.bytes();
  tensor.strides.resize(tensor.extents.size());
  int64_t stride = 1;
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    tensor.strides[axis] = stride;
    stride *= tensor.extents[axis];
  }
  return tensor;
}

TensorRef TensorRef::slice(int axis, int64_t begin, int64_t extent) const {
  checkAxis(*this, axis);
  if (begin < 0 || extent < 0 || begin > extents[axis] || extent > extents[axis] - begin)
    throw Error("expected a slice within extent " + std::to_string(extents[axis]) + " of dimension " +
                std::to_string(axis) + ", but got extent " + std::to_string(extent) + " from " + std::to_string(begin));
  TensorRef result = *this;
  result.data = advance(*this, begin * strides[axis]);
  result.extents[axis] = extent;
  return result;
}

TensorRef TensorRef::select(int axis, int64_t at) const {
  TensorRef result = slice(axis, at, 1);
  result.extents.erase(result.extents.begin() + axis);
  result.strides.erase(result.strides.begin() + axis);
  return result;
}

TensorRef TensorRef::permute(std::vector<int> order) const {
  checkStrides(*this);
  TensorRef result = *this;
  std::vector<bool> seen(rank(), false);
  bool complete = static_cast<int>(order.size()) == rank();
  for (size_t axis = 0; complete && axis < order.size(); ++axis) {
    complete = order[axis] >= 0 && order[axis] < rank() && !seen[order[axis]];
    if (!complete)
      break;
    seen[order[axis]] = true;
    result.extents[axis] = extents[order[axis]];
    result.strides[axis] = strides[order[axis]];
  }
  if (!complete)
    throw Error("expected each of the " + std::to_string(rank()) + " dimensions once in the order of a permutation");
  return result;
}

TensorRef TensorRef::reshape(Shape shape) const {
  if (!isDense())
    throw Error("expected dense memory to reshape, but got a tensor of shape " + textOf(extents) + " with strides " +
                textOf(strides));
  TensorRef result = dense(data, type, std::move(shape));
  result.device = device;
  if (result.count() != count())
    throw Error("expected a shape of " + std::to_string(count()) + " elements, but got " + textOf(result.extents));
  return result;
}

Arg Arg::workspace(int64_t offset, Type type, Shape extents) {
  Arg arg(TensorRef::dense(nullptr, type, std::move(extents)));
  arg.kind = Kind::workspace;
  arg.workspaceOffset = offset;
  return arg;
}

Arg Arg::list(std::vector<Arg> tensors) {
  Arg arg(std::nullopt);
  arg.kind = Kind::list;
  arg.items = std::move(tensors);
  return arg;
}

std::string textOf(const Arg &arg) {
  switch (arg.kind) {
  case Arg::Kind::none:
    return "nothing";
  case Arg::Kind::list:
    return "a list of " + std::to_string(arg.items.size());
  case Arg::Kind::scalar:
    return std::string(nameOf(arg.scalarType)) + " scalar";
  default:
    return std::string(nameOf(arg.ref.type)) + "[" + (arg.ref.extents.empty() ? "" : textOf(arg.ref.extents)) + "]";
  }
}

Arg Arg::as(Type type) const {
  if (kind != Kind::scalar)
    throw Error(std::string("expected a scalar to give the type ") + nameOf(type) + ", but got a tensor");
  const bool wasFloat = isFloat(scalarType), wasUnsigned = isUnsigned(scalarType);
  Arg result = *this;
  result.scalarType = type;
  if (isFloat(type)) {
    result.real = wasFloat      ? real
                  : wasUnsigned ? static_cast<double>(static_cast<uint64_t>(integer))
                                : static_cast<double>(integer);
    return result;
  }
  // In steps that no number overflows: −2^63 and 2^64 are doubles, 2^63 − 1 is not. A number is below 0, or is a size.
  const bool whole = !wasFloat || (real == std::trunc(real) && real >= -0x1p63 && real < 0x1p64);
  const bool isNegative = wasFloat ? real < 0 : !wasUnsigned && integer < 0;
  if (wasFloat && whole)
    result.integer = isNegative ? static_cast<int64_t>(real) : static_cast<int64_t>(static_cast<uint64_t>(real));
  const auto size = static_cast<uint64_t>(result.integer);
  const int signBits = isUnsigned(type) || type == boolean ? 0 : 1;
  const uint64_t most = type == boolean ? 1 : ~uint64_t(0) >> (64 + signBits - 8 * bytesOf(type));
  const bool fits = isNegative ? signBits && result.integer >= -static_cast<int64_t>(most) - 1 : size <= most;
  if (!whole || !fits)
    throw Error(std::string("expected a number that ") + nameOf(type) + " has, but got " +
                (wasFloat      ? printField(real)
                 : wasUnsigned ? std::to_string(static_cast<uint64_t>(integer))
                               : printField(integer)));
  return result;
}

int64_t Launch::bytes() const {
  int64_t all = 0;
  const auto add = [&](const std::vector<Arg> &list) {
    for (const Arg &arg : list)
      all += arg.isView() ? arg.ref.bytes() : 0;
  };
  const Launch each = expanded(*this);
  add(each.args);
  for (const Problem &other : each.others)
    add(other.args);
  return all;
}

//===-- Groups --------------------------------------------------------------------------------------------------===//

/// The most bytes that the arguments of a GPU's launch take, by the CUDA Programming Guide's oldest limit.
static constexpr int64_t maxArgumentBytes = 4096;

/// Bytes that the arguments take at most: the grid, a pointer, and the extents and strides of views.
static int64_t argumentBytes(const std::vector<Arg> &args) {
  int64_t words = std::ssize(Grid());
  for (const Arg &arg : args)
    words += arg.kind == Arg::Kind::scalar ? 1 : 1 + 2 * arg.ref.rank();
  return words * static_cast<int64_t>(sizeof(int64_t));
}

/// Whether the arguments of two launches are of the same kinds, types and ranks.
static bool areAlike(const std::vector<Arg> &a, const std::vector<Arg> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Arg &x, const Arg &y) {
    const bool isScalar = x.kind == Arg::Kind::scalar;
    if (isScalar != (y.kind == Arg::Kind::scalar))
      return false;
    return isScalar ? x.scalarType == y.scalarType : x.ref.type == y.ref.type && x.ref.rank() == y.ref.rank();
  });
}

/// The floating-point operations of the launch's first problem.
static double ownFlops(const Launch &launch) {
  double own = launch.flops;
  for (const Launch::Problem &other : launch.others)
    own -= other.flops;
  return own;
}

std::vector<Launch> grouped(const std::vector<Launch> &launches) {
  std::vector<Launch> groups;
  for (const Launch &given : launches) {
    const Launch launch = expanded(given);
    const int64_t each = argumentBytes(launch.args), own = each * (1 + std::ssize(launch.others));
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Launch &to) {
      return to.kernel == launch.kernel && to.config == launch.config && areAlike(to.args, launch.args) &&
             each * (1 + std::ssize(to.others)) + own <= maxArgumentBytes;
    });
    if (group == groups.end()) {
      groups.push_back(launch);
      continue;
    }
    group->others.push_back({launch.grid, launch.args, ownFlops(launch)});
    group->others.insert(group->others.end(), launch.others.begin(), launch.others.end());
    group->flops += launch.flops;
  }
  return groups;
}

Plan ungrouped(const Plan &plan) {
  Plan result = {.launches = {}, .workspaceBytes = plan.workspaceBytes};
  for (const Launch &launch : plan.launches) {
    Launch one = launch;
    one.others.clear();
    one.flops = ownFlops(launch);
    result.launches.push_back(one);
    for (const Launch::Problem &other : launch.others) {
      one.grid = other.grid;
      one.args = other.args;
      one.flops = other.flops;
      result.launches.push_back(one);
    }
  }
  return result;
}

//===-- Plans ---------------------------------------------------------------------------------------------------===//

Plan &Plan::operator+=(const Plan &other) {
  launches.insert(launches.end(), other.launches.begin(), other.launches.end());
  workspaceBytes = std::max(workspaceBytes, other.workspaceBytes);
  return *this;
}

} // namespace kiln
