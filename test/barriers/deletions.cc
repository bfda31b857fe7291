// Finding orderings in a text, and running it without one of them.

#include "test/barriers/deletions.h"

#include "runtime/Compile.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace kiln::test {

static std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

std::vector<Ordering> orderingsOf(const std::string &ptx) {
  static const std::regex file(R"(^\s*\.file\s+(\d+)\s+"(.*)\".*)"), loc(R"(^\s*\.loc\s+(\d+)\s+(\d+).*)");
  static const std::regex ordering(
      R"(^\s*(@!?%\w+\s+)?((bar|barrier|fence|membar|mbarrier|cp\.async[\w.]*\.(commit|wait)|wgmma\.(fence|commit|wait))[\w.]*\b.*))");
  const std::vector<std::string> lines = linesOf(ptx);
  std::map<std::string, std::string> files; // named at the text's end
  std::smatch match;
  for (const std::string &line : lines)
    if (std::regex_match(line, match, file))
      files[match[1]] = match[2];
  std::vector<Ordering> result;
  std::string place;
  for (size_t i = 0; i < lines.size(); ++i)
    if (std::regex_match(lines[i], match, loc))
      place = files[match[1]] + ":" + match[2].str();
    else if (std::regex_match(lines[i], match, ordering))
      result.push_back({i, match[2], place});
  return result;
}

std::string without(const std::string &ptx, size_t line) {
  std::string result;
  size_t number = 0;
  for (const std::string &each : linesOf(ptx))
    result += (number++ == line ? "" : each) + "\n";
  return result;
}

DeletingDevice::DeletingDevice(const std::shared_ptr<SimulatorDevice> &simulator)
    : ForwardingDevice(simulator), simulator(simulator) {
  forgetCompiled();
}

void *DeletingDevice::allocate(int64_t bytes) {
  void *const place = ForwardingDevice::allocate(bytes);
  memory[place] = bytes;
  return place;
}

void DeletingDevice::release(void *place) {
  memory.erase(place);
  ForwardingDevice::release(place);
}

std::shared_ptr<const Executable> DeletingDevice::load(const std::string &kernel, Signature signature,
                                                       const std::vector<char> &code) {
  auto executable = ForwardingDevice::load(kernel, std::move(signature), code);
  const std::lock_guard lock(loading);
  kernels[executable.get()] = {.executable = executable, .ptx = {code.begin(), code.end()}};
  return executable;
}

/// Whether a line of what synchronize() said names the place, as `place: check: …` or as the other access's.
static bool tellsOf(const std::string &said, const std::string &place) {
  return std::ranges::any_of(linesOf(said), [&](const std::string &line) {
    return line.starts_with(place + ": ") || line.find("(" + place + ")") != std::string::npos;
  });
}

void DeletingDevice::judge(const Kernel &kernel, Deletion &deletion, const uint64_t *block) {
  const std::string text = without(kernel.ptx, deletion.ordering.line);
  const auto executable = simulator->load(kernel.executable->kernel(), kernel.executable->signature(),
                                          std::vector<char>(text.begin(), text.end()));
  std::map<void *, std::vector<char>> before;
  for (const auto &[place, bytes] : memory)
    simulator->download((before[place] = std::vector<char>(bytes)).data(), place, bytes);
  for (const char *order : {"forward", "reverse", "random"}) {
    // A kernel that waits for what never comes ends all the same.
    simulator->setSchedule(std::string("seed=1 steps=50000000 order=") + order);
    try {
      simulator->launch(*executable, block);
      simulator->synchronize();
    } catch (const Error &error) {
      deletion.said = error.what();
      deletion.verdict =
          tellsOf(deletion.said, deletion.ordering.place) ? Deletion::Verdict::reported : Deletion::Verdict::elsewhere;
    }
    for (const auto &[place, bytes] : before)
      simulator->upload(place, bytes.data(), static_cast<int64_t>(bytes.size()));
    if (deletion.verdict == Deletion::Verdict::reported)
      break;
  }
  simulator->setSchedule("");
}

void DeletingDevice::launch(const Executable &executable, const uint64_t *block) {
  Kernel &kernel = kernels.at(&executable);
  if (!kernel.wasLaunched) {
    kernel.wasLaunched = true;
    kernel.first = all.size();
    const int variant = ++variants[executable.kernel()];
    for (Ordering &ordering : orderingsOf(kernel.ptx))
      all.push_back({.kernel = executable.kernel(), .variant = variant, .ordering = std::move(ordering)});
    kernel.end = all.size();
  }
  for (size_t i = kernel.first; i < kernel.end; ++i)
    if (all[i].verdict != Deletion::Verdict::reported)
      judge(kernel, all[i], block);
  simulator->launch(executable, block);
  simulator->synchronize();
}

} // namespace kiln::test
