// Encodes the simulator's tensor maps by the driver.

#include "tools/kiln-gpu/tensor_maps.h"

#include "dialect/dsl/Types.h"
#include "runtime/simulator/TensorMap.h"

#include <fmt/format.h>

#include <cstring>
#include <dlfcn.h>

namespace kiln::gpu {

using simulator::TensorMap;
using Encode = cuda::Result(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                            int swizzle, int promotion, int fill);

/// Element types by the driver's numbers, in the order of TensorElement.
static constexpr int typesOfDriver[simulator::tensorElements] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};

static Encode *encoderOf(const cuda::Driver &driver) {
  void *const handle = dlopen(driver.library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  void *const symbol = handle ? dlsym(handle, "cuTensorMapEncodeTiled") : nullptr;
  if (!symbol)
    throw Error("expected a driver that makes tensor maps");
  return reinterpret_cast<Encode *>(symbol);
}

std::vector<size_t> replaceTensorMaps(const cuda::Driver &driver, std::vector<char> &bytes,
                                      const std::function<uint64_t(uint64_t)> &translate) {
  std::vector<size_t> places;
  for (size_t at = 0; at + sizeof(TensorMap) <= bytes.size(); at += alignof(TensorMap)) {
    TensorMap map;
    std::memcpy(static_cast<void *>(&map), &bytes[at], sizeof map);
    if (map.mark != TensorMap::markOfMap || !faultOf(map).empty())
      continue;
    std::array<uint32_t, simulator::maxTensorRank> steps{};
    std::copy(map.elementStrides.begin(), map.elementStrides.end(), steps.begin());
    alignas(TensorMap) char made[tensorMapBytes];
    const cuda::Result result =
        encoderOf(driver)(made, typesOfDriver[map.element], static_cast<uint32_t>(map.rank()),
                          reinterpret_cast<void *>(translate(map.address)), map.dims.data(), map.strides.data(),
                          map.box.data(), steps.data(), map.interleave, map.swizzle, 0, map.nanFill);
    if (result != cuda::Result::success)
      throw Error(fmt::format("expected a tensor map, but got {}", driver.textOf(result)));
    std::memcpy(&bytes[at], made, sizeof made);
    places.push_back(at);
  }
  return places;
}

} // namespace kiln::gpu
