// Grouped sends and receives on a second stream of the GPU.

#include "dialect/dsl/Types.h"
#include "models/parallel/device_exchange.h"
#include "models/parallel/nccl.h"
#include "runtime/SideStream.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln {

using nccl::Nccl;

namespace {
class NcclExchange : public DeviceExchange {
public:
  NcclExchange(const Nccl &nccl, std::unique_ptr<SideStream> stream, Collective &ranks, std::chrono::milliseconds limit)
      : nccl(nccl), side(std::move(stream)), rank(ranks.rank()), size(ranks.size()), limit(limit) {
    nccl::UniqueId id = {};
    if (ranks.isFirst())
      call("an identity of the ranks", nccl.getUniqueId, &id);
    ranks.broadcast(&id, sizeof(id));
    side->ask([&](void *) { call("a communicator", nccl.commInitRank, &comm, size, id, rank); });
    expectPlace();
  }
  ~NcclExchange() override {
    try {
      if (std::uncaught_exceptions() > 0)
        abort();
      finish();
      if (comm)
        call("the communicator to end", nccl.commDestroy, comm);
    } catch (const std::exception &error) {
      say(fmt::format("{}\n", error.what()));
    }
  }

  void exchange(const TensorRef &from, const TensorRef &to) override {
    begin(from, to);
    join();
  }
  void begin(const TensorRef &from, const TensorRef &to) override {
    const auto bytes = static_cast<size_t>(from.bytes() / size);
    side->follow();
    side->ask([&](void *stream) {
      call("a group of messages", nccl.groupStart);
      for (int r = 0; r < size; ++r) {
        call("to send", nccl.send, static_cast<const char *>(from.data) + r * bytes, bytes, nccl::DataType::bytes, r,
             comm, static_cast<nccl::StreamHandle>(stream));
        call("to receive", nccl.receive, static_cast<char *>(to.data) + r * bytes, bytes, nccl::DataType::bytes, r,
             comm, static_cast<nccl::StreamHandle>(stream));
      }
      call("a group of messages to begin", nccl.groupEnd);
    });
  }
  bool overlaps() const override { return true; }
  void join() override { side->lead(); }
  void gather(const TensorRef &all) override {
    const auto bytes = static_cast<size_t>(all.bytes() / size);
    side->follow();
    side->ask([&](void *stream) {
      call("to gather", nccl.allGather, static_cast<const char *>(all.data) + rank * bytes, all.data, bytes,
           nccl::DataType::bytes, comm, static_cast<nccl::StreamHandle>(stream));
    });
    side->lead();
  }
  void finish() override;

private:
  /// Calls a function of NCCL to get `wanted`. Throws Error (device) unless it succeeds.
  template <class... P, class... A> void call(const char *wanted, const nccl::Call<P...> &call, A... arguments) const {
    if (const nccl::Result result = call(arguments...); result != nccl::Result::success)
      throw failure(fmt::format("expected {}, but {} returned {}", wanted, call.name, errorText(result)));
  }
  Error failure(const std::string &what) const {
    return Error(fmt::format("rank {} of {}: {}", rank, size, what), Fault::device);
  }
  std::string errorText(nccl::Result result) const {
    return fmt::format("{} (NCCL's result {})", nccl.getErrorString(result), static_cast<int>(result));
  }
  /// Throws unless NCCL has the same rank and number of ranks.
  void expectPlace() const {
    int ofSize = 0, ofRank = 0;
    call("a number of ranks", nccl.commCount, comm, &ofSize);
    call("a rank", nccl.commUserRank, comm, &ofRank);
    if (ofSize != size || ofRank != rank)
      throw failure(fmt::format("expected NCCL to have this as rank {} of {}, but it is rank {} of {} there", rank,
                                size, ofRank, ofSize));
  }
  /// Aborts pending exchanges, whether the other ranks take part or not.
  void abort() noexcept {
    if (nccl::CommHandle mine = std::exchange(comm, nullptr))
      nccl.commAbort(mine); // another error is reported already
  }

  const Nccl &nccl;
  const std::unique_ptr<SideStream> side;
  const int rank, size;
  const std::chrono::milliseconds limit;
  nccl::CommHandle comm = nullptr;
};
} // namespace

void NcclExchange::finish() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun = Clock::now();
  while (comm && !side->isDone()) {
    nccl::Result result = nccl::Result::success;
    call("what became of an exchange", nccl.commGetAsyncError, comm, &result);
    if (result != nccl::Result::success && result != nccl::Result::inProgress) {
      abort();
      throw failure(
          fmt::format("expected the other ranks to take part in an exchange, but NCCL says: {}", errorText(result)));
    }
    if (Clock::now() - begun > limit) {
      abort();
      throw failure(fmt::format("expected the other ranks to take part in an exchange within {} ms, but one does not",
                                limit.count()));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// Whether no two ranks have the same GPU.
static bool haveOwn(const Device &device, Collective &ranks) {
  struct Place {
    char host[256], device[32];
  };
  std::vector<Place> all(ranks.size());
  Place &mine = all[ranks.rank()];
  std::memset(&mine, 0, sizeof(mine));
  ::gethostname(mine.host, sizeof(mine.host) - 1);
  device.name().copy(mine.device, sizeof(mine.device) - 1);
  ranks.gather(all.data(), sizeof(Place));
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (std::memcmp(&all[i], &all[k], sizeof(Place)) == 0)
        return false;
  return true;
}

std::unique_ptr<DeviceExchange> ncclExchange(Device &device, Collective &ranks, std::chrono::milliseconds limit) {
  std::unique_ptr<SideStream> stream = sideStreamOf(device);
  if (!stream)
    return nullptr;
  const auto without = [&](const std::string &why) {
    if (ranks.isFirst())
      say(fmt::format("ranks exchange through the host's memory: {}\n", why));
    return nullptr;
  };
  if (!haveOwn(device, ranks))
    return without("some share a GPU (--device cuda gives each its own)");
  std::string why;
  const Nccl *const nccl = Nccl::open(why);
  if (const std::vector<double> opened = ranks.gathered(nccl ? 1 : 0);
      std::find(opened.begin(), opened.end(), 0) != opened.end())
    return without(nccl ? "another rank has no NCCL" : fmt::format("{} (KILN_NCCL names NCCL's library)", why));
  return std::make_unique<NcclExchange>(*nccl, std::move(stream), ranks, limit);
}

} // namespace kiln
