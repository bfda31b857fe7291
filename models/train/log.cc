// Writing the log.

#include "models/train/log.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/train/settings.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

std::string jsonOf(const StepRow &row) {
  nlohmann::ordered_json json = {{"step", row.step}, {"loss", row.loss}};
  if (row.validationLoss)
    json["val_loss"] = *row.validationLoss;
  json["lr"] = row.rate;
  json["grad_norm"] = row.gradientNorm;
  if (row.lossScale) {
    json["loss_scale"] = *row.lossScale;
    json["skipped"] = row.skipped;
  }
  json["dtype"] = dtypeOf(row.type);
  json["tokens_per_s"] = row.tokensPerSecond;
  json["peak_share"] = row.peakShare;
  json["seconds"] = row.seconds;
  return json.dump();
}

/// The lines of a log whose step is at most `step`; a line cut short by a crash is no JSON and goes too.
static std::string rowsUpTo(const std::string &path, int64_t step) {
  const auto isRow = [&](const std::string &line) {
    try {
      return JsonObject(path, line).integer("step") <= step;
    } catch (const Error &) {
      return false;
    }
  };
  std::istringstream lines(readFile(path));
  std::string line, kept;
  while (std::getline(lines, line))
    if (isRow(line))
      kept += line + "\n";
  return kept;
}

RunLog::RunLog(const std::string &path, int64_t step) : path(path) {
  if (std::filesystem::exists(path))
    replaceFile(path, rowsUpTo(path, step));
  file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    throw Error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)), Fault::device);
}

RunLog::~RunLog() { ::close(file); }

void RunLog::write(const StepRow &row) {
  const std::string line = jsonOf(row) + "\n";
  if (const int error = writeAll(file, line.data(), std::ssize(line)))
    throw Error(fmt::format("cannot write '{}': {}", path, std::strerror(error)), Fault::device);
  struct stat status;
  if (::fstat(file, &status) == 0 && status.st_nlink == 0)
    throw Error(fmt::format("expected '{}' to stay in place while a run writes to it, but it was removed", path),
                Fault::device);
}

} // namespace kiln
