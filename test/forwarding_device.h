// A device that forwards every call to another one. Devices that record or disturb calls derive from it.

#pragma once

#include "runtime/Device.h"

namespace kiln::test {

class ForwardingDevice : public Device {
public:
  explicit ForwardingDevice(std::shared_ptr<Device> device) : device(std::move(device)) {}

  const std::string &name() const override { return device->name(); }
  const Target &target() const override { return device->target(); }
  void *allocate(int64_t bytes) override { return device->allocate(bytes); }
  void release(void *memory) override { device->release(memory); }
  void upload(void *to, const void *from, int64_t bytes) override { device->upload(to, from, bytes); }
  void download(void *to, const void *from, int64_t bytes) override { device->download(to, from, bytes); }
  void copy(void *to, const void *from, int64_t bytes) override { device->copy(to, from, bytes); }
  void fillZero(void *memory, int64_t bytes) override { device->fillZero(memory, bytes); }
  const lowering::Backend &backend() const override { return device->backend(); }
  std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                         const std::vector<char> &code) override {
    return device->load(kernel, std::move(signature), code);
  }
  using Device::launch;
  void launch(const Executable &executable, const uint64_t *block) override { device->launch(executable, block); }
  void synchronize() override { device->synchronize(); }
  int threads() const override { return device->threads(); }
  void setThreads(int threads) override { device->setThreads(threads); }

private:
  const std::shared_ptr<Device> device;
};

} // namespace kiln::test
