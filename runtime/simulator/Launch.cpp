// Blocks on the host's threads. A thread holds several blocks at once when they wait for one another: one that spins
// gets a turn, then the next.

#include "runtime/simulator/Launch.h"

#include "dialect/dsl/Types.h"
#include "runtime/simulator/Metrics.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

namespace kiln::simulator {

/// Steps of a turn. A block that has not ended after this many turns of all its warps lets another one begin.
static constexpr int64_t turnSteps = 20000;
static constexpr int patience = 50;
static constexpr size_t mostResident = 32;

namespace {
/// One launch's blocks, handed out in its order.
class Queue {
public:
  Queue(const Grid &grid, const Schedule &schedule)
      : grid(grid), schedule(schedule),
        count(schedule.only.empty() ? int64_t{grid.grid[0]} * grid.grid[1] * grid.grid[2]
                                    : static_cast<int64_t>(schedule.only.size())) {
    // A step through all blocks that has no common divisor with their number.
    stride = count > 2 ? static_cast<int64_t>(schedule.seed * 2654435761u % static_cast<uint64_t>(count)) | 1 : 1;
    while (std::gcd(stride, count) != 1)
      ++stride;
  }
  /// How many blocks run.
  int64_t blocks() const { return count; }
  /// Coordinates of the next block, or nothing.
  std::optional<Extents> next() {
    const int64_t number = taken++;
    if (number >= count)
      return std::nullopt;
    const int64_t block = schedule.order == Order::forward ? number
                          : schedule.order == Order::reverse
                              ? count - 1 - number
                              : static_cast<int64_t>(static_cast<unsigned __int128>(number) *
                                                     static_cast<uint64_t>(stride) % static_cast<uint64_t>(count));
    if (!schedule.only.empty())
      return schedule.only[static_cast<size_t>(block)];
    return Extents{static_cast<int>(block % grid.grid[0]), static_cast<int>(block / grid.grid[0] % grid.grid[1]),
                   static_cast<int>(block / grid.grid[0] / grid.grid[1])};
  }

private:
  const Grid &grid;
  const Schedule &schedule;
  const int64_t count;
  int64_t stride = 1;
  std::atomic<int64_t> taken = 0;
};

/// One thread's blocks.
class Worker {
public:
  Worker(const Grid &grid, const Schedule &schedule, Queue &queue, Metrics *metrics)
      : grid(grid), schedule(schedule), queue(queue), metrics(metrics) {}
  void run();

private:
  bool turn(Cta &cta);
  const Grid &grid;
  const Schedule &schedule;
  Queue &queue;
  Metrics *metrics;
  int64_t turns = 0;
};
} // namespace

/// Gives a block a turn; false when it has ended.
bool Worker::turn(Cta &cta) {
  const bool reversed =
      schedule.order == Order::reverse ||
      (schedule.order == Order::random && ((schedule.seed + static_cast<uint64_t>(turns)) * 0x9e3779b97f4a7c15 >> 63));
  ++turns;
  if (!cta.run(turnSteps, reversed)) {
    cta.finish();
    return false;
  }
  if (!cta.goOn())
    return false;
  if (const Warp &warp = cta.busiest(); schedule.mostSteps && warp.stepsDone() > schedule.mostSteps)
    throw Error(fmt::format("kernel '{}': warp {} has not ended after {} instructions, the last one at {}",
                            grid.program.name, warp.index, warp.stepsDone(), grid.program.textOf(warp.lastPlace())));
  return true;
}

void Worker::run() {
  std::deque<std::pair<std::unique_ptr<Cta>, int>> resident; // with the turns that each has had
  for (bool more = true; more || !resident.empty();) {
    if (more && (resident.empty() || (resident.size() < mostResident && resident.front().second >= patience))) {
      if (const std::optional<Extents> coordinates = queue.next())
        resident.emplace_front(std::make_unique<Cta>(grid, *coordinates), 0), resident.front().first->metrics = metrics;
      else
        more = false;
      continue;
    }
    std::pair<std::unique_ptr<Cta>, int> current = std::move(resident.front());
    resident.pop_front();
    if (turn(*current.first)) {
      ++current.second;
      resident.push_back(std::move(current));
    }
  }
}

static void checkExtents(const Program &program, const Extents &grid, const Extents &block, uint32_t dynamicShared) {
  const auto text = [](const Extents &extents) { return fmt::format("{}x{}x{}", extents[0], extents[1], extents[2]); };
  const auto volume = [](const Extents &extents) { return int64_t{extents[0]} * extents[1] * extents[2]; };
  const int64_t stated = volume(program.block), most = stated ? std::min<int64_t>(stated, 1024) : 1024;
  const auto [narrowest, widest] = std::minmax_element(block.begin(), block.end());
  if (*narrowest < 1 || *widest > 1024 || volume(block) > most)
    throw Error(
        fmt::format("kernel '{}': expected a block of 1 to {} threads, but got {}", program.name, most, text(block)));
  if (program.blockIsFixed && block != program.block)
    throw Error(fmt::format("kernel '{}': expected a block of {} threads, as its .reqntid says, but got {}",
                            program.name, text(program.block), text(block)));
  if (grid[0] < 1 || grid[1] < 1 || grid[2] < 1 || grid[1] > 65535 || grid[2] > 65535)
    throw Error(
        fmt::format("kernel '{}': expected a grid of at least one block and at most 2147483647x65535x65535, but got {}",
                    program.name, text(grid)));
  if (program.sharedBytes + int64_t{dynamicShared} > mostSharedBytes)
    throw Error(fmt::format("kernel '{}': expected at most {} bytes of shared memory, but got {} static and {} dynamic",
                            program.name, mostSharedBytes, program.sharedBytes, dynamicShared));
}

void launch(const Program &program, const Extents &grid, const Extents &block, uint32_t dynamicShared,
            const char *parameters, const Memory &memory, Findings &findings, const Schedule &schedule,
            Metrics *metrics) {
  checkExtents(program, grid, block, dynamicShared);
  std::unique_ptr<GlobalShadow> shadow;
  if (schedule.checks.needShadow())
    shadow = std::make_unique<GlobalShadow>();
  TensorMapChanges tensorMaps;
  Grid all{program,           grid,          block,      dynamicShared,   parameters,  memory, findings,
           schedule.delivery, schedule.seed, tensorMaps, schedule.checks, shadow.get()};
  all.errorTimes = schedule.errorTimes;
  all.counts = metrics != nullptr;
  Queue queue(all, schedule);
  const int64_t cores = schedule.threads > 0 ? schedule.threads : std::max(1u, std::thread::hardware_concurrency());
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      std::optional<Metrics> counts;
      if (metrics)
        counts.emplace(program);
      Worker(all, schedule, queue, counts ? &*counts : nullptr).run();
      if (metrics)
        metrics->add(*counts);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < std::min(cores, queue.blocks()); ++i)
      others.emplace_back(work);
    work();
  }
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace kiln::simulator
