// Counts by line, as a table and as a bar chart.

#include "runtime/simulator/Report.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <span>
#include <utility>

namespace kiln::simulator {

/// A finding's text without addresses, indices and threads, which differ between the instructions of one access.
/// Numbers after a letter (f32) or a colon (the line of a file), and those of arguments remain.
static std::string kindOf(const std::string &text) {
  std::string kind;
  for (size_t i = 0; i < text.size(); ++i) {
    const char before = i == 0 ? ' ' : text[i - 1];
    if (!llvm::isDigit(text[i]) || llvm::isAlnum(before) || before == ':' ||
        llvm::StringRef(text).take_front(i).ends_with("argument ")) {
      kind += text[i];
      continue;
    }
    while (i + 1 < text.size() && llvm::isAlnum(text[i + 1])) // 12, 0x12ab
      ++i;
  }
  return kind;
}

std::string textOf(const Findings &findings, const Program &program) {
  // An access of the source can be many instructions, such as the stores of a tile. It has one line.
  std::vector<Finding> lines;
  std::map<std::string, size_t> known;
  for (const Finding &finding : findings.list()) {
    const auto key =
        fmt::format("{}: {}: {}", program.textOf(finding.place), nameOf(finding.check), kindOf(finding.text));
    const auto [entry, isNew] = known.insert({key, lines.size()});
    if (isNew)
      lines.push_back(finding);
    else
      lines[entry->second].count += finding.count;
  }
  std::string text;
  for (const Finding &line : lines)
    text += fmt::format("{}: {}: {}{}\n", program.textOf(line.place), nameOf(line.check), line.text,
                        line.count > 1 ? fmt::format(", {} times in all", line.count) : "");
  return text;
}

// --- Rows ----------------------------------------------------------------------------------------------------------

namespace {
using Class = InstructionClass;

/// An instruction, or all those of a line.
struct Counts {
  std::string name;
  StepMetrics total;
  std::array<int64_t, instructionClasses.size()> ofClass{};

  void add(const Counts &other) {
    total.add(other.total);
    for (size_t i = 0; i < ofClass.size(); ++i)
      ofClass[i] += other.ofClass[i];
  }
};

/// A source line, and those of its instructions that access memory.
struct Row {
  Counts all;
  std::vector<Counts> instructions;
};
} // namespace

/// The class of an instruction that waits, or that orders the accesses around it; `other` if it does neither.
static Class classOfSynchronising(std::string_view opcode, std::span<const std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers)
    if (modifier.find("wait") != std::string_view::npos)
      return Class::wait;
  const bool isBarrier = opcode == "bar" || opcode == "barrier" || opcode == "membar" || opcode == "fence" ||
                         opcode == "mbarrier" || opcode == "griddepcontrol";
  return isBarrier ? Class::barrier : Class::other;
}

static Class classOf(const ptx::Function &function, const ptx::Instruction &instruction) {
  const std::string_view opcode = instruction.opcode;
  const auto modifiers = function.modifiersOf(instruction);
  const auto isOne = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), opcode) != names.end();
  };
  const auto has = [&](std::string_view name) { return function.has(instruction, name); };
  if (const Class kind = classOfSynchronising(opcode, modifiers); kind != Class::other)
    return kind;
  if (has("commit_group") || (has("fence") && opcode == "wgmma") || (opcode == "cp" && has("mbarrier")))
    return Class::barrier;
  if (opcode == "wmma")
    return has("mma") ? Class::matrix : Class::memory;
  if (isOne({"mma", "wgmma"}))
    return Class::matrix;
  if (isOne({"ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "prefetch"}))
    return Class::memory;
  if (isOne({"bra", "brx", "call", "ret", "exit", "nanosleep", "trap"}))
    return Class::control;
  if (isOne({"cvt", "cvta", "mov", "shfl", "vote", "match", "redux", "elect", "activemask", "movmatrix"}))
    return Class::other;
  for (const std::string_view modifier : modifiers)
    if (const std::optional<ptx::Type> type = ptx::typeNamed(modifier); type && ptx::isFloat(*type))
      return Class::floating;
  return Class::integer;
}

/// An opcode with its modifiers: ld.global.f32.
static std::string nameOf(const ptx::Function &function, const ptx::Instruction &instruction) {
  std::string name(instruction.opcode);
  for (const std::string_view modifier : function.modifiersOf(instruction))
    name += fmt::format(".{}", modifier);
  return name;
}

std::vector<InstructionCounts> countsByInstruction(const Program &program, const Metrics &metrics) {
  std::vector<InstructionCounts> all;
  for (size_t code = 0; code < program.codes.size(); ++code) {
    const Code &each = program.codes[code];
    const ptx::Function &function = program.module->functions[static_cast<size_t>(program.module->find(each.name))];
    StepMetrics counts;
    for (size_t step = 0; step < each.instructions.size(); ++step) {
      StepMetrics ofStep = metrics.at(static_cast<int>(code), static_cast<int>(step));
      if (each.instructions[step] < 0) { // a later step represents its instruction
        ofStep.instructions = 0;
        counts.add(ofStep);
        continue;
      }
      counts.add(ofStep);
      const StepMetrics total = std::exchange(counts, {});
      if (total.instructions == 0)
        continue;
      const ptx::Instruction &instruction = function.instructions[static_cast<size_t>(each.instructions[step])];
      all.push_back({each.places[step], nameOf(function, instruction), classOf(function, instruction), total});
    }
  }
  return all;
}

/// Rows of all lines on which anything ran.
static std::vector<Row> gatherRows(const Program &program, const Metrics &metrics) {
  std::map<std::tuple<int, int, int>, Row> rows; // by file, line, PTX line where there is no file
  for (const InstructionCounts &each : countsByInstruction(program, metrics)) {
    const auto &[place, name, kind, total] = each;
    Row &row = rows[{place.file, place.file ? place.sourceLine : 0, place.file ? 0 : place.line}];
    row.all.name = program.textOf(place);
    Counts one{.name = fmt::format("  {}: {}", place.line, name), .total = total};
    one.ofClass[static_cast<size_t>(kind)] = total.instructions;
    row.all.add(one);
    if (total.sharedAccesses + total.globalAccesses + total.localAccesses + total.bulkBytes + total.operandBytes)
      row.instructions.push_back(std::move(one));
  }
  std::vector<Row> all;
  for (auto &[key, row] : rows)
    all.push_back(std::move(row));
  return all;
}

// --- The table -----------------------------------------------------------------------------------------------------

static std::string ratio(int64_t count, int64_t ideal) {
  return ideal ? fmt::format("{:.2f}", static_cast<double>(count) / static_cast<double>(ideal)) : "";
}

static std::string textOf(const Counts &row, size_t width) {
  std::string text = fmt::format("{:{}} {:>12}", row.name, width, row.total.instructions);
  for (const int64_t count : row.ofClass)
    text += fmt::format(" {:>9}", count);
  const StepMetrics &t = row.total;
  return text + fmt::format(" {:>9} {:>10} {:>10} {:>6} {:>9} {:>10} {:>10} {:>6} {:>9} {:>10} {:>10} {:>10}\n",
                            t.sharedAccesses, t.wavefronts, t.idealWavefronts, ratio(t.wavefronts, t.idealWavefronts),
                            t.globalAccesses, t.sectors, t.idealSectors, ratio(t.sectors, t.idealSectors),
                            t.localAccesses, t.localSectors, t.bulkBytes, t.operandBytes);
}

std::string reportTable(const Program &program, const Metrics &metrics) {
  std::vector<Counts> lines;
  Counts total{.name = "all"};
  for (Row &row : gatherRows(program, metrics)) {
    total.add(row.all);
    lines.push_back(std::move(row.all));
    if (row.instructions.size() > 1)
      std::move(row.instructions.begin(), row.instructions.end(), std::back_inserter(lines));
  }
  lines.push_back(std::move(total));
  size_t width = 28;
  for (const Counts &line : lines)
    width = std::max(width, line.name.size());
  std::string text = fmt::format("{:{}} {:>12}", "line", width, "instructions");
  for (const char *name : instructionClasses)
    text += fmt::format(" {:>9}", name);
  text += fmt::format(" {:>9} {:>10} {:>10} {:>6} {:>9} {:>10} {:>10} {:>6} {:>9} {:>10} {:>10} {:>10}\n", "shared",
                      "wavefronts", "ideal", "ratio", "global", "sectors", "ideal", "ratio", "local", "sectors", "bulk",
                      "operands");
  for (const Counts &line : lines)
    text += textOf(line, width);
  return text;
}

// --- The picture ---------------------------------------------------------------------------------------------------

static std::string escaped(const std::string &text) {
  std::string safe;
  for (const char c : text)
    safe += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return safe;
}

/// Colours that are distinct for colour-blind people, too (Okabe and Ito's), and sizes in pixels.
static constexpr const char *sharedColor = "#0072b2", *globalColor = "#009e73", *lostColor = "#d55e00";
static constexpr int margin = 8, barWidth = 500, barHeight = 10, pitch = 14;
/// A character's width in a monospaced font of 11 pixels: 0.6 of its size, and more because some viewers round
/// it.
static constexpr double characterWidth = 7.2;

static int widthOf(size_t characters) { return static_cast<int>(static_cast<double>(characters) * characterWidth) + 1; }

namespace {
/// A bar of the chart: the ideal count, and the excess after it.
struct Bar {
  std::string label; // for the first bar of a line
  int64_t ideal = 0, count = 0;
  const char *color = nullptr, *unit = nullptr;

  std::string text() const {
    return fmt::format("{} {}", count, unit) + (ideal < count ? fmt::format(", {} would do", ideal) : "");
  }
};
} // namespace

/// The bars of the lines with the largest excess.
static std::vector<Bar> makeBars(const Program &program, const Metrics &metrics) {
  std::vector<Row> rows = gatherRows(program, metrics);
  std::erase_if(rows, [](const Row &row) { return row.all.total.wavefronts + row.all.total.sectors == 0; });
  const auto lost = [](const Row &row) {
    return row.all.total.wavefronts - row.all.total.idealWavefronts + row.all.total.sectors -
           row.all.total.idealSectors;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row &a, const Row &b) { return lost(a) > lost(b); });
  rows.resize(std::min<size_t>(rows.size(), 30));
  std::vector<Bar> bars;
  for (const Row &row : rows) {
    const StepMetrics &total = row.all.total;
    std::string label = row.all.name;
    if (total.sharedAccesses)
      bars.push_back({std::exchange(label, ""), total.idealWavefronts, total.wavefronts, sharedColor, "wavefronts"});
    if (total.globalAccesses)
      bars.push_back({label, total.idealSectors, total.sectors, globalColor, "sectors"});
  }
  return bars;
}

std::string reportPicture(const Program &program, const Metrics &metrics) {
  const std::vector<Bar> bars = makeBars(program, metrics);
  const std::string title = fmt::format("{}: lines by what they lose (orange) of shared memory's wavefronts (blue) and "
                                        "global memory's sectors (green)",
                                        program.name);
  int64_t most = 1;
  size_t labelLength = 0, textLength = 0;
  for (const Bar &bar : bars) {
    most = std::max(most, bar.count);
    labelLength = std::max(labelLength, bar.label.size());
    textLength = std::max(textLength, bar.text().size());
  }
  const double scale = static_cast<double>(barWidth) / static_cast<double>(most);
  const int left = margin + widthOf(labelLength) + margin;
  const int width = std::max(left + barWidth + margin + widthOf(textLength), margin + widthOf(title.size())) + margin;
  std::string parts;
  int y = 30;
  for (const Bar &bar : bars) {
    const double needed = static_cast<double>(bar.ideal) * scale, all = static_cast<double>(bar.count) * scale;
    if (!bar.label.empty()) {
      y += y > 30 ? 6 : 0;
      parts += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", margin, y + 9, escaped(bar.label));
    }
    parts += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>", left, y, needed,
                         barHeight, bar.color);
    if (bar.ideal < bar.count)
      parts += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>", left + needed, y,
                           all - needed, barHeight, lostColor);
    parts += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", left + all + margin, y + 9, bar.text());
    y += pitch;
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"monospace\" "
                     "font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
                     "<text x=\"{2}\" y=\"16\">{3}</text>\n{4}</svg>\n",
                     width, y + margin, margin, escaped(title), parts);
}

} // namespace kiln::simulator
