// Creates symbolic links under another name and renames them.

#include "models/train/model_links.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "runtime/Files.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace kiln {

namespace fs = std::filesystem;

static const std::string checkpointPrefix = "checkpoint-";
static const char *const newest = "latest", *const best = "best";
static const char *const files[] = {"config.json", "model.safetensors"};

[[noreturn]] static void fail(const char *verb, const fs::path &path, const std::error_code &error) {
  throw Error(fmt::format("cannot {} '{}': {}", verb, path.string(), error.message()), Fault::device);
}

/// The file status at the path, without following links. Throws Error (device) if it cannot be read.
static fs::file_type fileType(const fs::path &path) {
  std::error_code error;
  const fs::file_type kind = fs::symlink_status(path, error).type();
  if (kind == fs::file_type::none)
    fail("look at", path, error);
  return kind;
}

/// The target of the link `path`; "" if it is not a link.
static std::string linkTarget(const fs::path &path) {
  if (fileType(path) != fs::file_type::symlink)
    return "";
  std::error_code error;
  const std::string target = fs::read_symlink(path, error).string();
  if (error)
    fail("read link", path, error);
  return target;
}

/// Whether two files hold the same bytes.
static bool haveSameBytes(const fs::path &a, const fs::path &b) {
  const InputFile first(a), second(b);
  if (first.size() != second.size())
    return false;
  constexpr int64_t most = int64_t{1} << 20;
  std::string mine(std::min(most, first.size()), '\0'), theirs = mine;
  for (int64_t at = 0; at < first.size(); at += most) {
    const int64_t size = std::min(most, first.size() - at);
    first.read(at, mine.data(), size);
    second.read(at, theirs.data(), size);
    if (mine != theirs)
      return false;
  }
  return true;
}

/// Whether `path`, a file or a folder of files, has the content of `original`, or of a part of it.
static bool isCopyOf(const fs::path &path, const fs::path &original) {
  if (fileType(original) != fileType(path))
    return false;
  if (fileType(path) == fs::file_type::regular)
    return haveSameBytes(path, original);
  return fileType(path) == fs::file_type::directory && !fs::is_empty(path) &&
         std::all_of(fs::directory_iterator(path), {}, [&](const fs::directory_entry &entry) {
           return isCopyOf(entry.path(), original / entry.path().filename());
         });
}

/// Whether `path` is a copy of a link's target, with the bytes of a file of a checkpoint next to it. Copying a run's
/// folder with links followed makes such copies. False if it cannot be read or is removed meanwhile.
static bool isCopy(const fs::path &path) try {
  const fs::path part = path.filename() == newest ? fs::path() : path.filename();
  const fs::file_type kind = fileType(path);
  if (kind != fs::file_type::regular && kind != fs::file_type::directory)
    return false;
  return std::any_of(fs::directory_iterator(path.parent_path()), {}, [&](const fs::directory_entry &entry) {
    return entry.path().filename().string().starts_with(checkpointPrefix) &&
           isCopyOf(path, part.empty() ? entry.path() : entry.path() / part);
  });
} catch (const fs::filesystem_error &) {
  return false;
}

static bool isLinkOfOurs(const fs::path &path) {
  const std::string name = path.filename(), target = linkTarget(path);
  return name == newest ? target.starts_with(checkpointPrefix) : target == fmt::format("{}/{}", newest, name);
}

static bool isOurs(const fs::path &path) { return isLinkOfOurs(path) || isCopy(path); }

/// Makes `path` a link to `target`, replacing a link atomically. Returns whether the file system has links.
static bool link(const fs::path &path, const std::string &target) {
  if (linkTarget(path) == target)
    return true;
  const fs::path aside = path.parent_path() / fmt::format(".{}.partial", path.filename().string());
  std::error_code error;
  fs::remove(aside, error);
  fs::create_symlink(target, aside, error);
  if (error == std::errc::operation_not_permitted || error == std::errc::operation_not_supported ||
      error == std::errc::function_not_supported)
    return false;
  if (!error)
    fs::rename(aside, path, error);
  if (error) {
    std::error_code ignored;
    fs::remove(aside, ignored);
    fail("write link", path, error);
  }
  return true;
}

static void removeAll(const fs::path &path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error)
    fail("remove", path, error);
}

void linkModel(const std::string &folder, const std::string &name) {
  for (const char *held : {files[0], files[1], newest})
    if (isCopy(fs::path(folder) / held)) // it would not be updated by the next checkpoint
      removeAll(fs::path(folder) / held);
  if (!link(fs::path(folder) / newest, name))
    return;
  for (const char *file : files)
    link(fs::path(folder) / file, fmt::format("{}/{}", newest, file));
  syncFolder(folder);
}

void linkBest(const std::string &folder, const std::string &name) {
  if (link(fs::path(folder) / best, name))
    syncFolder(folder);
}

std::optional<std::string> bestLinked(const std::string &folder) {
  const std::string name = linkTarget(fs::path(folder) / best);
  return name.starts_with(checkpointPrefix) ? std::optional(name) : std::nullopt;
}

void unlinkBest(const std::string &folder) {
  if (bestLinked(folder))
    removeAll(fs::path(folder) / best);
}

void unlinkModel(const std::string &folder) {
  for (const char *name : {files[0], files[1], newest}) {
    const fs::path path = fs::path(folder) / name;
    if (isOurs(path))
      removeAll(path);
  }
}

void verifyNoOtherModel(const std::string &folder) {
  for (const char *name : {"config.json", "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json", "latest"}) {
    const fs::path path = fs::path(folder) / name;
    if (fileType(path) != fs::file_type::not_found && !isOurs(path))
      throw Error(fmt::format("expected a folder for a run, but '{}' is of another model; --out names a folder of its "
                              "own, --init begins with a model's weights",
                              path.string()));
  }
}

} // namespace kiln
