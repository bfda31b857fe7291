// Runs on the GPU what the simulator has run.

#include "tools/kiln-gpu/conformance.h"

#include "runtime/cuda/Context.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>

namespace kiln::gpu {

using namespace cuda;
using simulator::test::Launched;

namespace {
/// The memory of one launch on the GPU, as the simulator's was before.
class Copies {
public:
  Copies(Context &context, const Launched &launched) : context(context), launched(launched) {
    for (const Launched::Buffer &buffer : launched.buffers) {
      places.push_back(context.allocate(static_cast<int64_t>(buffer.before.size())));
      context.staging().upload(places.back(), buffer.before.data(), static_cast<int64_t>(buffer.before.size()),
                               context.stream());
    }
  }
  ~Copies() {
    for (const Address place : places)
      context.connection.giveBack(context.driver().release, place, context.stream());
  }

  /// The parameters with the GPU's addresses for the simulator's. Throws Error for memory that the test has made in a
  /// way of its own.
  std::vector<char> parameters() const {
    std::vector<char> bytes = launched.parameters;
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, &bytes[at], sizeof word);
      const uint64_t translated = translate(word);
      std::memcpy(&bytes[at], &translated, sizeof word);
    }
    return bytes;
  }

  /// Where the GPU has left other bytes than the simulator; empty where it has not.
  std::string difference() const {
    for (size_t i = 0; i < places.size(); ++i) {
      const Launched::Buffer &buffer = launched.buffers[i];
      std::vector<char> got(buffer.before.size());
      context.connection.call("results", context.driver().copyToHost, static_cast<void *>(got.data()), places[i],
                              got.size(), context.stream());
      context.wait();
      for (size_t at = 0; at < got.size(); ++at)
        if (got[at] != buffer.place[at])
          return fmt::format("buffer {}, byte {}: {:#04x} on the GPU, {:#04x} in the simulator", i, at,
                             static_cast<uint8_t>(got[at]), static_cast<uint8_t>(buffer.place[at]));
    }
    return "";
  }

private:
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
};
} // namespace

/// Runs the launch on the GPU; where its results differ, if they do. Throws Error where the driver refuses.
static std::string differenceOnGpu(Context &context, const Launched &launched) {
  const Context::Use use(context);
  const Connection &connection = context.connection;
  const Driver &driver = context.driver();
  Owned<ModuleHandle> module(connection, driver.moduleUnload);
  ModuleHandle made = nullptr;
  connection.call("the driver to take the PTX", driver.moduleLoad, &made,
                  static_cast<const void *>(launched.text.c_str()), 0u, nullptr, nullptr);
  module.take(made);
  FunctionHandle function = nullptr;
  connection.call("the kernel", driver.moduleGetFunction, &function, module.get(), launched.kernel.c_str());
  connection.call("leave for so much shared memory", driver.functionSetAttribute, function,
                  FunctionAttribute::dynamicSharedBytes, static_cast<int>(launched.dynamicShared));
  const Copies copies(context, launched);
  std::vector<char> parameters = copies.parameters();
  size_t bytes = parameters.size();
  void *extra[] = {launchParameterBuffer, parameters.data(), launchParameterBytes, &bytes, nullptr};
  const auto extent = [](int count) { return static_cast<unsigned>(count); };
  connection.call("a launch", driver.launch, function, extent(launched.grid[0]), extent(launched.grid[1]),
                  extent(launched.grid[2]), extent(launched.block[0]), extent(launched.block[1]),
                  extent(launched.block[2]), launched.dynamicShared, context.stream(), nullptr, extra);
  return copies.difference();
}

/// The name of the test that runs.
static std::string testName() {
  const testing::TestInfo *const test = testing::UnitTest::GetInstance()->current_test_info();
  return test ? fmt::format("{}.{}", test->test_suite_name(), test->name()) : "";
}

static std::string targetOf(const std::string &text) {
  const size_t at = text.find(".target ");
  return at == std::string::npos ? "" : text.substr(at + 8, text.find_first_of(" ,\n", at + 8) - at - 8);
}

void compareLaunches(const std::string &path) {
  simulator::test::Machine::observer = [context = Context::open(0),
                                        file = std::make_shared<std::ofstream>(path, std::ios::app)](
                                           const Launched &launched) {
    nlohmann::ordered_json row{{"test", testName()}, {"kernel", launched.kernel}, {"target", targetOf(launched.text)}};
    try {
      const std::string difference = differenceOnGpu(*context, launched);
      row["outcome"] = difference.empty() ? "equal" : "different";
      row["detail"] = difference;
    } catch (const Error &error) {
      row["outcome"] = "refused";
      row["detail"] = error.what();
    }
    *file << row.dump() << std::endl; // as it goes: the next launch may end the process
  };
}

} // namespace kiln::gpu
