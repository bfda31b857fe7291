// kiln-fuzz: runs random programs on devices and on the oracle, and prints those whose results differ. Some devices run
// every program; others, such as a simulator for each of the GPUs' architectures, take turns.
//
// The programs run in a process of their own, so that one that ends it, or never ends, is one more failure. A failing
// program is made smaller and printed with the command that runs it alone. Exit codes: 0 all agree, 1 some differ; 2, 3
// and 4 as everywhere.

#include "runtime/Streams.h"
#include "runtime/simulator/SimulatorDevice.h"
#include "test/fuzz/run.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::fuzz;

namespace {

using Clock = std::chrono::steady_clock;
using Minutes = std::chrono::duration<double, std::ratio<60>>;

struct Options {
  int programs = 2000;
  uint64_t seed = 1;
  int program = -1;
  std::string oracle = "cpu:generic";
  std::vector<std::string> devices = {"cpu", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:amx"};
  std::vector<std::string> inTurn = simulatorDevices(); // a program runs on one of them
  int seconds = 60;
  double minutes = 0;
  bool list = false, keep = false;
};

/// What the process that runs programs leaves for the one that watches it.
struct Progress {
  int current, ran, failed;
};

} // namespace

/// The devices that this machine has; says which it has not.
static std::vector<std::shared_ptr<Device>> open(const std::vector<std::string> &names, bool says) {
  std::vector<std::shared_ptr<Device>> result;
  for (const std::string &name : names)
    try {
      result.push_back(Device::open(name));
    } catch (const Error &error) {
      if (error.fault != Fault::device)
        throw;
      if (says)
        fmt::print("left out: {}\n", error.what());
    }
  return result;
}

/// The devices that a program runs on besides the oracle.
static std::vector<std::string> devicesOf(const Options &options, int program) {
  std::vector<std::string> names = options.devices;
  if (!options.inTurn.empty())
    names.push_back(options.inTurn[static_cast<size_t>(program) % options.inTurn.size()]);
  return names;
}

static void report(const Options &options, const Program &program, const std::string &device, const std::string &what,
                   const std::function<bool(const Program &)> &fails) {
  const Program shown = options.keep ? program : shrink(program, fails);
  fmt::print("\nprogram {} of seed {} fails on {}:\n{}{}\nkiln-fuzz --seed {} --program {} --devices {}\n\n",
             program.number, program.seed, device, what, listing(shown), program.seed, program.number, device);
  std::fflush(stdout);
}

/// From now on the process may use that many seconds of the processor, and twenty times as many in all: else a signal
/// ends it.
static void limit(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(20 * seconds);
}

/// Runs programs from `first` on; never returns.
[[noreturn]] static void work(const Options &options, int first, int end, Clock::time_point until, Progress &progress) {
  const std::shared_ptr<Device> oracle = Device::open(options.oracle);
  const std::vector<std::shared_ptr<Device>> always = open(options.devices, false);
  const std::vector<std::shared_ptr<Device>> inTurn = open(options.inTurn, false);
  for (int number = first; number < end && Clock::now() < until; ++number) {
    progress.current = number;
    limit(options.seconds);
    const Program program = generate(options.seed, number);
    if (options.list)
      fmt::print("{}", listing(program));
    const Outcome want = run(oracle, program);
    std::vector<std::shared_ptr<Device>> devices = always;
    if (!inTurn.empty())
      devices.push_back(inTurn[static_cast<size_t>(number) % inTurn.size()]);
    for (const auto &device : devices) {
      const std::string what = difference(program, want, run(device, program));
      if (what.empty())
        continue;
      ++progress.failed;
      limit(20 * options.seconds);
      report(options, program, device->name(), what,
             [&](const Program &smaller) { return !compare(smaller, oracle, device).empty(); });
      break; // the others would most likely say the same
    }
    ++progress.ran;
  }
  std::fflush(stdout);
  _exit(0);
}

/// Whether the program ends the process that runs it.
static bool isFatal(const Options &options, const Program &program) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    limit(options.seconds);
    (void)std::freopen("/dev/null", "w", stderr);
    (void)run(Device::open(options.oracle), program);
    for (const auto &device : open(devicesOf(options, program.number), false))
      (void)run(device, program);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status);
}

static int watch(const Options &options) {
  auto *const progress = static_cast<Progress *>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (progress == MAP_FAILED)
    throw Error("expected memory to share with the process that runs programs", Fault::device);
  const int begin = std::max(0, options.program), end = options.program < 0 ? options.programs : begin + 1;
  const Clock::time_point until =
      options.minutes > 0 ? Clock::now() + std::chrono::duration_cast<Clock::duration>(Minutes(options.minutes))
                          : Clock::time_point::max();
  for (int first = begin; first < end && Clock::now() < until;) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
      work(options, first, end, until, *progress);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      break;
    ++progress->failed, ++progress->ran;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const bool isSlow = signal == SIGALRM || signal == SIGPROF;
    const std::string what = isSlow   ? fmt::format("it took more than {} seconds\n", options.seconds)
                             : signal ? fmt::format("it ended the process: {}\n", strsignal(signal))
                                      : fmt::format("it left the process with {}\n", WEXITSTATUS(status));
    report(options, generate(options.seed, progress->current),
           fmt::format("{}", fmt::join(devicesOf(options, progress->current), ",")), what,
           [&](const Program &smaller) { return !isSlow && isFatal(options, smaller); });
    first = progress->current + 1;
  }
  const std::string inTurn = fmt::format("{}", fmt::join(options.inTurn, ", "));
  fmt::print("seed {}: {} programs on {}{}{} beside {}, {} failures\n", options.seed, progress->ran,
             fmt::join(options.devices, ", "), inTurn.empty() ? "" : ", and in turn ", inTurn, options.oracle,
             progress->failed);
  return progress->failed > 0 ? 1 : 0;
}

int main(int count, char **arguments) {
  openStandardStreams();
  Options options;
  CLI::App app("Runs random programs on devices and compares them with the oracle.", "kiln-fuzz");
  app.add_option("--programs", options.programs, "how many programs")->capture_default_str();
  app.add_option("--seed", options.seed, "programs follow from it and their number alone")->capture_default_str();
  app.add_option("--program", options.program, "only the program of that number");
  CLI::Option *const devices = app.add_option("--devices", options.devices, "devices that every program runs on")
                                   ->delimiter(',')
                                   ->capture_default_str();
  CLI::Option *const inTurn = app.add_option("--in-turn", options.inTurn,
                                             "devices that take turns, one for a program; none with --devices alone")
                                  ->delimiter(',')
                                  ->capture_default_str();
  app.add_option("--oracle", options.oracle, "the device that is right")->capture_default_str();
  app.add_option("--seconds", options.seconds, "the longest that a program may take, on the processor")
      ->capture_default_str();
  app.add_option("--minutes", options.minutes, "begins no program after so long; 0: however long it takes")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_flag("--list", options.list, "prints every program");
  app.add_flag("--keep", options.keep, "prints failing programs as they are, not made smaller");
  CLI11_PARSE(app, count, arguments);
  if (devices->count() > 0 && inTurn->count() == 0)
    options.inTurn.clear();
  setenv("KILN_CACHE", "", 1); // no program is run twice
  try {
    return watch(options);
  } catch (const std::exception &error) {
    return kiln::report("kiln-fuzz", error);
  }
}
