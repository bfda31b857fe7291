// A GPU as a device. Every call is asynchronous on a stream; only download() and synchronize() wait.

#include "runtime/cuda/CudaDevice.h"

#include "lowering/Backend.h"
#include "lowering/gpu/GpuTarget.h"
#include "runtime/Arguments.h"
#include "runtime/Meters.h"
#include "runtime/Threads.h"
#include "runtime/cuda/Events.h"
#include "runtime/cuda/LoadedKernel.h"

#include <charconv>
#include <mutex>

namespace kiln {

using namespace cuda;

static const std::string prefix = "cuda:";

static Address addressOf(const void *memory) { return reinterpret_cast<Address>(memory); }

namespace {

class CudaDevice : public Device, public Metered, public SideStreamed {
public:
  explicit CudaDevice(std::shared_ptr<Context> opened)
      : context(std::move(opened)), machine{context->gpu.name, context->gpu.facts} {}

  const std::string &name() const override { return context->connection.device; }
  const Target &target() const override { return machine; }

  void *allocate(int64_t bytes) override {
    const Context::Use use(*context);
    return reinterpret_cast<void *>(context->allocate(bytes));
  }
  void release(void *memory) override;
  void upload(void *to, const void *from, int64_t bytes) override {
    const Context::Use use(*context);
    context->staging().upload(addressOf(to), from, bytes, context->stream());
  }
  void download(void *to, const void *from, int64_t bytes) override;
  void copy(void *to, const void *from, int64_t bytes) override;
  void fillZero(void *memory, int64_t bytes) override;

  const lowering::Backend &backend() const override;
  std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                         const std::vector<char> &code) override {
    return std::make_shared<LoadedKernel>(context, kernel, std::move(signature), code);
  }

  using Device::launch;
  void launch(const Executable &executable, const uint64_t *block) override;
  std::unique_ptr<LaunchList> list(std::vector<LaunchList::Ready> launches) override {
    return std::make_unique<Graph>(context, std::move(launches));
  }
  void synchronize() override;
  void after(void *stream) override { context->order(static_cast<StreamHandle>(stream), context->stream()); }
  void before(void *stream) override { context->order(context->stream(), static_cast<StreamHandle>(stream)); }

  std::unique_ptr<DeviceClock> clock() override { return std::make_unique<EventClock>(context); }
  std::optional<int64_t> freeBytes() const override;
  std::unique_ptr<SideStream> sideStream() override { return std::make_unique<Side>(context); }

  int threads() const override { return hostThreads; }
  void setThreads(int threads) override {
    checkThreads(threads);
    hostThreads = threads;
  }

private:
  const std::shared_ptr<Context> context;
  const Target machine;
  mutable std::once_flag opening;
  mutable std::shared_ptr<const lowering::Backend> compiler;
  int hostThreads = threadsAsked(); // checked, although a GPU does not use it
};

} // namespace

const lowering::Backend &CudaDevice::backend() const {
  // A cubin runs only on GPUs of the architecture that it was compiled for.
  const bool cubin = context->gpu.isExact() && lowering::gpu::hasCubinLinker();
  std::call_once(opening,
                 [&] { compiler = lowering::openBackend(context->gpu.code->architecture + (cubin ? ":cubin" : "")); });
  return *compiler;
}

void CudaDevice::release(void *memory) {
  if (!memory)
    return;
  const Context::Use use(*context);
  context->connection.giveBack(context->driver().release, addressOf(memory), context->stream());
}

void CudaDevice::download(void *to, const void *from, int64_t bytes) {
  const Context::Use use(*context);
  if (bytes > 0)
    context->connection.call("a download", context->driver().copyToHost, to, addressOf(from),
                             static_cast<size_t>(bytes), context->stream());
  context->wait();
}

void CudaDevice::copy(void *to, const void *from, int64_t bytes) {
  const Context::Use use(*context);
  const auto copy = [&](Address target, Address source) {
    context->connection.call("a copy", context->driver().copyWithin, target, source, static_cast<size_t>(bytes),
                             context->stream());
  };
  const Address target = addressOf(to), source = addressOf(from);
  if (bytes <= 0 || target == source)
    return;
  if (target >= source + bytes || source >= target + bytes)
    return copy(target, source);
  const auto giveBack = [&](void *memory) {
    context->connection.giveBack(context->driver().release, addressOf(memory), context->stream());
  };
  const std::unique_ptr<void, decltype(giveBack)> aside( // overlapping copies are undefined in the driver
      reinterpret_cast<void *>(context->allocate(bytes)), giveBack);
  copy(addressOf(aside.get()), source);
  copy(target, addressOf(aside.get()));
}

void CudaDevice::fillZero(void *memory, int64_t bytes) {
  const Context::Use use(*context);
  if (bytes > 0)
    context->connection.call("zeros", context->driver().fillBytes, addressOf(memory), static_cast<unsigned char>(0),
                             static_cast<size_t>(bytes), context->stream());
}

void CudaDevice::launch(const Executable &executable, const uint64_t *block) {
  if (programsOf(block) == 0)
    return;
  checkGpuGrid(executable, block);
  const Context::Use use(*context);
  static_cast<const LoadedKernel &>(executable).launch(block);
}

void CudaDevice::synchronize() {
  const Context::Use use(*context);
  context->wait();
  if (const std::optional<std::string> failed = context->readConsoles())
    throw Error(*failed);
}

std::optional<int64_t> CudaDevice::freeBytes() const {
  const Context::Use use(*context);
  size_t free = 0, all = 0;
  context->connection.call("the memory that is free", context->driver().memoryInfo, &free, &all);
  return static_cast<int64_t>(free);
}

// --- By name ---------------------------------------------------------------------------------------------------------

std::vector<std::string> cudaDevices() { return {prefix + "0"}; }

int cudaCount() { return countGpus(Connection(Driver::open(), "cuda")); }

std::shared_ptr<Device> openCuda(const std::string &name) {
  if (!name.starts_with(prefix))
    return nullptr;
  int number = 0;
  const char *const begin = name.data() + prefix.size(), *const end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(begin, end, number);
  if (failure != std::errc() || stop != end || number < 0)
    return nullptr;
  return std::make_shared<CudaDevice>(Context::open(number));
}

} // namespace kiln
