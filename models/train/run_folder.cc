// Checks options against a folder's content.

#include "models/train/run_folder.h"
#include "models/train/model_links.h"

#include <filesystem>
#include <fmt/format.h>

namespace kiln {

/// The checkpoint to resume from, if any. Throws if the options contradict the folder's content.
static std::optional<std::string> checkpointFor(const RunOptions &options) {
  const std::optional<std::string> newest = newestCheckpoint(options.out);
  if (options.resumeStep) {
    const std::string path = checkpointPath(options.out, *options.resumeStep);
    if (!std::filesystem::exists(path))
      throw Error(fmt::format("expected a checkpoint of step {} in '{}', but there is none{}", *options.resumeStep,
                              options.out, newest ? fmt::format("; the newest is '{}'", *newest) : ""));
    return path;
  }
  if (options.resume && !newest)
    throw Error(fmt::format("expected a checkpoint to resume from in '{}', but there is none", options.out));
  if (!options.resume && newest && !options.overwrite)
    throw Error(fmt::format(
        "expected a folder without checkpoints, but '{}' exists; --resume continues from it, --overwrite removes it",
        *newest));
  return options.resume ? newest : std::nullopt;
}

void verify(const RunOptions &options) {
  if (options.stopAfter < 0)
    throw Error(fmt::format("expected '--stop-after' to be at least 0, but got {}", options.stopAfter));
  if (options.trace && !options.profile)
    throw Error("--trace requires --profile A:B, the steps that it records");
  if (options.resume && options.overwrite)
    throw Error("--resume and --overwrite exclude each other");
  if (options.resume)
    checkpointFor(options); // before a folder is created with a mistyped name
  verifyNoOtherModel(options.out);
}

RunFolder::RunFolder(const RunOptions &options, std::shared_ptr<Collective> ranks)
    : options(options), together(std::move(ranks)) {
  if (isHeld())
    lock.emplace(options.out);
  together->barrier();
  begin = checkpointFor(options);
  together->expectSame("checkpoint to go on from", begin.value_or("none"));
}

void RunFolder::nameOlder(const Error &error) const {
  const std::optional<std::string> older = error.fault == Fault::user ? wholeCheckpointBefore(*begin) : std::nullopt;
  if (!older)
    throw;
  throw Error(fmt::format("{}; '{}' is intact, and --resume-step {} continues from it", error.what(), *older,
                          readRunState(*older).step));
}

void RunFolder::takeAgain(int64_t saved) {
  lock.emplace(options.out);
  const std::optional<std::string> newest = newestCheckpoint(options.out);
  if (newest && (saved < 0 || *newest != checkpointPath(options.out, saved)))
    throw Error(fmt::format("another run's '{}' is there now", *newest));
}

} // namespace kiln
