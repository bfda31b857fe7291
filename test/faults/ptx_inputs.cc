// PTX with damage, through the simulator: parsed, decoded, and its kernels run for a bounded time.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Launch.h"
#include "runtime/simulator/ptx/Parser.h"
#include "test/faults/inputs.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <filesystem>

namespace kiln::faults {

using namespace kiln::simulator;

namespace {

class PtxInputs : public Inputs {
public:
  explicit PtxInputs(const std::string &sources) {
    std::vector<std::string> paths;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(sources))
      if (entry.path().extension() == ".ptx")
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string &path : paths)
      texts.push_back(readText(path));
    if (texts.empty())
      throw Error("expected .ptx files below '" + sources + "', but there are none");
  }

  std::string run(Chance &chance) override {
    const std::string text = damaged(chance.oneOf(texts), texts, chance);
    Schedule schedule;
    schedule.order = static_cast<simulator::Order>(chance.below(3));
    schedule.delivery = static_cast<Delivery>(chance.below(3));
    schedule.threads = chance.below(8) ? 1 : 2;
    schedule.maxSteps = 100'000;
    schedule.seed = chance.next();
    const bool small = chance.below(2) != 0;
    show(text);
    return complaintOf([&] { runKernels(text, schedule, small ? 64 : 80); });
  }

private:
  static constexpr int64_t bufferBytes = 4096, redzone = 1024;

  static void runKernels(const std::string &text, const Schedule &schedule, int threads) {
    const auto module = std::make_shared<ptx::Module>(withLine([&] { return ptx::parse(text); }));
    for (size_t i = 0; i < module->functions.size() && i < 8; ++i)
      if (module->functions[i].isEntry)
        runKernel(module, std::string(module->functions[i].name), schedule, threads);
  }

  static void runKernel(const std::shared_ptr<ptx::Module> &module, const std::string &name, const Schedule &schedule,
                        int threads) {
    Memory memory;
    const auto program = withLine([&] { return buildProgram(module, name, memory); });
    if (!program)
      return;
    std::vector<const char *> buffers;
    std::vector<char> block(program->parameterBytes);
    for (const Parameter &parameter : program->parameters) {
      uint64_t bits = 32;
      if (parameter.bytes == 8 && buffers.size() < 8) {
        buffers.push_back(static_cast<const char *>(memory.allocate(bufferBytes)));
        bits = reinterpret_cast<uint64_t>(buffers.back());
      }
      std::memcpy(block.data() + parameter.offset, &bits, std::min<size_t>(8, parameter.bytes));
    }
    Findings findings;
    launch(*program, {2, 1, 1}, {threads, 1, 1}, 1024, block.data(), memory, findings, schedule);
    for (const Finding &finding : findings.list())
      if (finding.place.line < 1 || finding.text.empty())
        throw std::runtime_error("a finding has no line: " + finding.text);
    // The memory around a buffer belongs to no buffer, and was zero.
    for (const char *buffer : buffers)
      for (int64_t i = 0; i < redzone; ++i)
        if (buffer[-1 - i] || buffer[bufferBytes + i])
          throw std::runtime_error("the launch wrote outside its memory");
  }

  /// Calls `action`, whose refusals must name a line of the text. Too little memory is the machine's affair.
  template <class Action> static auto withLine(Action action) -> decltype(action()) {
    try {
      return action();
    } catch (const Error &error) {
      const std::string message = error.what();
      if (error.fault == Fault::device && message.find("simulated memory") != std::string::npos)
        return {};
      if (message.find("PTX line ") == std::string::npos)
        throw std::runtime_error("refused without a line: " + message);
      throw;
    }
  }

  std::vector<std::string> texts;
};

} // namespace

std::unique_ptr<Inputs> ptxInputs(const std::string &sources) { return std::make_unique<PtxInputs>(sources); }

} // namespace kiln::faults
