// The driver's errors, devices, contexts and memory.

#include "test/runtime/cuda/stub/state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace kiln::stub;

static const std::map<int, std::pair<const char *, const char *>> errors = {
    {0, {"CUDA_SUCCESS", "no error"}},
    {1, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
    {2, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
    {3, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
    {100, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
    {201, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
    {218, {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}},
    {400, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
    {500, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
    {700, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
    {999, {"CUDA_ERROR_UNKNOWN", "unknown error"}},
};

Result cuGetErrorName(Result result, const char **name) {
  const auto found = errors.find(int(result));
  *name = found == errors.end() ? nullptr : found->second.first;
  return *name ? success : invalidValue;
}

Result cuGetErrorString(Result result, const char **text) {
  const auto found = errors.find(int(result));
  *text = found == errors.end() ? nullptr : found->second.second;
  return *text ? success : invalidValue;
}

/// As many GPUs as CUDA_VISIBLE_DEVICES lists; one by default.
static constexpr int maxGpus = 8;
static int gpus() {
  const char *const listed = std::getenv("CUDA_VISIBLE_DEVICES");
  return listed ? std::min<int>(1 + std::ranges::count(std::string_view(listed), ','), maxGpus) : 1;
}

// --- Devices and contexts --------------------------------------------------------------------------------------------

Result cuInit(unsigned) {
  return call(
      __func__,
      [](State &all) {
        all.initialised = true;
        return success;
      },
      Wants::nothing);
}

Result cuDeviceGetCount(int *count) {
  return call(
      __func__,
      [&](State &) {
        *count = gpus();
        return success;
      },
      Wants::driver);
}

Result cuDeviceGet(int *device, int number) {
  return call(
      __func__,
      [&](State &) {
        *device = number;
        return number < gpus() ? success : invalidValue;
      },
      Wants::driver);
}

Result cuDeviceGetName(char *name, int bytes, int) {
  return call(
      __func__,
      [&](State &) {
        std::strncpy(name, "Stub GPU", static_cast<size_t>(bytes));
        return success;
      },
      Wants::driver);
}

Result cuDeviceGetAttribute(int *value, Attribute attribute, int) {
  return call(
      __func__,
      [&](State &all) {
        const auto found = all.attributes.find(int(attribute));
        if (found == all.attributes.end())
          return invalidValue;
        *value = found->second;
        return success;
      },
      Wants::driver);
}

static char contexts[maxGpus];

Result cuDevicePrimaryCtxRetain(ContextHandle *context, int device) {
  return call(
      __func__,
      [&](State &all) {
        ++all.primaryUsers;
        *context = reinterpret_cast<ContextHandle>(&contexts[device]);
        return success;
      },
      Wants::driver);
}

Result cuDevicePrimaryCtxRelease_v2(int) {
  return call(
      __func__,
      [](State &all) {
        if (all.primaryUsers == 0)
          return invalidContext;
        if (--all.primaryUsers == 0) {
          all.queues.clear();
          all.fault = success; // it went with the context
        }
        return success;
      },
      Wants::driver);
}

Result cuCtxGetCurrent(ContextHandle *context) {
  return call(
      __func__,
      [&](State &) {
        *context = current();
        return success;
      },
      Wants::driver);
}

Result cuCtxSetCurrent(ContextHandle context) {
  return call(
      __func__,
      [&](State &) {
        current() = context;
        return success;
      },
      Wants::driver);
}

// --- Memory ----------------------------------------------------------------------------------------------------------

static char *placeOf(Address address) { return reinterpret_cast<char *>(address); }

Result cuMemGetInfo_v2(size_t *free, size_t *all) {
  return call(__func__, [&](State &) {
    *free = size_t{8} << 30;
    *all = size_t{16} << 30;
    return success;
  });
}

Result cuMemPoolCreate(PoolHandle *pool, const PoolProperties *properties) {
  return call(__func__, [&, name = __func__](State &all) {
    if (properties->location < 0 || properties->location >= gpus())
      return invalidValue;
    *pool = all.make<PoolHandle>("pool");
    all.note(name,
             {static_cast<uint64_t>(properties->allocationType), static_cast<uint64_t>(properties->locationType)});
    all.homes[*pool] = reinterpret_cast<ContextHandle>(&contexts[properties->location]);
    return success;
  });
}

Result cuMemPoolDestroy(PoolHandle pool) {
  return call(__func__, [&](State &all) { return all.destroy(pool, "pool"); });
}

Result cuMemPoolSetAttribute(PoolHandle pool, PoolAttribute attribute, void *value) {
  return call(__func__, [&, name = __func__](State &all) {
    all.note(name, {static_cast<uint64_t>(attribute), *static_cast<const uint64_t *>(value)});
    return all.has(pool, "pool") ? success : invalidHandle;
  });
}

Result cuMemAllocFromPoolAsync(Address *address, size_t bytes, PoolHandle pool, StreamHandle stream) {
  return call(__func__, [&](State &all) {
    if (!all.has(pool, "pool") || !all.has(stream, "stream") || all.homes[pool] != all.homes[stream])
      return invalidHandle;
    if (bytes == 0)
      return invalidValue;
    void *place = nullptr;
    try {
      place = allocateDevice(bytes);
    } catch (const std::exception &) { // there is none
    }
    if (!place)
      return Result::outOfMemory;
    all.made[place] = "memory";
    *address = reinterpret_cast<Address>(place);
    return success;
  });
}

Result cuMemFreeAsync(Address address, StreamHandle stream) {
  return call(__func__, [&](State &all) {
    if (!all.has(placeOf(address), "memory"))
      return invalidValue;
    all.made.erase(placeOf(address));
    return all.ask(stream, "cuMemFreeAsync", [address] {
      releaseDevice(placeOf(address));
      return success;
    });
  });
}

Result cuMemHostAlloc(void **place, size_t bytes, unsigned flags) {
  return call(__func__, [&, name = __func__](State &all) {
    all.note(name, {flags});
    *place = std::malloc(bytes);
    all.made[*place] = "host memory";
    all.hostMemory[*place] = {bytes, std::make_shared<int>()};
    return *place ? success : Result::outOfMemory;
  });
}

Result cuMemFreeHost(void *place) {
  return call(__func__, [&](State &all) {
    if (!all.has(place, "host memory") || all.hostMemory[place].second.use_count() > 1) // which a copy has yet to read
      return invalidValue;
    all.hostMemory.erase(place);
    all.made.erase(place);
    std::free(place);
    return success;
  });
}

/// Appends an operation on `bytes` of the device at `place`; the memory must be allocated when it is executed.
static Result touch(State &all, StreamHandle stream, const char *what, Address place, size_t bytes,
                    std::function<void()> operation) {
  return all.ask(stream, what, [place, bytes, operation = std::move(operation)] {
    if (!ownsDevice(placeOf(place), bytes))
      return Result::illegalAddress;
    operation();
    return success;
  });
}

Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, StreamHandle stream) {
  return call(__func__, [&, name = __func__](State &all) {
    std::shared_ptr<int> reads;
    if (const auto after = all.hostMemory.upper_bound(from); after != all.hostMemory.begin())
      if (const auto &[begin, block] = *std::prev(after); from < static_cast<const char *>(begin) + block.first)
        reads = block.second;
    return touch(all, stream, name, to, bytes,
                 [=, reads = std::move(reads)] { std::memcpy(placeOf(to), from, bytes); });
  });
}

Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, StreamHandle stream) {
  return call(__func__, [&, name = __func__](State &all) {
    return touch(all, stream, name, from, bytes, [=] { std::memcpy(to, placeOf(from), bytes); });
  });
}

Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, StreamHandle stream) {
  return call(__func__, [&, name = __func__](State &all) {
    if (to < from + bytes && from < to + bytes) // of which a driver promises nothing
      return Result::invalidValue;
    return touch(all, stream, name, to, bytes, [=] { std::memcpy(placeOf(to), placeOf(from), bytes); });
  });
}

Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, StreamHandle stream) {
  return call(__func__, [&, name = __func__](State &all) {
    return touch(all, stream, name, to, bytes, [=] { std::memset(placeOf(to), value, bytes); });
  });
}

Result cuMemsetD32Async(Address to, unsigned value, size_t count, StreamHandle stream) {
  return call(__func__, [&, name = __func__](State &all) {
    return touch(all, stream, name, to, 4 * count, [=] {
      for (size_t i = 0; i < count; ++i)
        std::memcpy(placeOf(to) + 4 * i, &value, 4);
    });
  });
}
