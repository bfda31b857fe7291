// Times launches by the host's clock or the device's, and looks for the optional interfaces of devices.

#include "runtime/Meters.h"

#include "runtime/Device.h"
#include "runtime/SideStream.h"

#include <chrono>
#include <utility>

namespace kiln {

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {
class HostClock : public DeviceClock {
public:
  void mark() override { marks.push_back(secondsNow()); }
  std::vector<double> take() override { return std::exchange(marks, {}); }
  const char *what() const override { return "time"; }

private:
  std::vector<double> marks;
};
} // namespace

std::unique_ptr<DeviceClock> clockOf(Device &device) {
  if (auto *const own = dynamic_cast<Metered *>(&device))
    return own->clock();
  return std::make_unique<HostClock>();
}

std::optional<int64_t> freeBytesOf(const Device &device) {
  const auto *const own = dynamic_cast<const Metered *>(&device);
  return own ? own->freeBytes() : std::nullopt;
}

std::unique_ptr<SideStream> sideStreamOf(Device &device) {
  auto *const streamed = dynamic_cast<SideStreamed *>(&device);
  return streamed ? streamed->sideStream() : nullptr;
}

} // namespace kiln
