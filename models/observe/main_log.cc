// Writes main.log.

#include "models/observe/main_log.h"
#include "models/data/files.h"

#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <unistd.h>

namespace kiln {

std::string mainLogLines(const StepRow &row) {
  std::string text =
      fmt::format("s:{} trl:{:.4f} lr:{:.6f} norm:{:.2f}\n", row.step - 1, row.number("loss").value_or(NAN),
                  row.number("lr").value_or(NAN), row.number("grad_norm").value_or(NAN));
  if (const std::optional<double> loss = row.number("val_loss"))
    text += fmt::format("s:{} tel:{:.4f}\n", row.step, *loss);
  return text;
}

/// The lines of a log up to step `step`.
static std::string linesUpTo(const std::string &path, int64_t step) {
  std::string kept;
  if (step == 0 || !std::filesystem::exists(path))
    return kept;
  std::istringstream lines(readFile(path));
  for (std::string line; std::getline(lines, line) && !lines.eof();) { // an incomplete line is dropped
    long long number = 0;
    char kind[4] = {};
    if (std::sscanf(line.c_str(), "s:%lld %3[a-z]:", &number, kind) == 2 &&
        number < step + (std::string(kind) == "tel"))
      kept += line + "\n";
  }
  return kept;
}

MainLog::MainLog(const std::string &path, int64_t step) : path(path) {
  const std::string kept = linesUpTo(path, step);
  if (std::filesystem::exists(path))
    replaceFile(path, kept);
  file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    throw Error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)), Fault::device);
}

MainLog::~MainLog() { ::close(file); }

void MainLog::write(const StepRow &row) {
  const std::string lines = mainLogLines(row);
  if (const int error = writeAll(file, lines.data(), std::ssize(lines)))
    throw Error(fmt::format("cannot write '{}': {}", path, std::strerror(error)), Fault::device);
}

} // namespace kiln
