// Packs the arguments of a launch into the block that a compiled kernel reads, checking them against its signature.

#include "runtime/Arguments.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace kiln {

std::string textOf(const Arg &arg) {
  if (arg.kind == Arg::Kind::scalar)
    return fmt::format("{} scalar", nameOf(arg.scalarType));
  return fmt::format("{}[{}]", nameOf(arg.ref.type), arg.ref.extents.empty() ? "" : textOf(arg.ref.extents));
}

static std::string textOf(const Signature::Parameter &parameter) {
  if (!parameter.isView)
    return fmt::format("{} scalar", nameOf(parameter.type));
  std::string extents;
  for (int64_t extent : parameter.extents)
    extents += (extents.empty() ? "" : "x") + (extent == Signature::dynamic ? "?" : std::to_string(extent));
  return fmt::format("{}[{}]", nameOf(parameter.type), extents);
}

static bool fits(const Signature::Parameter &parameter, const Arg &arg) {
  const bool isView = arg.kind != Arg::Kind::scalar;
  if (isView != parameter.isView)
    return false;
  if (!isView)
    return arg.scalarType == parameter.type;
  if (arg.ref.type != parameter.type || arg.ref.extents.size() != parameter.extents.size())
    return false;
  for (size_t i = 0; i < parameter.extents.size(); ++i) {
    if (parameter.extents[i] != Signature::dynamic && parameter.extents[i] != arg.ref.extents[i])
      return false;
    // The stride of a dimension without a second element is never used.
    if (parameter.strides[i] != Signature::dynamic && parameter.strides[i] != arg.ref.strides[i] &&
        arg.ref.extents[i] > 1)
      return false;
  }
  return true;
}

static uint64_t bitsOf(const Arg &arg) {
  switch (arg.scalarType) {
  case Type::f32:
    return std::bit_cast<uint32_t>(static_cast<float>(arg.real));
  case Type::f64:
    return std::bit_cast<uint64_t>(arg.real);
  case Type::i32:
    return static_cast<uint32_t>(arg.integer);
  default:
    return static_cast<uint64_t>(arg.integer);
  }
}

ArgumentBlock pack(const std::string &kernel, const Signature &signature, std::array<int64_t, 3> grid,
                   const std::vector<Arg> &args, void *workspace) {
  if (args.size() != signature.parameters.size())
    throw Error(fmt::format("kernel '{}': expected {} arguments, but got {}", kernel, signature.parameters.size(),
                            args.size()));
  ArgumentBlock block(grid.begin(), grid.end());
  for (size_t i = 0; i < args.size(); ++i) {
    const Signature::Parameter &parameter = signature.parameters[i];
    const Arg &arg = args[i];
    if (!fits(parameter, arg))
      throw Error(fmt::format("kernel '{}': expected argument {} to be {}, as it was compiled for, but got {}", kernel,
                              i, textOf(parameter), textOf(arg)));
    if (!parameter.isView) {
      block.push_back(bitsOf(arg));
      continue;
    }
    block.push_back(reinterpret_cast<uintptr_t>(dataOf(arg, workspace)));
    for (size_t d = 0; d < parameter.extents.size(); ++d)
      if (parameter.extents[d] == Signature::dynamic)
        block.push_back(arg.ref.extents[d]);
    for (size_t d = 0; d < parameter.strides.size(); ++d)
      if (parameter.strides[d] == Signature::dynamic)
        block.push_back(arg.ref.strides[d]);
  }
  return block;
}

} // namespace kiln
