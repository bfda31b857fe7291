// kiln-fuzz: runs random programs on devices and on the oracle, and prints those whose results differ. Some devices run
// every program; others, such as a simulator for each GPU architecture, are used in turn.
//
// The programs run in a separate process, so that one that crashes or never ends is a failure. A failing program is
// made smaller and printed with the command that runs it alone. Exit codes: 0 all agree, 1 some differ; 2, 3 and 4 as
// everywhere; 130 after Ctrl-C, with the findings so far, and 143 after SIGTERM.

#include "runtime/Streams.h"
#include "runtime/Version.h"
#include "runtime/simulator/SimulatorDevice.h"
#include "test/fuzz/run.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <sys/mman.h>
#include <sys/prctl.h>
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
  int every = 500; // programs from one line of progress to the next
  bool vmap = false, list = false, keep = false;
};

/// Shared by the process that runs programs and the process that watches it.
struct Progress {
  int current, ran, failed;
};

} // namespace

static std::vector<std::shared_ptr<Device>> open(const std::vector<std::string> &names) {
  std::vector<std::shared_ptr<Device>> result;
  for (const std::string &name : names)
    result.push_back(Device::open(name));
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
  fmt::print("\nprogram {} of seed {} fails on {}:\n{}{}\nkiln-fuzz{} --seed {} --program {} --devices {}\n\n",
             program.number, program.seed, device, what, listing(shown), options.vmap ? " --vmap" : "", program.seed,
             program.number, device);
  std::fflush(stdout);
}

/// Limits the process to that many further seconds of processor time, and to twenty times as many in all: then a signal
/// ends it.
static void limit(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(20 * seconds);
}

/// The process that runs programs, and the signal that ended its watcher's patience.
static volatile sig_atomic_t runner = 0, interruption = 0;

static void interrupt(int signal) {
  interruption = signal;
  if (runner > 0)
    kill(runner, SIGKILL);
}

/// Runs `body`, which never returns, in a separate process, which ends with this one, or when this one is interrupted.
/// Returns its status.
static int apart(const std::function<void()> &body) {
  std::fflush(stdout);
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, &before); // until it is known whom they are for
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    body();
  }
  runner = child;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  runner = 0;
  return status;
}

/// Prints the progress in a separate line, so that a run that ends early has reported its findings.
static void tell(const Options &options, int number, const Progress &progress) {
  if (options.every <= 0 || (number + 1) % options.every != 0)
    return;
  fmt::print("seed {}: program {}, {} have run, {} failures\n", options.seed, number, progress.ran, progress.failed);
  std::fflush(stdout);
}

/// Runs programs from `first` on; never returns.
[[noreturn]] static void work(const Options &options, int first, int end, Clock::time_point until, Progress &progress) {
  const std::shared_ptr<Device> oracle = Device::open(options.oracle);
  const std::vector<std::shared_ptr<Device>> always = open(options.devices);
  const std::vector<std::shared_ptr<Device>> inTurn = open(options.inTurn);
  for (int number = first; number < end && Clock::now() < until; ++number) {
    progress.current = number;
    limit(options.seconds);
    const Program program = generate(options.seed, number);
    if (options.list)
      fmt::print("{}", listing(program));
    const Outcome want = options.vmap ? Outcome() : run(oracle, program);
    bool hasRun = !options.vmap;
    std::vector<std::shared_ptr<Device>> devices = always;
    if (!inTurn.empty())
      devices.push_back(inTurn[static_cast<size_t>(number) % inTurn.size()]);
    for (const auto &device : devices) {
      const auto ofBatch = options.vmap ? compareBatch(program, device) : std::nullopt;
      const std::string what = options.vmap ? ofBatch.value_or("") : difference(program, want, run(device, program));
      hasRun |= ofBatch.has_value();
      if (what.empty())
        continue;
      ++progress.failed;
      limit(20 * options.seconds);
      report(options, program, device->name(), what, [&](const Program &smaller) {
        return options.vmap ? !compareBatch(smaller, device).value_or("").empty()
                            : !compare(smaller, oracle, device).empty();
      });
      break; // the others would most likely say the same
    }
    progress.ran += hasRun ? 1 : 0;
    tell(options, number, progress);
  }
  std::fflush(stdout);
  _exit(0);
}

/// Whether the program ends the process that runs it.
static bool isFatal(const Options &options, const Program &program) {
  const int status = apart([&] {
    limit(options.seconds);
    (void)std::freopen("/dev/null", "w", stderr);
    if (!options.vmap)
      (void)run(Device::open(options.oracle), program);
    for (const auto &device : open(devicesOf(options, program.number)))
      options.vmap ? void(compareBatch(program, device)) : void(run(device, program));
    _exit(0);
  });
  return !WIFEXITED(status) && !interruption;
}

/// Removes and prints the devices that this machine does not have. Returns the exit status of an error, such as an
/// unknown name, or 0. Devices are opened in a separate process, because they may start threads.
static int keepPresent(std::vector<std::string> &names) {
  constexpr int absent = 100; // none of runProgram's
  std::vector<std::string> present;
  for (const std::string &name : names) {
    const int status = apart([&] {
      try {
        (void)Device::open(name);
      } catch (const Error &error) {
        if (error.fault != Fault::device)
          throw;
        fmt::print("left out: {}\n", error.what());
        std::fflush(stdout);
        _exit(absent);
      }
      _exit(0);
    });
    if (!WIFEXITED(status))
      throw Error(fmt::format("expected device '{}' to open, but it ended the process", name), Fault::internal);
    if (const int code = WEXITSTATUS(status); code == 0)
      present.push_back(name);
    else if (code != absent)
      return code;
  }
  names = present;
  return 0;
}

static int watch(Options options) {
  std::vector<std::string> oracle = {options.oracle};
  for (std::vector<std::string> *const names : {&oracle, &options.devices, &options.inTurn})
    if (const int code = keepPresent(*names))
      return code;
  if (oracle.empty() || (options.devices.empty() && options.inTurn.empty()))
    throw Error("expected an oracle and a device that this machine has", Fault::device);
  auto *const progress = static_cast<Progress *>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (progress == MAP_FAILED)
    throw Error("expected memory to share with the process that runs programs", Fault::device);
  const int begin = std::max(0, options.program), end = options.program < 0 ? options.programs : begin + 1;
  const Clock::time_point until =
      options.minutes > 0 ? Clock::now() + std::chrono::duration_cast<Clock::duration>(Minutes(options.minutes))
                          : Clock::time_point::max();
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, interrupt);
  for (int first = begin; first < end && Clock::now() < until && !interruption;) {
    const int status = apart([&] { work(options, first, end, until, *progress); });
    if (interruption || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
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
  fmt::print("seed {}: {} programs on {}{}{} beside {}, {} failures{}\n", options.seed, progress->ran,
             fmt::join(options.devices, ", "), inTurn.empty() ? "" : ", and in turn ", inTurn,
             options.vmap ? "a launch for each example" : options.oracle, progress->failed,
             interruption ? fmt::format(", interrupted in program {}", progress->current) : "");
  return progress->failed > 0 ? 1 : interruption ? 128 + interruption : 0;
}

static int run(int count, const char *const *arguments) {
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
  app.add_option("--every", options.every, "tells its counts after so many programs; 0: only at the end")
      ->capture_default_str();
  app.add_flag("--vmap", options.vmap,
               "compares vmap of each program with a launch for each example, device by device");
  app.add_flag("--list", options.list, "prints every program");
  app.add_flag("--keep", options.keep, "prints failing programs as they are, not made smaller");
  app.set_version_flag("--version", versionText("kiln-fuzz"), "print the version of Kiln");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0;
  }
  if (devices->count() > 0 && inTurn->count() == 0)
    options.inTurn.clear();
  setenv("KILN_CACHE", "", 1); // no program is run twice
  return watch(options);
}

int main(int count, char **arguments) {
  return kiln::runProgram("kiln-fuzz", [=] { return run(count, arguments); });
}
