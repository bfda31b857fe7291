// Reads, matches and writes the lines of findings.

#include "runtime/Findings.h"

#include "dialect/dsl/Nearest.h"
#include "runtime/Device.h"
#include "runtime/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

namespace kiln {

static constexpr const char *lineForm =
    "kernel | device | arguments | name=value,… | 312 us, default 331 us | 2026-11-22";

// --- Keys ------------------------------------------------------------------------------------------------------------

std::string deviceKey(const Device &device) {
  const Target &target = device.target();
  const std::string name = device.name();
  return target.visit([&](const CpuFacts &cpu) { return fmt::format("{} {} cores={}", name, target.name, cpu.cores); },
                      [&](const GpuFacts &) { // without the GPU's index
                        return fmt::format("{} {}", llvm::StringRef(name).starts_with("cuda:") ? "cuda" : name,
                                           target.name);
                      });
}

static std::string bucketText(int64_t extent) {
  const uint64_t bucket = llvm::PowerOf2Ceil(static_cast<uint64_t>(std::max<int64_t>(extent, 1)));
  return fmt::format("~{}{}", bucket, extent % 16 == 0 ? "/16" : "");
}

/// An argument's type, and its strides unless it is dense: the text before and after its extents. The names in an
/// expanded kernel say which of its views are there.
static std::pair<std::string, std::string> typeAndStrides(const Kernel &kernel, size_t index, const Arg &arg) {
  const std::string name = kernel.counts.empty() ? "" : kernel.parameters[index].name + "=";
  if (arg.kind == Arg::Kind::scalar)
    return {name + nameOf(arg.scalarType), ""};
  std::string strides;
  if (!arg.ref.isDense())
    for (const int64_t stride : arg.ref.strides)
      strides += (strides.empty() ? " by " : "x") + std::to_string(stride);
  return {fmt::format("{}{}[", name, nameOf(arg.ref.type)), "]" + strides};
}

std::string argumentsKey(const Kernel &kernel, const std::vector<Arg> &args,
                         const std::set<std::pair<int, int>> &buckets) {
  std::string text;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto [before, after] = typeAndStrides(kernel, i, args[i]);
    text += (i ? ", " : "") + before;
    if (args[i].kind != Arg::Kind::scalar)
      for (size_t d = 0; d < args[i].ref.extents.size(); ++d) {
        const int64_t extent = args[i].ref.extents[d];
        const bool isBucket = buckets.count({static_cast<int>(i), static_cast<int>(d)}) > 0;
        text += (d ? "x" : "") + (isBucket ? bucketText(extent) : std::to_string(extent));
      }
    text += after;
  }
  return text;
}

/// The number of extents of `args` that a line's text names exactly; none if it does not match them.
static std::optional<int> exactExtents(llvm::StringRef text, const Kernel &kernel, const std::vector<Arg> &args) {
  llvm::SmallVector<llvm::StringRef> parts;
  if (!text.empty())
    text.split(parts, ", ");
  if (parts.size() != args.size())
    return {};
  int exact = 0;
  for (auto [i, part] : llvm::enumerate(parts)) {
    const Arg &arg = args[i];
    const auto [before, after] = typeAndStrides(kernel, i, arg);
    if (!part.consume_front(before) || !part.consume_back(after))
      return {};
    llvm::SmallVector<llvm::StringRef> extents;
    if (!part.empty())
      part.split(extents, 'x');
    if (arg.kind == Arg::Kind::scalar ? !extents.empty() : extents.size() != arg.ref.extents.size())
      return {};
    for (auto [extent, actual] : llvm::zip(extents, arg.ref.extents)) {
      exact += extent == std::to_string(actual);
      if (extent != std::to_string(actual) && extent != bucketText(actual))
        return {};
    }
  }
  return exact;
}

// --- Lines -----------------------------------------------------------------------------------------------------------

std::string Finding::text() const {
  return fmt::format("{} | {} | {} | {} | {:.6g} {}, default {:.6g} {} | {}", kernel, device, arguments, config,
                     measured, unit, byDefault, unit, date);
}

/// A number above 0 with its unit: `312 us`.
static bool readMeasured(llvm::StringRef text, double &value, std::string &unit) {
  auto [number, word] = text.split(' ');
  unit = word.str();
  return !number.getAsDouble(value) && std::isfinite(value) && value > 0 && (unit == "us" || unit == "cycles");
}

/// `f32[64x~1024/16] by 1x64`, or the type of a scalar, perhaps after `name=`.
static bool isArgument(llvm::StringRef text) {
  if (text.contains('='))
    text = text.split('=').second;
  const size_t bracket = text.find('[');
  if (!findType(&TypeInfo::spelling, text.substr(0, bracket).str()))
    return false;
  if (bracket == llvm::StringRef::npos)
    return true;
  auto [extents, strides] = text.substr(bracket + 1).split(']');
  const auto areNumbers = [](llvm::StringRef list, bool isExtents) {
    llvm::SmallVector<llvm::StringRef> parts;
    list.split(parts, 'x');
    return llvm::all_of(parts, [&](llvm::StringRef part) {
      if (isExtents && part.consume_front("~"))
        part.consume_back("/16");
      int64_t value;
      return !part.getAsInteger(10, value) && (!isExtents || value >= 0);
    });
  };
  return text.contains(']') && (extents.empty() || areNumbers(extents, true)) &&
         (strides.empty() || (strides.consume_front(" by ") && areNumbers(strides, false)));
}

/// Parses a line. Throws an Error that names the invalid part.
static Finding parseFinding(llvm::StringRef line) {
  llvm::SmallVector<llvm::StringRef> parts;
  line.split(parts, " | ");
  if (parts.size() != 6)
    throw Error(fmt::format("expected '{}', but got '{}'", lineForm, line.str()));
  Finding finding{parts[0].str(), parts[1].str(), parts[2].str(), parts[3].str(), 0, 0, "", parts[5].str()};
  if (finding.kernel.empty() || !llvm::all_of(finding.kernel, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    throw Error(fmt::format("expected the name of a kernel first, but got '{}'", finding.kernel));
  llvm::SmallVector<llvm::StringRef> list;
  parts[2].split(list, ", ");
  for (const llvm::StringRef argument : list)
    if (!parts[2].empty() && !isArgument(argument))
      throw Error(fmt::format("expected arguments such as f32[512x~1024] or i64, but got '{}'", argument.str()));
  llvm::SmallVector<llvm::StringRef> fields;
  parts[3].split(fields, ',');
  for (const llvm::StringRef field : fields)
    if (field.split('=').first.empty() || field.split('=').second.empty())
      throw Error(fmt::format("expected a config such as bm=64,bn=96, but got '{}'", finding.config));
  auto [measured, byDefault] = parts[4].split(", default ");
  std::string unit;
  if (!readMeasured(measured, finding.measured, finding.unit) || !readMeasured(byDefault, finding.byDefault, unit) ||
      unit != finding.unit)
    throw Error(fmt::format("expected '312 us, default 331 us', or cycles, but got '{}'", parts[4].str()));
  const llvm::StringRef date = finding.date;
  if (date.size() != 10 || date[4] != '-' || date[7] != '-' ||
      !llvm::all_of(date, [](char c) { return llvm::isDigit(c) || c == '-'; }))
    throw Error(fmt::format("expected a date such as 2026-11-22, but got '{}'", finding.date));
  return finding;
}

static bool isForTheSame(const Finding &a, const Finding &b) {
  return std::tie(a.kernel, a.device, a.arguments) == std::tie(b.kernel, b.device, b.arguments);
}

// --- The file --------------------------------------------------------------------------------------------------------

Error FindingsFile::wrong(const Line &line, const std::string &text) const {
  return Error(fmt::format("{}:{}: {}", name, line.number, text));
}

FindingsFile FindingsFile::parse(const std::string &text, const std::string &name) {
  FindingsFile result;
  result.name = name;
  llvm::SmallVector<llvm::StringRef> texts;
  llvm::StringRef(text).split(texts, '\n');
  if (texts.back().empty())
    texts.pop_back();
  for (const llvm::StringRef each : texts) {
    Line line{static_cast<int>(result.lines.size()) + 1, each.str(), {}};
    if (const llvm::StringRef content = each.trim(); !content.empty() && !content.starts_with("#")) {
      try {
        line.finding = parseFinding(content);
      } catch (const Error &error) {
        throw result.wrong(line, error.what());
      }
      for (const Line &earlier : result.lines)
        if (earlier.finding && isForTheSame(*earlier.finding, *line.finding))
          throw result.wrong(line, fmt::format("expected one line for a kernel, device and arguments, but line {} is "
                                               "for those, too",
                                               earlier.number));
    }
    result.lines.push_back(std::move(line));
  }
  return result;
}

FindingsFile FindingsFile::load(const std::string &path) {
  const InputFile file(path);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, text.data(), file.size());
  return parse(text, path);
}

void FindingsFile::add(const Finding &finding) {
  for (Line &line : lines)
    if (line.finding && isForTheSame(*line.finding, finding)) {
      line.finding = finding;
      return;
    }
  lines.push_back({static_cast<int>(lines.size()) + 1, "", finding});
}

std::string FindingsFile::text() const {
  std::string result;
  for (const Line &line : lines)
    result += (line.finding ? line.finding->text() : line.comment) + "\n";
  return result;
}

void FindingsFile::checkConfig(const Line &line, const Kernel &kernel) const {
  try {
    kernel.configText(line.finding->config);
  } catch (const Error &error) {
    throw wrong(line, error.what());
  }
}

std::optional<std::string> FindingsFile::find(const std::string &device, const Kernel &kernel,
                                              const std::vector<Arg> &args) const {
  if (kernel.isVariadic()) {
    const Expanded form = expanded(kernel, args);
    return find(device, *form.kernel, form.args);
  }
  const Line *best = nullptr;
  int maxExact = -1;
  for (const Line &line : lines) {
    if (!line.finding || line.finding->kernel != kernel.name || line.finding->device != device)
      continue;
    const std::optional<int> exact = exactExtents(line.finding->arguments, kernel, args);
    if (exact.value_or(-1) > maxExact)
      best = &line, maxExact = *exact;
  }
  if (!best)
    return {};
  checkConfig(*best, kernel);
  return best->finding->config;
}

void FindingsFile::check(const std::vector<const Kernel *> &kernels) const {
  std::vector<std::string> names;
  for (const Kernel *kernel : kernels)
    names.push_back(kernel->name);
  for (const Line &line : lines) {
    if (!line.finding)
      continue;
    const auto found = llvm::find(names, line.finding->kernel);
    if (found == names.end())
      throw wrong(line, unknownName("kernel", line.finding->kernel, names));
    checkConfig(line, *kernels[found - names.begin()]);
  }
}

namespace {
/// The files that were read, by path.
struct KnownFiles {
  std::mutex mutex;
  std::map<std::string, FindingsFile> files;
};
} // namespace

static KnownFiles &knownFiles() {
  static KnownFiles known;
  return known;
}

std::string tuned(const Device &device, const Kernel &kernel, const std::vector<Arg> &args, std::string path) {
  if (const char *const variable = std::getenv("KILN_FINDINGS"); path.empty() && variable)
    path = variable;
  if (path.empty())
    return "";
  KnownFiles &known = knownFiles();
  const std::lock_guard lock(known.mutex);
  auto found = known.files.find(path);
  if (found == known.files.end())
    found = known.files.emplace(path, FindingsFile::load(path)).first;
  return found->second.find(deviceKey(device), kernel, args).value_or("");
}

void forgetFindings() {
  KnownFiles &known = knownFiles();
  const std::lock_guard lock(known.mutex);
  known.files.clear();
}

} // namespace kiln
