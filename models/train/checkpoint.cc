// Writing and reading checkpoints, and training.json in them.

#include "models/train/checkpoint.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/gpt2/config_json.h"
#include "models/gpt2/weights.h"
#include "models/train/identity.h"
#include "models/train/model_links.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <tuple>

namespace kiln {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

uint64_t hashOf(const std::vector<uint8_t> &bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint8_t byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

static Json settingsJson(const TrainSettings &s) {
  return {{"batch", s.batch}, {"accumulate", s.accumulate}, {"steps", s.steps}, {"warmup", s.warmup},
          {"rate", s.rate},   {"final_rate", s.finalRate},  {"decay", s.decay}, {"beta1", s.beta1},
          {"beta2", s.beta2}, {"epsilon", s.epsilon},       {"clip", s.clip},   {"evaluate_every", s.evaluateEvery},
          {"seed", s.seed}};
}

static Json stateJson(const RunState &state) {
  return {{"format", 2},
          {"checkpoint", noIdentity},
          {"step", state.step},
          {"settings", settingsJson(state.settings)},
          {"random", {{"generator", "philox4x32-10"}, {"seed", state.settings.seed}, {"sequences", state.sequences}}},
          {"data",
           {{"path", state.data.path},
            {"train_bytes", state.data.bytes},
            {"hash", fmt::format("{:016x}", state.data.hash)}}}};
}

static TrainSettings settingsOf(const JsonObject &j) {
  TrainSettings s;
  s.batch = j.integer("batch");
  s.accumulate = j.integer("accumulate");
  s.steps = j.integer("steps");
  s.warmup = j.integer("warmup");
  s.rate = j.number("rate");
  s.finalRate = j.number("final_rate");
  s.decay = j.number("decay");
  s.beta1 = j.number("beta1");
  s.beta2 = j.number("beta2");
  s.epsilon = j.number("epsilon");
  s.clip = j.number("clip");
  s.evaluateEvery = j.integer("evaluate_every");
  s.seed = j.natural("seed");
  return s;
}

/// A count that a run's state holds.
static int64_t countOf(const JsonObject &j, const char *name, const std::string &path) {
  const int64_t count = j.integer(name);
  if (count < 0)
    throw Error(fmt::format("expected field '{}' in '{}' to be at least 0, but got {}", name, path, count));
  return count;
}

/// The data's hash: 16 hexadecimal digits, which every reader of JSON keeps as they are; a number in older checkpoints.
static uint64_t hashIn(const JsonObject &data) {
  if (data.isNumber("hash"))
    return data.natural("hash");
  const std::string digits = data.text("hash");
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() != 16)
    data.reject("hash", "16 hexadecimal digits");
  return hash;
}

RunState readRunState(const std::string &checkpoint) {
  const std::string path = checkpoint + "/training.json";
  const JsonObject j = readJsonObject(path), data = j.object("data");
  RunState state;
  state.step = countOf(j, "step", path);
  state.sequences = countOf(j.object("random"), "sequences", path);
  state.settings = settingsOf(j.object("settings"));
  state.data = {data.text("path"), data.integer("train_bytes"), hashIn(data)};
  state.config = readConfig(checkpoint);
  verifyParts(checkpoint);
  return state;
}

/// The tensors of a flat buffer, named with `prefix`.
static void append(std::vector<HostTensor> &tensors, const ParameterList &list, const char *prefix, Type type,
                   const void *flat) {
  for (const Parameter &p : list.all())
    tensors.push_back({prefix + p.name, type, p.shape, static_cast<const char *>(flat) + p.offset * bytesOf(type)});
}

static void writeText(const std::string &path, const std::string &text) {
  writeSynced(path, {{text.data(), static_cast<int64_t>(text.size())}});
}

static void writeAll(const std::string &folder, const RunState &state, const ParameterList &list,
                     const HostBuffers &buffers) {
  std::vector<HostTensor> weights, moments;
  append(weights, list, "", state.config.type, buffers.values.data());
  append(moments, list, "exp_avg.", f32, buffers.first.data());
  append(moments, list, "exp_avg_sq.", f32, buffers.second.data());
  IdentifiedParts parts;
  parts.config = textOf(configJson(state.config), 2) + "\n";
  parts.training = textOf(stateJson(state), 2) + "\n";
  parts.weights = checksumsOf(weights);
  parts.weights.emplace("format", "pt"); // as Hugging Face's library wants it
  parts.moments = checksumsOf(moments);
  identify(parts, state.step, state.settings.seed);
  writeSafetensors(folder + "/model.safetensors", weights, parts.weights);
  writeSafetensors(folder + "/optimizer.safetensors", moments, parts.moments);
  writeText(folder + "/config.json", parts.config);
  writeText(folder + "/training.json", parts.training);
  syncFolder(folder);
}

static const std::string stem = "checkpoint-";

std::string checkpointPath(const std::string &folder, int64_t step) {
  return fmt::format("{}/{}{:08}", folder, stem, step);
}

/// Checkpoints below `folder`, oldest first; none where there is no such folder. Throws Error (device) when that cannot
/// be known.
static std::vector<std::string> checkpoints(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    const std::string digits = name.substr(0, stem.size()) == stem ? name.substr(stem.size()) : "";
    const bool padded = digits.size() == 8 || (digits.size() > 8 && digits[0] != '0'); // other trainers do not pad
    if (padded && digits.find_first_not_of("0123456789") == std::string::npos)
      found.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw Error(fmt::format("cannot read folder '{}': {}", folder, error.message()), Fault::device);
  std::sort(found.begin(), found.end(), [](const std::string &a, const std::string &b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b; // steps beyond 99999999 are longer
  });
  return found;
}

std::optional<std::string> newestCheckpoint(const std::string &folder) {
  const std::vector<std::string> found = checkpoints(folder);
  return found.empty() ? std::nullopt : std::optional(found.back());
}

/// Removes a checkpoint, under another name, so that a half of it is never taken for a whole.
static std::error_code discard(const fs::path &path) {
  const fs::path aside = path.parent_path() / fmt::format(".{}.removed", path.filename().string());
  std::error_code error;
  fs::remove_all(aside, error);
  if (!error)
    fs::rename(path, aside, error);
  if (!error)
    fs::remove_all(aside, error);
  return error;
}

/// Whether all of a checkpoint is as it was written.
static bool isWhole(const std::string &checkpoint) {
  try {
    readRunState(checkpoint);
    for (const char *name : {"/model.safetensors", "/optimizer.safetensors"})
      Safetensors(checkpoint + name).verify();
    return true;
  } catch (const Error &) {
    return false;
  }
}

std::optional<std::string> wholeCheckpointBefore(const std::string &checkpoint) {
  std::vector<std::string> all = checkpoints(fs::path(checkpoint).parent_path());
  const auto place = std::find(all.begin(), all.end(), checkpoint);
  if (place == all.end() || isWhole(checkpoint))
    return {};
  all.erase(place, all.end());
  const auto whole = std::find_if(all.rbegin(), all.rend(), isWhole);
  return whole == all.rend() ? std::nullopt : std::optional(*whole);
}

/// Removes a checkpoint, or says why not.
static void remove(const std::string &checkpoint) {
  if (const std::error_code error = discard(checkpoint))
    throw Error(fmt::format("cannot remove '{}': {}", checkpoint, error.message()), Fault::device);
}

void removeCheckpointsAfter(const std::string &checkpoint) {
  const fs::path folder = fs::path(checkpoint).parent_path();
  const std::vector<std::string> all = checkpoints(folder);
  if (all.empty() || all.back() == checkpoint)
    return;
  linkModel(folder, fs::path(checkpoint).filename()); // before what the links point at is removed
  for (auto path = all.rbegin(); path != all.rend() && *path != checkpoint; ++path)
    remove(*path);
}

void removeCheckpoints(const std::string &folder) {
  unlinkModel(folder);
  for (const std::string &path : checkpoints(folder))
    remove(path);
}

/// Removes what runs that were killed left behind in the middle of writing or removing.
static void removeLeftovers(const std::string &folder) {
  std::vector<fs::path> leftovers;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename(), kind = entry->path().extension();
    if (name.rfind("." + stem, 0) == 0 && (kind == ".partial" || kind == ".removed"))
      leftovers.push_back(entry->path());
  }
  for (const fs::path &path : leftovers)
    fs::remove_all(path, ignored);
}

/// Gives what was written at `aside` its name. Where a checkpoint has it already (a run that was resumed earlier comes
/// by again) the two change places in one step, so that a link to it never leads nowhere.
static void install(const std::string &aside, const std::string &path) {
  std::error_code error;
  if (!fs::exists(path))
    return fs::rename(aside, path);
  if (renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(aside, error); // what stays of the old one goes with the next save
    return;
  }
  error = discard(path); // on a file system that cannot exchange
  if (error)
    throw fs::filesystem_error("remove", path, error);
  fs::rename(aside, path);
}

void linkNewest(const std::string &folder) {
  if (const std::optional<std::string> newest = newestCheckpoint(folder))
    linkModel(folder, fs::path(*newest).filename());
}

std::string saveCheckpoint(const std::string &folder, int64_t keep, const RunState &state, const ParameterList &list,
                           const HostBuffers &buffers) {
  const std::string path = checkpointPath(folder, state.step);
  const std::string aside = fmt::format("{}/.{}{:08}.partial", folder, stem, state.step);
  std::error_code ignored;
  removeLeftovers(folder);
  try {
    fs::create_directory(aside); // not its parents: a folder that went away is told
    writeAll(aside, state, list, buffers);
    install(aside, path);
    syncFolder(folder);
  } catch (const fs::filesystem_error &error) {
    fs::remove_all(aside, ignored);
    throw Error(fmt::format("cannot write checkpoint '{}': {}", path, error.code().message()), Fault::device);
  } catch (const Error &error) {
    fs::remove_all(aside, ignored);
    throw Error(fmt::format("{} (earlier checkpoints are untouched)", error.what()), error.fault);
  }
  linkNewest(folder); // before what the links point at is removed
  const std::vector<std::string> all = checkpoints(folder);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i)
    std::ignore = discard(all[i]); // what cannot be removed now is tried again next time
  return path;
}

HostBuffers readBuffers(const std::string &checkpoint, const ParameterList &list, Type type) {
  HostBuffers buffers{readWeights(checkpoint + "/model.safetensors", list, type), std::vector<float>(list.count()),
                      std::vector<float>(list.count())};
  const Safetensors moments(checkpoint + "/optimizer.safetensors");
  readTensors(moments, list, "exp_avg.", f32, buffers.first.data());
  readTensors(moments, list, "exp_avg_sq.", f32, buffers.second.data());
  return buffers;
}

} // namespace kiln
