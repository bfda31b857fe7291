// Symbolic links, made aside and renamed.

#include "models/train/model_links.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"

#include <filesystem>
#include <fmt/format.h>

namespace kiln {

namespace fs = std::filesystem;

static const char *const newest = "latest";
static const char *const files[] = {"config.json", "model.safetensors"};

/// What the link `path` says; "" when it is no link.
static std::string targetOf(const fs::path &path) {
  std::error_code none;
  return fs::read_symlink(path, none).string();
}

static bool isOurs(const fs::path &path) {
  const std::string name = path.filename(), target = targetOf(path);
  return name == newest ? target.rfind("checkpoint-", 0) == 0 : target == fmt::format("{}/{}", newest, name);
}

/// Makes `path` a link to `target`, in one step where there is a link already; says whether there can be links.
static bool link(const fs::path &path, const std::string &target) {
  if (targetOf(path) == target)
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
    throw Error(fmt::format("cannot write link '{}': {}", path.string(), error.message()), Fault::device);
  }
  return true;
}

void linkModel(const std::string &folder, const std::string &name) {
  if (!link(fs::path(folder) / newest, name))
    return;
  for (const char *file : files)
    link(fs::path(folder) / file, fmt::format("{}/{}", newest, file));
  syncFolder(folder);
}

void unlinkModel(const std::string &folder) {
  for (const char *name : {files[0], files[1], newest}) {
    const fs::path path = fs::path(folder) / name;
    std::error_code error;
    if (isOurs(path) && !fs::remove(path, error) && error)
      throw Error(fmt::format("cannot remove link '{}': {}", path.string(), error.message()), Fault::device);
  }
}

void verifyNoOtherModel(const std::string &folder) {
  for (const char *name : {"config.json", "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json", "latest"}) {
    const fs::path path = fs::path(folder) / name;
    std::error_code none;
    if (fs::exists(fs::symlink_status(path, none)) && !isOurs(path))
      throw Error(fmt::format("expected a folder for a run, but '{}' is of another model; --out names a folder of its "
                              "own, --init begins with a model's weights",
                              path.string()));
  }
}

} // namespace kiln
