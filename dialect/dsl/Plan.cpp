// Tensors as plans describe them: slices, permutations and reshapes that move no element.

#include "dialect/dsl/Plan.h"

namespace kiln {

static void checkAxis(const TensorRef &tensor, int axis) {
  if (axis < 0 || axis >= tensor.rank())
    throw Error("expected a dimension below the rank " + std::to_string(tensor.rank()) + ", but got " +
                std::to_string(axis));
}

/// `data` moved by `elements`; a reference without memory stays without.
static void *advance(const TensorRef &tensor, int64_t elements) {
  return tensor.data ? static_cast<char *>(tensor.data) + elements * bytesOf(tensor.type) : nullptr;
}

static bool isDense(const TensorRef &tensor) {
  int64_t stride = 1;
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    if (tensor.extents[axis] != 1 && tensor.strides[axis] != stride)
      return false;
    stride *= tensor.extents[axis];
  }
  return true;
}

int64_t TensorRef::count() const {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

TensorRef TensorRef::dense(void *data, Type type, Shape extents) {
  TensorRef tensor{data, type, std::move(extents), {}};
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
  if (begin < 0 || extent < 0 || begin + extent > extents[axis])
    throw Error("expected a slice within extent " + std::to_string(extents[axis]) + " of dimension " +
                std::to_string(axis) + ", but got " + std::to_string(begin) + " to " + std::to_string(begin + extent));
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
  if (!isDense(*this))
    throw Error("expected dense memory to reshape, but got a tensor of shape " + textOf(extents) + " with strides " +
                textOf(strides));
  TensorRef result = dense(data, type, std::move(shape));
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

Plan &Plan::operator+=(const Plan &other) {
  launches.insert(launches.end(), other.launches.begin(), other.launches.end());
  workspaceBytes = std::max(workspaceBytes, other.workspaceBytes);
  return *this;
}

} // namespace kiln
