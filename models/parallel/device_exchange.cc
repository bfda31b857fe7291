// A CPU device's memory is host memory; other devices' data are staged through it.

#include "models/parallel/device_exchange.h"

#include <vector>

namespace kiln {

namespace {
/// Memory that the host accesses directly.
class HostExchange : public DeviceExchange {
public:
  HostExchange(Device &device, Collective &ranks) : device(device), ranks(ranks) {}
  void exchange(const TensorRef &from, const TensorRef &to) override {
    device.synchronize();
    ranks.exchange(from.data, to.data, from.bytes() / ranks.size());
  }
  void gather(const TensorRef &all) override {
    device.synchronize();
    ranks.gather(all.data, all.bytes() / ranks.size());
  }

private:
  Device &device;
  Collective &ranks;
};

/// Memory that is copied to and from the host.
class StagedExchange : public DeviceExchange {
public:
  StagedExchange(Device &device, Collective &ranks) : device(device), ranks(ranks) {}
  void exchange(const TensorRef &from, const TensorRef &to) override {
    sent.resize(from.bytes());
    received.resize(from.bytes());
    device.download(sent.data(), from.data, from.bytes());
    ranks.exchange(sent.data(), received.data(), from.bytes() / ranks.size());
    device.upload(to.data, received.data(), to.bytes());
  }
  void gather(const TensorRef &all) override {
    const int64_t each = all.bytes() / ranks.size();
    received.resize(all.bytes());
    device.download(received.data() + ranks.rank() * each, static_cast<char *>(all.data) + ranks.rank() * each, each);
    ranks.gather(received.data(), each);
    device.upload(all.data, received.data(), all.bytes());
  }

private:
  Device &device;
  Collective &ranks;
  std::vector<char> sent, received;
};
} // namespace

std::unique_ptr<DeviceExchange> stagedExchange(Device &device, Collective &ranks) {
  return std::make_unique<StagedExchange>(device, ranks);
}

std::unique_ptr<DeviceExchange> DeviceExchange::of(Device &device, Collective &ranks) {
  return device.target().visit(
      [&](const CpuFacts &) -> std::unique_ptr<DeviceExchange> {
        return std::make_unique<HostExchange>(device, ranks);
      },
      [&](const GpuFacts &) -> std::unique_ptr<DeviceExchange> {
        if (std::unique_ptr<DeviceExchange> direct = ncclExchange(device, ranks))
          return direct;
        return stagedExchange(device, ranks);
      });
}

} // namespace kiln
