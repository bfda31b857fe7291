// Devices, errors, and memory.

#include "tools/libkiln/handles.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <new>

using namespace kiln;
using namespace kiln::c;

// --- Errors ----------------------------------------------------------------------------------------------------------

static thread_local std::string errorText;

kiln_status kiln::c::failed(const std::exception *error) noexcept {
  const auto *const ours = dynamic_cast<const Error *>(error);
  const bool isMemory = dynamic_cast<const std::bad_alloc *>(error);
  try {
    errorText = isMemory ? "out of host memory" : error ? error->what() : "unknown exception";
  } catch (...) {
    errorText.clear();
  }
  if (isMemory)
    return KILN_DEVICE;
  if (!ours)
    return KILN_INTERNAL;
  return ours->fault == Fault::user ? KILN_USER : ours->fault == Fault::device ? KILN_DEVICE : KILN_INTERNAL;
}

void kiln::c::expectGiven(const void *pointer, const char *what) {
  if (!pointer)
    throw Error(fmt::format("expected {}, but got a null pointer", what));
}

const char *kiln_error(void) { return errorText.c_str(); }
const char *kiln_version(void) { return KILN_VERSION; }

// --- Devices ---------------------------------------------------------------------------------------------------------

namespace {
/// The open devices.
struct OpenDevices {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<kiln_device>> byName;
};
} // namespace

static OpenDevices &openDevices() {
  // Never destroyed, because other libraries' destructors may close devices.
  static OpenDevices *const all = new OpenDevices;
  return *all;
}

kiln_status kiln_device_open(const char *name, kiln_device **device) {
  return guarded([&] {
    expectGiven(name, "a device's name");
    expectGiven(device, "a place for the device");
    OpenDevices &all = openDevices();
    const std::lock_guard lock(all.mutex);
    std::unique_ptr<kiln_device> &entry = all.byName[name];
    if (!entry) {
      try {
        auto made = std::make_unique<kiln_device>();
        made->device = Device::open(name);
        made->borrowsHostMemory = dynamic_cast<SimulatorDevice *>(made->device.get());
        const std::string text = name;
        if (const std::string prefix = "cuda:"; text.starts_with(prefix)) {
          made->type = 2;
          std::from_chars(text.data() + prefix.size(), text.data() + text.size(), made->id);
        }
        entry = std::move(made);
      } catch (...) {
        all.byName.erase(name);
        throw;
      }
    }
    ++entry->users;
    *device = entry.get();
  });
}

void kiln_device_close(kiln_device *device) {
  if (!device)
    return;
  OpenDevices &all = openDevices();
  const std::lock_guard lock(all.mutex);
  if (--device->users == 0)
    all.byName.erase(device->device->name());
}

void kiln_device_place(const kiln_device *device, int32_t *type, int32_t *id) {
  if (type)
    *type = device ? device->type : 0;
  if (id)
    *id = device ? device->id : 0;
}

/// Calls `body` with the device, one caller at a time.
template <class Body> static kiln_status withDevice(kiln_device *device, Body &&body) {
  return guarded([&] {
    expectGiven(device, "a device");
    const std::lock_guard lock(device->mutex);
    body(*device->device);
  });
}

kiln_status kiln_device_threads(kiln_device *device, int threads) {
  return withDevice(device, [&](Device &it) { it.setThreads(threads); });
}

kiln_status kiln_synchronize(kiln_device *device) {
  return withDevice(device, [](Device &it) { it.synchronize(); });
}

kiln_status kiln_after(kiln_device *device, void *stream) {
  return withDevice(device, [&](Device &it) { it.after(stream); });
}

kiln_status kiln_before(kiln_device *device, void *stream) {
  return withDevice(device, [&](Device &it) { it.before(stream); });
}

// --- Memory ----------------------------------------------------------------------------------------------------------

kiln_status kiln_allocate(kiln_device *device, int64_t bytes, void **memory) {
  return withDevice(device, [&](Device &it) {
    expectGiven(memory, "a place for the memory's address");
    if (bytes < 0)
      throw Error(fmt::format("expected a number of bytes from 0, but got {}", bytes));
    *memory = it.allocate(bytes);
    const auto begin = reinterpret_cast<uintptr_t>(*memory);
    device->own[begin] = begin + static_cast<uintptr_t>(bytes);
  });
}

void kiln_release(kiln_device *device, void *memory) {
  (void)withDevice(device, [&](Device &it) {
    device->own.erase(reinterpret_cast<uintptr_t>(memory));
    it.release(memory);
  });
}

kiln_status kiln_upload(kiln_device *device, void *to, const void *from, int64_t bytes) {
  return withDevice(device, [&](Device &it) { it.upload(to, from, bytes); });
}

kiln_status kiln_download(kiln_device *device, void *to, const void *from, int64_t bytes) {
  return withDevice(device, [&](Device &it) { it.download(to, from, bytes); });
}
