// The list of unsupported instructions.

#include "runtime/simulator/LeftOut.h"

#include <algorithm>

namespace kiln::simulator {

std::span<const std::string_view> leftOut() {
  static constexpr std::string_view names[] = {
      // Textures and surfaces.
      "tex",
      "tld4",
      "txq",
      "istypep",
      "suld",
      "sust",
      "sured",
      "suq",
      // Memory of several GPUs.
      "multimem.ld_reduce",
      "multimem.st",
      "multimem.red",
      "multimem.cp.async.bulk",
      "multimem.cp.reduce.async.bulk",
      // Sparse matrices.
      "mma.sp",
      "wgmma.mma_async.sp",
      // The tensor cores of sm_100, and its launches.
      "tcgen05.alloc",
      "tcgen05.dealloc",
      "tcgen05.relinquish_alloc_permit",
      "tcgen05.ld",
      "tcgen05.ld.red",
      "tcgen05.st",
      "tcgen05.wait",
      "tcgen05.cp",
      "tcgen05.shift",
      "tcgen05.mma",
      "tcgen05.mma.sp",
      "tcgen05.mma.ws",
      "tcgen05.mma.ws.sp",
      "tcgen05.fence",
      "tcgen05.commit",
      "clusterlaunchcontrol.try_cancel",
      "clusterlaunchcontrol.query_cancel",
      "st.bulk",
  };
  return names;
}

/// Removes `part` and the dot after it from the beginning of a name; false if the name begins otherwise.
static bool takePart(std::string_view &name, std::string_view part) {
  const std::string_view first = name.substr(0, name.find('.'));
  if (!part.starts_with(first) || (part.size() > first.size() && part[first.size()] != ':'))
    return false;
  name.remove_prefix(std::min(first.size() + 1, name.size()));
  return true;
}

bool isLeftOut(std::string_view opcode, std::span<const std::string_view> modifiers) {
  return std::ranges::any_of(leftOut(), [&](std::string_view name) {
    if (!takePart(name, opcode))
      return false;
    for (size_t i = 0; i < modifiers.size() && !name.empty(); ++i)
      if (!takePart(name, modifiers[i]))
        return false;
    return name.empty();
  });
}

} // namespace kiln::simulator
