// A compiled kernel, loaded on a device.

#pragma once

#include "runtime/Signature.h"

namespace kiln {

/// The name of the device that owns the memory of device `name`: its own, or "cpu" for all CPUs. Each name is one
/// string that is never destroyed, so that a launch compares pointers.
const std::string *memoryDevice(const std::string &name);

/// Immutable. Every launch with the executable's specialisation shares it, on devices of one name.
class Executable {
public:
  Executable(std::string device, std::string kernel, Signature signature)
      : deviceName(std::move(device)), kernelName(std::move(kernel)), parameters(std::move(signature)),
        deviceMemory(memoryDevice(deviceName)) {}
  virtual ~Executable() = default;
  /// The name of its device.
  const std::string &device() const { return deviceName; }
  /// memoryDevice() of its device.
  const std::string *memory() const { return deviceMemory; }
  const std::string &kernel() const { return kernelName; }
  const Signature &signature() const { return parameters; }
  /// Bytes of scratch memory that a program takes on a CPU, registers excluded; 0 on other devices.
  virtual int64_t scratchBytes() const { return 0; }

private:
  const std::string deviceName, kernelName;
  const Signature parameters;
  const std::string *const deviceMemory;
};

} // namespace kiln
