// Finds the possible edits of a text, and runs it with one of them.

#include "test/barriers/edits.h"

#include "runtime/Compile.h"

#include <algorithm>
#include <optional>
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

namespace {
/// A text that is read line by line, with its source lines.
class Reader {
public:
  explicit Reader(const std::string &ptx) : lines(linesOf(ptx)) {}
  std::vector<Edit> edits();

private:
  void add(size_t line, const std::string &what, std::map<size_t, std::string> to) {
    std::string instruction = lines[line].substr(lines[line].find_first_not_of(" \t"));
    instruction = std::regex_replace(instruction, std::regex(R"(^@!?%\w+\s+)"), "");
    all.push_back({line, instruction, place, what, std::regex_match(instruction, std::regex(R"(cp\.async\.c[ag]\..*)")),
                   std::move(to)});
  }
  void addWait(size_t line, const std::smatch &match);
  void addCopy(size_t line, const std::smatch &match);
  void addOrder(size_t line, const std::smatch &match);
  int64_t slotBytes(size_t line) const;

  std::string placeOf(const std::smatch &loc) { return files[loc[1]] + ":" + loc[2].str(); }

  const std::vector<std::string> lines;
  std::map<std::string, std::string> files; // named at the text's end
  std::string place;
  std::vector<Edit> all;
};
} // namespace

static const std::regex waitForGroups(R"(^(.*cp\.async\.wait_group\s+)(\d+);.*)");
static const std::regex loc(R"(^\s*\.loc\s+(\d+)\s+(\d+).*)");
static const std::regex read(R"(^\s*(@!?%\w+\s+)?(ldmatrix|ld\.shared).*)");
static const std::regex leaves(R"(^\s*(@!?%\w+\s+)?(bra|ret|exit).*|^\S+:.*)");
static const std::regex barrier(R"(^\s*(@!?%\w+\s+)?(bar|barrier)\.(cta\.)?(sync|red).*)");

/// Bytes of the ring slot that a copy at the current line fills; 0 if unknown.
int64_t Reader::slotBytes(size_t line) const {
  static const std::regex shared(R"(^// kiln\.shared \S+ \d+ (\d+) (\S+).*)");
  std::smatch match;
  int64_t pending = -1;
  for (size_t i = line; i < lines.size() && pending < 0; ++i)
    if (std::regex_match(lines[i], match, waitForGroups))
      pending = std::stoll(match[2]);
  for (size_t i = line; i-- > 0 && pending < 0;)
    if (std::regex_match(lines[i], match, waitForGroups))
      pending = std::stoll(match[2]);
  for (const std::string &each : lines)
    if (std::regex_match(each, match, shared) && place.ends_with("/" + match[2].str()))
      return std::stoll(match[1]) / (pending + 2); // which is the number of slots
  return 0;
}

void Reader::addWait(size_t line, const std::smatch &match) {
  add(line, "one more pending", {{line, match[1].str() + std::to_string(std::stoll(match[2]) + 1) + ";"}});
  // The last barrier before the slot is read, at the source line of the wait.
  std::optional<size_t> before;
  bool isRead = false;
  std::string at = place;
  for (size_t next = line + 1; next < lines.size() && !isRead; ++next) {
    std::smatch found;
    if (std::regex_match(lines[next], found, loc))
      at = placeOf(found);
    else if (std::regex_match(lines[next], barrier))
      before = next;
    else if (std::regex_match(lines[next], read))
      isRead = at == place;
    else if (std::regex_match(lines[next], leaves))
      return; // between loops: each thread refills its own data, after its own wait
  }
  if (before && isRead)
    add(line, "behind the barrier", {{line, ""}, {*before, lines[*before] + "\n" + lines[line]}});
}

void Reader::addCopy(size_t line, const std::smatch &match) {
  // 1 its predicate, 2 up to its offset's place, 3 offset, 4 from behind it to the bytes, 5 bytes of the source
  if (const int64_t slot = slotBytes(line))
    add(line, "to the next slot",
        {{line, match[1].str() + match[2].str() + " + " +
                    std::to_string(slot + (match[3].length() ? std::stoll(match[3]) : 0)) + match[4].str() +
                    match[5].str() + match[6].str()}});
  const std::string target = match[2].str() + (match[3].length() ? " + " + match[3].str() : "") + match[4].str();
  if (match[5].length())
    add(line, "all bytes", {{line, match[1].str() + target + match[6].str()}});
  if (match[1].str().starts_with("@"))
    add(line, "in every round", {{line, target + match[5].str() + match[6].str()}});
}

/// An order reduced to one of its halves.
void Reader::addOrder(size_t line, const std::smatch &match) {
  const std::string order = match[2];
  const auto become = [&](const std::string &what, const std::string &less) {
    add(line, what, {{line, match[1].str() + less + match[3].str()}});
  };
  if (order != "acquire")
    become("releases nothing", order == "acq_rel" ? "acquire" : "relaxed");
  if (order != "release")
    become("acquires nothing", order == "acq_rel" ? "release" : "relaxed");
}

std::vector<Edit> Reader::edits() {
  static const std::regex file(R"(^\s*\.file\s+(\d+)\s+"(.*)\".*)");
  static const std::regex ordering(
      R"(^\s*(@!?%\w+\s+)?((bar|barrier|fence|membar|mbarrier|cp\.async[\w.]*\.(commit|wait)|wgmma\.(fence|commit|wait))[\w.]*\b.*))");
  static const std::regex copy(
      R"(^\s*((?:\{.*;\s*)?(?:@!?%\w+\s+)?)(cp\.async\.c[ag]\.shared[\w.:]*\s+\[%\w+)(?:\s*\+\s*(\d+))?(\],\s*\[[^\]]*\],\s*\d+)(,\s*(?!policy\b)[%\w]+)?((?:,\s*policy)?;.*))");
  static const std::regex order(R"(^(\s*(?:@!?%\w+\s+)?(?:atom|red|ld|st)\.)(acquire|release|acq_rel)(\.gpu\..*))");
  std::smatch match;
  for (const std::string &line : lines)
    if (std::regex_match(line, match, file))
      files[match[1]] = match[2];
  for (size_t i = 0; i < lines.size(); ++i)
    if (std::regex_match(lines[i], match, loc)) {
      place = placeOf(match);
    } else if (std::regex_match(lines[i], match, ordering)) {
      add(i, "deleted", {{i, ""}});
      if (std::regex_match(lines[i], match, waitForGroups))
        addWait(i, match);
    } else if (std::regex_match(lines[i], match, copy)) {
      addCopy(i, match);
    } else if (std::regex_match(lines[i], match, order)) {
      addOrder(i, match);
    }
  return std::move(all);
}

std::vector<Edit> editsOf(const std::string &ptx) { return Reader(ptx).edits(); }

std::string edited(const std::string &ptx, const Edit &edit) {
  std::string result;
  size_t number = 0;
  for (const std::string &each : linesOf(ptx)) {
    const auto other = edit.lines.find(number++);
    result += (other == edit.lines.end() ? each : other->second) + "\n";
  }
  return result;
}

EditingDevice::EditingDevice(const std::shared_ptr<SimulatorDevice> &simulator, bool copies)
    : ForwardingDevice(simulator), simulator(simulator), copies(copies) {
  forgetCompiled();
}

void *EditingDevice::allocate(int64_t bytes) {
  void *const place = ForwardingDevice::allocate(bytes);
  memory[place] = bytes;
  return place;
}

void EditingDevice::release(void *place) {
  memory.erase(place);
  ForwardingDevice::release(place);
}

std::shared_ptr<const Executable> EditingDevice::load(const std::string &kernel, Signature signature,
                                                      const std::vector<char> &code) {
  auto executable = ForwardingDevice::load(kernel, std::move(signature), code);
  const std::lock_guard lock(loading);
  kernels[executable.get()] = {.executable = executable, .ptx = {code.begin(), code.end()}};
  return executable;
}

/// Whether a line of synchronize()'s error names the source line, as `place: check: …` or as that of the other access.
static bool namesPlace(const std::string &said, const std::string &place) {
  return std::ranges::any_of(linesOf(said), [&](const std::string &line) {
    return line.starts_with(place + ": ") || line.find("(" + place + ")") != std::string::npos;
  });
}

EditingDevice::Image EditingDevice::image() const {
  Image all;
  for (const auto &[place, bytes] : memory)
    simulator->download((all[place] = std::vector<char>(bytes)).data(), place, bytes);
  return all;
}

void EditingDevice::put(const Image &image) {
  for (const auto &[place, bytes] : image)
    simulator->upload(place, bytes.data(), static_cast<int64_t>(bytes.size()));
}

std::string EditingDevice::said(const Executable &executable, const uint64_t *block, const std::string &schedule) {
  // A kernel that waits for an event that never occurs ends all the same.
  simulator->setSchedule("seed=1 steps=50000000 " + schedule);
  std::string text;
  try {
    simulator->launch(executable, block);
    simulator->synchronize();
  } catch (const Error &error) {
    text = error.what();
  }
  simulator->setSchedule("");
  return text;
}

void EditingDevice::judge(const Kernel &kernel, Verdict &verdict, const uint64_t *block, const Image &before,
                          const std::map<std::string, Image> &right) {
  const std::string text = edited(kernel.ptx, verdict.edit);
  const auto executable = simulator->load(kernel.executable->kernel(), kernel.executable->signature(),
                                          std::vector<char>(text.begin(), text.end()));
  for (const auto &[schedule, want] : right) {
    const std::string text = said(*executable, block, schedule);
    const bool isWrong = text.empty() && verdict.kind == Verdict::Kind::silent && image() != want;
    put(before);
    if (!text.empty()) {
      verdict.said = text;
      verdict.kind = namesPlace(text, verdict.edit.place) ? Verdict::Kind::reported : Verdict::Kind::elsewhere;
    } else if (isWrong) {
      verdict.said = "other numbers with " + schedule;
      verdict.kind = Verdict::Kind::wrong;
    }
    if (verdict.kind == Verdict::Kind::reported)
      return;
  }
}

/// Every order with every delivery.
static std::vector<std::string> schedules() {
  std::vector<std::string> all;
  for (const char *order : {"forward", "reverse", "random"})
    for (const char *delivery : {"late", "early", "random"})
      all.push_back(std::string("order=") + order + " delivery=" + delivery);
  return all;
}

void EditingDevice::launch(const Executable &executable, const uint64_t *block) {
  Kernel &kernel = kernels.at(&executable);
  if (!kernel.wasLaunched) {
    kernel.wasLaunched = true;
    kernel.first = all.size();
    const int variant = ++variants[executable.kernel()];
    for (Edit &edit : editsOf(kernel.ptx))
      if (copies || !edit.ofCopy)
        all.push_back({.kernel = executable.kernel(), .variant = variant, .edit = std::move(edit)});
    kernel.end = all.size();
  }
  const auto isOpen = [](const Verdict &verdict) { return verdict.kind != Verdict::Kind::reported; };
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(kernel.first),
             to = all.begin() + static_cast<std::ptrdiff_t>(kernel.end);
  if (std::any_of(from, to, isOpen)) {
    const Image before = image();
    std::map<std::string, Image> right;
    for (const std::string &schedule : schedules()) {
      if (const std::string text = said(executable, block, schedule); !text.empty())
        throw Error(text);
      right[schedule] = image();
      put(before);
    }
    for (auto each = from; each != to; ++each)
      if (isOpen(*each))
        judge(kernel, *each, block, before, right);
  }
  simulator->launch(executable, block);
  simulator->synchronize();
}

} // namespace kiln::test
