// Repeats the simulator's launches on the GPU, and compares.

#include "tools/kiln-gpu/parts.h"

#include "dialect/dsl/Types.h"
#include "runtime/cuda/Context.h"
#include "runtime/cuda/Driver.h"
#include "runtime/simulator/TensorMap.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

namespace kiln::gpu {

using namespace cuda;
using simulator::test::Launched;

// --- Tensor maps in the driver's form ------------------------------------------------------------------------------

using simulator::TensorMap;
static constexpr size_t tensorMapBytes = 128;
using Encode = cuda::Result(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                            int swizzle, int promotion, int fill);

/// Element types by the driver's numbers, in the order of TensorElement.
static constexpr int typesOfDriver[simulator::tensorElements] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};

static Encode *encoderOf(const cuda::Driver &driver) {
  void *const handle = dlopen(driver.library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  void *const symbol = handle ? dlsym(handle, "cuTensorMapEncodeTiled") : nullptr;
  if (!symbol)
    throw Error("expected a driver that makes tensor maps");
  return reinterpret_cast<Encode *>(symbol);
}

/// Replaces each tensor map of the simulator among the bytes by the driver's map of that array, at the address that
/// `translate` gives. Returns where the maps begin. Throws Error for a driver that makes none or refuses one.
static std::vector<size_t> replaceTensorMaps(const cuda::Driver &driver, std::vector<char> &bytes,
                                             const std::function<uint64_t(uint64_t)> &translate) {
  std::vector<size_t> places;
  for (size_t at = 0; at + sizeof(TensorMap) <= bytes.size(); at += alignof(TensorMap)) {
    TensorMap map;
    std::memcpy(static_cast<void *>(&map), &bytes[at], sizeof map);
    if (map.mark != TensorMap::markOfMap || !findFault(map).empty())
      continue;
    std::array<uint32_t, simulator::maxTensorRank> steps{};
    std::copy(map.elementStrides.begin(), map.elementStrides.end(), steps.begin());
    alignas(TensorMap) char made[tensorMapBytes];
    const cuda::Result result =
        encoderOf(driver)(made, typesOfDriver[map.element], static_cast<uint32_t>(map.rank()),
                          reinterpret_cast<void *>(translate(map.address)), map.dims.data(), map.strides.data(),
                          map.box.data(), steps.data(), map.interleave, map.swizzle, 0, map.nanFill);
    if (result != cuda::Result::success)
      throw Error(fmt::format("expected a tensor map, but got {}", driver.errorText(result)));
    std::memcpy(&bytes[at], made, sizeof made);
    places.push_back(at);
  }
  return places;
}

// --- Memory --------------------------------------------------------------------------------------------------------

namespace {
/// The memory of one launch on the GPU, initialised as in the simulator.
class Copies {
public:
  Copies(Context &context, const Launched &launched) : context(context), launched(launched) {
    for (const Launched::Buffer &buffer : launched.buffers)
      places.push_back(context.allocate(static_cast<int64_t>(buffer.before.size())));
    for (size_t i = 0; i < places.size(); ++i) {
      sent.push_back(launched.buffers[i].before);
      maps.push_back(replaceTensorMaps(context.driver(), sent[i], [&](uint64_t word) { return translate(word); }));
      context.staging().upload(places[i], sent[i].data(), static_cast<int64_t>(sent[i].size()), context.stream());
    }
  }
  ~Copies() {
    for (const Address place : places)
      context.connection.giveBack(context.driver().release, place, context.stream());
  }

  /// The parameters with the simulator's addresses replaced by the GPU's. Throws Error for memory that the test
  /// allocated in another way.
  std::vector<char> parameters() const {
    std::vector<char> bytes = launched.parameters;
    const std::vector<size_t> made =
        replaceTensorMaps(context.driver(), bytes, [&](uint64_t word) { return translate(word); });
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
      if (isInMap(made, at))
        continue;
      uint64_t word = 0;
      std::memcpy(&word, &bytes[at], sizeof word);
      const uint64_t translated = translate(word);
      std::memcpy(&bytes[at], &translated, sizeof word);
    }
    return bytes;
  }

  /// The first difference between the GPU's and the simulator's memory; empty if there is none.
  std::string difference() const {
    for (size_t i = 0; i < places.size(); ++i) {
      const Launched::Buffer &buffer = launched.buffers[i];
      std::vector<char> got(buffer.before.size());
      context.connection.call("results", context.driver().copyToHost, static_cast<void *>(got.data()), places[i],
                              got.size(), context.stream());
      context.wait();
      for (size_t at = 0; at < got.size(); ++at)
        if (const char want = isInMap(maps[i], at) ? sent[i][at] : buffer.place[at]; got[at] != want)
          return fmt::format("buffer {}, byte {}: {:#04x} on the GPU, {:#04x} in the simulator", i, at,
                             static_cast<uint8_t>(got[at]), static_cast<uint8_t>(want));
    }
    return "";
  }

private:
  static bool isInMap(const std::vector<size_t> &maps, size_t at) {
    return std::any_of(maps.begin(), maps.end(),
                       [&](size_t begin) { return at >= begin && at < begin + tensorMapBytes; });
  }

  uint64_t translate(uint64_t word) const {
    for (size_t i = 0; i < places.size(); ++i) {
      const auto begin = reinterpret_cast<uint64_t>(launched.buffers[i].place);
      if (word >= begin && word < begin + launched.buffers[i].before.size())
        return places[i] + (word - begin);
    }
    if (launched.memory.find(word).holds(word, 1))
      throw Error("the test has memory that is no buffer of its machine's");
    return word;
  }

  Context &context;
  const Launched &launched;
  std::vector<Address> places;
  std::vector<std::vector<char>> sent;   // the initial bytes on the GPU, by buffer
  std::vector<std::vector<size_t>> maps; // offsets of tensor maps in each
};
} // namespace

// --- One launch ----------------------------------------------------------------------------------------------------

namespace {
/// After this launch the GPU's context is unusable.
class Fault : public Error {
  using Error::Error;
};
} // namespace

static std::string targetOf(const std::string &text) {
  const size_t at = text.find(".target ");
  return at == std::string::npos ? "" : text.substr(at + 8, text.find_first_of(" ,\n", at + 8) - at - 8);
}

/// The PTX for the newest target that the GPU runs; most tests name the oldest one with their instructions.
static std::string forGpu(const std::string &text, const Gpu &gpu) {
  const size_t body = text.find(".address_size");
  return body == std::string::npos
             ? text
             : fmt::format(".version 8.8\n.target {}\n{}", gpu.code->architecture, text.substr(body));
}

/// The kernel's module. Throws Error if the driver accepts its PTX neither unchanged nor for the GPU's target.
static ModuleHandle load(const Context &context, const std::string &text) {
  ModuleHandle made = nullptr;
  const auto &call = context.driver().moduleLoad;
  if (call(&made, static_cast<const void *>(text.c_str()), 0u, nullptr, nullptr) != Result::success) {
    const std::string other = forGpu(text, context.gpu);
    context.connection.call("the driver to take the PTX", call, &made, static_cast<const void *>(other.c_str()), 0u,
                            nullptr, nullptr);
  }
  return made;
}

/// Waits for the stream, with a time limit. Throws Fault.
static void finish(const Context &context) {
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds most(10);
  for (const Clock::time_point end = Clock::now() + most;;) {
    const Result result = context.driver().streamQuery(context.stream());
    if (result == Result::success)
      return;
    if (result != Result::notReady)
      throw Fault(context.connection.failure(result, context.driver().streamQuery.name, "a launch to go well").what());
    if (Clock::now() > end)
      throw Fault(fmt::format("the launch has not ended after {} s", most.count()));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// Runs the launch on the GPU and returns the first difference, if any. Throws Error if the driver refuses.
static std::string differenceOnGpu(Context &context, const Launched &launched) {
  const Context::Use use(context);
  const Connection &connection = context.connection;
  const Driver &driver = context.driver();
  Owned<ModuleHandle> module(connection, driver.moduleUnload);
  module.take(load(context, launched.text));
  FunctionHandle function = nullptr;
  connection.call("the kernel", driver.moduleGetFunction, &function, module.get(), launched.kernel.c_str());
  connection.call("permission for dynamic shared memory", driver.functionSetAttribute, function,
                  FunctionAttribute::dynamicSharedBytes, static_cast<int>(launched.dynamicShared));
  const Copies copies(context, launched);
  std::vector<char> parameters = copies.parameters();
  size_t bytes = parameters.size();
  void *extra[] = {launchParameterBuffer, parameters.data(), launchParameterBytes, &bytes, nullptr};
  const auto extent = [](int count) { return static_cast<unsigned>(count); };
  connection.call("a launch", driver.launch, function, extent(launched.grid[0]), extent(launched.grid[1]),
                  extent(launched.grid[2]), extent(launched.block[0]), extent(launched.block[1]),
                  extent(launched.block[2]), launched.dynamicShared, context.stream(), nullptr, extra);
  finish(context);
  return copies.difference();
}

// --- All of them ---------------------------------------------------------------------------------------------------

/// The name of the running test.
static std::string testName() {
  const testing::TestInfo *const test = testing::UnitTest::GetInstance()->current_test_info();
  return test ? fmt::format("{}.{}", test->test_suite_name(), test->name()) : "";
}

/// The reason why a GPU's results may differ; empty if they must not.
static std::string whyItMayDiffer(const Launched &launched) {
  if (!launched.varies.empty())
    return launched.varies;
  for (const char *modifier : {".approx.", ".full."})
    if (launched.text.find(modifier) != std::string::npos)
      return fmt::format("instructions with {} are approximate", modifier);
  return "";
}

/// The reason why the launch cannot run on a GPU; empty if it can.
static std::string whyNot(const Launched &launched) {
  if (launched.text.find("tensormap.replace") != std::string::npos)
    return "a tensor map that a kernel makes is in a form of the GPU's own";
  return "";
}

void compareLaunches(const std::string &path) {
  simulator::test::Machine::observer =
      [context = Context::open(0),
       file = std::make_shared<std::ofstream>(path, std::ios::app)](const Launched &launched) {
        const auto note = [&](const char *outcome, const std::string &detail) {
          const nlohmann::ordered_json row{{"test", testName()},
                                           {"kernel", launched.kernel},
                                           {"target", targetOf(launched.text)},
                                           {"outcome", outcome},
                                           {"detail", detail}};
          *file << row.dump() << std::endl; // written immediately, because the next launch may end the process
        };
        if (const std::string why = whyNot(launched); !why.empty())
          return note("skipped", why);
        try {
          const std::string difference = differenceOnGpu(*context, launched), why = whyItMayDiffer(launched);
          if (difference.empty())
            note("equal", "");
          else if (why.empty())
            note("different", difference);
          else
            note("varies", difference + ": " + why);
        } catch (const Fault &fault) {
          note("fault", fault.what());
          std::fflush(nullptr);
          std::_Exit(faultStatus); // the process cannot use the GPU after that
        } catch (const Error &error) {
          note("refused", error.what());
        }
      };
}

} // namespace kiln::gpu
