// Loads and launches kernels, and reads their messages. Captures and replays graphs.

#include "runtime/cuda/LoadedKernel.h"

#include "runtime/Arguments.h"

#include "llvm/ADT/ScopeExit.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>

namespace kiln::cuda {

/// Shared memory of a launch without opt-in, in bytes.
static constexpr uint32_t sharedWithoutConsent = 48 << 10;

static LaunchLog::Label makeLabel(const std::string &kernel, const std::string &where) {
  return std::make_shared<const std::string>(
      fmt::format("kernel '{}'{}{}", kernel, where.empty() ? "" : " at ", where));
}

LoadedKernel::LoadedKernel(std::shared_ptr<Context> shared, const std::string &kernel, Signature signature,
                           const std::vector<char> &code)
    : Executable(shared->connection.device, kernel, std::move(signature)), context(std::move(shared)),
      text({code.begin(), std::find(code.begin(), code.end(), '\0')}),
      label(makeLabel(kernel, this->signature().where)), module(context->connection, context->driver().moduleUnload),
      threads(text.threads()), dynamicShared(static_cast<uint32_t>(text.constant(kernel + abi::sharedSuffix))) {
  if (threads == 0)
    throw Error(fmt::format("{}: expected PTX with .reqntid, which says how many threads a program has, but there is "
                            "none",
                            *label));
  const Connection &connection = context->connection;
  const Context::Use use(*context);
  load(code.size() > text.whole().size() + 1 ? code.data() + text.whole().size() + 1 : nullptr);
  connection.call("the loaded kernel", context->driver().moduleGetFunction, &function, module.get(), kernel.c_str());
  if (dynamicShared > sharedWithoutConsent)
    connection.call("leave for a launch with much shared memory", context->driver().functionSetAttribute, function,
                    FunctionAttribute::dynamicSharedBytes, static_cast<int>(dynamicShared));
  size_t bytes = 0;
  const Result found = context->driver().moduleGetGlobal(&console, &bytes, module.get(), abi::consoleVariable);
  if (found != Result::success && found != Result::notFound)
    throw connection.failure(found, context->driver().moduleGetGlobal.name, fmt::format("the console of {}", *label));
}

/// Loads the cubin, unless it is null or for another GPU or driver; then the PTX. Throws Error for other failures, such
/// as a lack of memory.
void LoadedKernel::load(const char *cubin) {
  const Driver &driver = context->driver();
  ModuleHandle made = nullptr;
  const Result loaded = cubin ? driver.moduleLoad(&made, cubin, 0, nullptr, nullptr) : Result::noBinaryForGpu;
  const std::initializer_list<Result> unsuitable = {Result::invalidImage, Result::noBinaryForGpu,
                                                    Result::unsupportedPtxVersion, Result::invalidPtx};
  if (loaded != Result::success && std::ranges::find(unsuitable, loaded) == unsuitable.end())
    throw context->connection.failure(loaded, driver.moduleLoad.name,
                                      fmt::format("the driver to take the cubin of {}", *label));
  if (loaded != Result::success) {
    std::string log(16 << 10, '\0');
    JitOption options[] = {JitOption::errorLog, JitOption::errorLogBytes, JitOption::lineInfo};
    void *values[] = {log.data(), reinterpret_cast<void *>(log.size()), reinterpret_cast<void *>(uintptr_t{1})};
    const Result result = driver.moduleLoad(&made, text.whole().c_str(), std::size(options), options, values);
    log.resize(std::min(log.find('\0'), log.size()));
    if (result != Result::success)
      throw Error(
          context->connection
                  .failure(result, driver.moduleLoad.name, fmt::format("the driver to take the PTX of {}", *label))
                  .what() +
              (log.empty() ? "" : "\n" + log),
          Fault::device);
  }
  module.take(made);
}

// --- Launching -------------------------------------------------------------------------------------------------------

int64_t LoadedKernel::launch(const uint64_t *block, bool captured) const {
  const Driver &driver = context->driver();
  lastLaunch = context->number(label, block);
  if (console) {
    const Grid grid(static_cast<int64_t>(block[0]), static_cast<int64_t>(block[1]), static_cast<int64_t>(block[2]));
    if (captured)
      capturedGrids[lastLaunch] = grid;
    else if (grids.empty() || grids.rbegin()->second != grid)
      grids[lastLaunch] = grid;
    context->expectWords(*this);
    const auto number = static_cast<uint64_t>(lastLaunch);
    const Address place = console + offsetof(abi::GpuConsole, launch);
    for (const Address word : {0, 1})
      context->connection.call("a launch to get its number", driver.fillWords, place + 4 * word,
                               static_cast<unsigned>(number >> (32 * word)), size_t{1}, context->stream());
  }
  size_t bytes = signature().words() * sizeof(uint64_t);
  void *parameters[] = {launchParameterBuffer, const_cast<uint64_t *>(block), launchParameterBytes, &bytes, nullptr};
  const Result result = driver.launch(function, static_cast<unsigned>(block[0]), static_cast<unsigned>(block[1]),
                                      static_cast<unsigned>(block[2]), static_cast<unsigned>(threads), 1, 1,
                                      dynamicShared, context->stream(), nullptr, parameters);
  if (result != Result::success)
    throw context->connection.failure(
        result, driver.launch.name,
        fmt::format("a launch of {}, {}x{}x{} programs of {} threads, {} bytes of dynamic shared memory, arguments {}",
                    *label, block[0], block[1], block[2], threads, dynamicShared, argumentText(block)));
  return lastLaunch;
}

void LoadedKernel::noteReplay(int64_t number) const {
  lastLaunch = number;
  if (console)
    context->expectWords(*this);
}

/// The slots of a block: `'x' 0x7f0000000000, extent 0 8, stride 0 100, 'alpha' 0x3f000000`.
std::string LoadedKernel::argumentText(const uint64_t *block) const {
  std::string list;
  const size_t each = signature().slots.size(), begin = signature().problems > 1 ? abi::gridSlots : 0;
  for (size_t i = 0; i < each * static_cast<size_t>(signature().problems); ++i) {
    const abi::Slot &slot = signature().slots[i % each];
    const uint64_t word = block[begin + i + abi::gridSlots * (i / each + 1)];
    list += list.empty() ? "" : i % each == 0 ? "; " : ", ";
    if (slot.kind == abi::Slot::extent || slot.kind == abi::Slot::stride)
      list += fmt::format("{} {} {}", slot.kind == abi::Slot::extent ? "extent" : "stride", slot.dimension,
                          static_cast<int64_t>(word));
    else
      list += fmt::format("{} {:#x}", calledArgument(signature().parameters[slot.argument].name, slot.argument), word);
  }
  return list;
}

// --- The console -----------------------------------------------------------------------------------------------------

std::optional<FailedCheck> LoadedKernel::readConsole() const {
  const Connection &connection = context->connection;
  const auto said = std::make_unique<abi::GpuConsole>();
  const auto read = [&](size_t from, size_t bytes) {
    connection.call("to read what programs said", connection.driver.copyToHost,
                    static_cast<void *>(reinterpret_cast<char *>(said.get()) + from), console + from, bytes,
                    context->stream());
    context->wait();
  };
  constexpr size_t head = offsetof(abi::GpuConsole, lines);
  read(0, head);
  const std::map<int64_t, Grid> since = std::exchange(grids, {});
  const std::vector<int64_t> last = std::exchange(ended, {});
  const auto forgetEnded = llvm::scope_exit([&] {
    for (const int64_t number : last)
      capturedGrids.erase(number);
  });
  if (said->printed == 0 && said->failedLaunch == 0)
    return std::nullopt;
  read(head, std::min(said->printed, abi::GpuConsole::lineBytes));
  connection.call("an empty console", connection.driver.fillBytes, console, static_cast<unsigned char>(0),
                  sizeof(abi::GpuConsole), context->stream());
  return kiln::readConsole(
      *said, kernel(), [&](uint32_t number) { return text.bytes(abi::textPrefix + std::to_string(number)); },
      [&](int64_t launch) {
        const auto captured = capturedGrids.find(launch);
        return captured != capturedGrids.end() ? captured->second : std::prev(since.upper_bound(launch))->second;
      });
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

static LaunchLog::Label makeLabel(const std::vector<LaunchList::Ready> &launches) {
  const auto name = [](const LaunchList::Ready &launch) { return launch.executable->kernel(); };
  return std::make_shared<const std::string>(
      launches.empty() ? "an empty plan"
                       : fmt::format("a plan of {} launches, from kernel '{}' to kernel '{}'", launches.size(),
                                     name(launches.front()), name(launches.back())));
}

static std::vector<LaunchList::Ready> withoutEmpty(std::vector<LaunchList::Ready> launches) {
  std::erase_if(launches, [](const LaunchList::Ready &launch) { return programsOf(launch.block.data()) == 0; });
  return launches;
}

Graph::Graph(std::shared_ptr<Context> shared, std::vector<Ready> all)
    : context(std::move(shared)), launches(withoutEmpty(std::move(all))), label(makeLabel(launches)),
      graph(context->connection, context->driver().graphExecDestroy) {
  for (const Ready &launch : launches)
    checkGpuGrid(*launch.executable, launch.block.data());
}

Graph::~Graph() {
  context->giveBack([this] {
    graph.reset();
    for (const auto &[kernel, number] : captured)
      kernel->noteEnd(number);
  });
}

void Graph::run() {
  if (launches.empty())
    return;
  const Context::Use use(*context);
  if (!std::exchange(hasRun, true))
    return launchEach(/*captures=*/false);
  if (!graph.holds())
    make();
  const int64_t number = context->number(label, launches.front().block.data());
  for (const Ready &launch : launches)
    static_cast<const LoadedKernel &>(*launch.executable).noteReplay(number);
  const Result result = context->driver().graphLaunch(graph.get(), context->stream());
  if (result != Result::success)
    throw context->connection.failure(result, context->driver().graphLaunch.name, "a launch of " + *label);
}

void Graph::launchEach(bool captures) {
  for (const Ready &launch : launches) {
    const auto &kernel = static_cast<const LoadedKernel &>(*launch.executable);
    const int64_t number = kernel.launch(launch.block.data(), captures);
    if (captures)
      captured.emplace_back(&kernel, number);
  }
}

/// Creates the graph. After an error the stream is unchanged.
void Graph::make() {
  const Driver &driver = context->driver();
  const Connection &connection = context->connection;
  Owned<GraphHandle> recorded(connection, driver.graphDestroy);
  connection.call("to capture launches", driver.beginCapture, context->stream(), CaptureMode::threadLocal);
  const auto end = [&] {
    GraphHandle made = nullptr;
    const Result result = driver.endCapture(context->stream(), &made);
    if (made)
      recorded.take(made);
    return result;
  };
  try {
    launchEach(/*captures=*/true);
  } catch (...) {
    end();
    throw;
  }
  if (const Result result = end(); result != Result::success)
    throw connection.failure(result, driver.endCapture.name, "the captured launches");
  GraphExecHandle made = nullptr;
  connection.call("a graph of launches", driver.graphInstantiate, &made, recorded.get(), 0ull);
  graph.take(made);
}

} // namespace kiln::cuda
