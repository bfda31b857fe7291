// Runs ptxas and nvdisasm on each kernel, as a file in a temporary folder.

#include "tools/kiln-bench/assembly.h"

#include "dialect/dsl/Types.h"
#include "tools/files/Files.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <mutex>
#include <regex>
#include <thread>

using namespace kiln;

static const char *const place = "/usr/local/cuda/bin/ptxas";

/// Folders to search for ptxas in addition to PATH; none if CUDA_PATH says that there is no toolkit.
static std::vector<std::string> ptxasPlaces() {
  const char *const toolkit = std::getenv("CUDA_PATH");
  std::vector<std::string> places = {place};
  if (toolkit && *toolkit != '/')
    throw Error(fmt::format("expected CUDA_PATH to be an absolute path, or empty, but got '{}'", toolkit),
                Fault::device);
  if (toolkit)
    places.insert(places.begin(), toolkit + std::string("/bin/ptxas"));
  return places;
}

static bool isWithoutToolkit() {
  const char *const toolkit = std::getenv("CUDA_PATH");
  return toolkit && !*toolkit;
}

std::string bench::findPtxas() {
  if (isWithoutToolkit())
    return "";
  if (std::system("ptxas --version >/dev/null 2>&1") == 0)
    return "ptxas";
  for (const std::string &each : ptxasPlaces())
    if (std::filesystem::exists(each))
      return fmt::format("'{}'", each); // quoted for a shell
  return "";
}

std::string bench::expectPtxas() {
  if (isWithoutToolkit())
    throw Error("expected ptxas, NVIDIA's assembler, but looked nowhere, since CUDA_PATH is empty", Fault::device);
  std::string found = findPtxas();
  if (found.empty())
    throw Error(fmt::format("expected ptxas, NVIDIA's assembler, on the path or as {}, but found none",
                            fmt::join(ptxasPlaces(), " or ")),
                Fault::device);
  return found;
}

std::string bench::ptxOf(const std::vector<char> &code) {
  return {code.begin(), std::find(code.begin(), code.end(), '\0')};
}

std::string bench::architectureOf(const std::string &backend) { return backend.substr(0, backend.find(':')); }

/// The output of a command, and its exit status.
static std::pair<std::string, int> outputOf(const std::string &command) {
  std::string text;
  FILE *const pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe)
    throw Error(fmt::format("expected to run '{}', but could not", command), Fault::device);
  for (char part[4096]; const size_t got = std::fread(part, 1, sizeof part, pipe);)
    text.append(part, got);
  return {text, pclose(pipe)};
}

/// `text`, quoted as one word for a shell.
static std::string quoted(const std::string &text) {
  return "'" + std::regex_replace(text, std::regex("'"), "'\\''") + "'";
}

static void assembleOne(bench::Assembly &kernel, const std::string &file, const std::string &ptxas,
                        const std::string &architecture, const std::string &nvdisasm) {
  std::ofstream(file) << kernel.ptx;
  const auto [said, status] =
      outputOf(fmt::format("{0} -v -arch={1} {2} -o {2}.cubin", quoted(ptxas), architecture, file));
  kernel.output = said;
  if (status != 0) {
    kernel.output += "\nptxas: error: it refused the text";
    return;
  }
  if (nvdisasm.empty())
    return;
  const auto [text, failed] = outputOf(fmt::format("{} -c {}.cubin", quoted(nvdisasm), file));
  if (failed != 0)
    throw Error(fmt::format("expected '{}' to read a cubin, but it said: {}", nvdisasm, text), Fault::device);
  kernel.sass = text;
}

void bench::assemble(std::vector<Assembly> &all, const std::string &ptxas, const std::string &architecture, int threads,
                     const std::string &nvdisasm) {
  const tools::TemporaryFolder folder("kiln-bench");
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < all.size(); i = next++)
        assembleOne(all[i], folder.path + fmt::format("/{}.ptx", i), ptxas, architecture, nvdisasm);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i)
      workers.emplace_back(work);
  }
  if (failure)
    std::rethrow_exception(failure);
}

/// The largest number that matches `pattern`.
static int numberIn(const std::string &text, const char *pattern) {
  int most = 0;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at)
    most = std::max(most, std::stoi((*at)[1]));
  return most;
}

int bench::registersOf(const Assembly &kernel) { return numberIn(kernel.output, R"(Used (\d+) registers)"); }
int bench::spillBytesOf(const Assembly &kernel) { return numberIn(kernel.output, R"((\d+) bytes spill)"); }

bool bench::hasWarning(const Assembly &kernel) {
  return kernel.output.find("warning") != std::string::npos || kernel.output.find("error") != std::string::npos;
}

std::string bench::findProblem(const Assembly &kernel) {
  static const std::regex open(R"((add|sub|mul)(\.ftz)?\.(f32|f64|f16|bf16)\S*\s)");
  if (hasWarning(kernel))
    return kernel.output;
  if (const int bytes = spillBytesOf(kernel))
    return fmt::format("{} bytes of spills", bytes);
  std::smatch found;
  if (std::regex_search(kernel.ptx, found, open))
    return fmt::format("'{}' without its rounding", found.str());
  return "";
}
