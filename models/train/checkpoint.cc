// Writes, finds and reads checkpoints.

#include "models/train/checkpoint.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/train/model_links.h"
#include "models/train/run_state.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <tuple>

namespace kiln {

//===-- Tensors of a file ---------------------------------------------------------------------------------------===//

NameInFile prefixed(const std::string &prefix) {
  return [=](const std::string &name) { return prefix + name; };
}

void readTensors(const Safetensors &file, const ParameterList &list, const NameInFile &nameOf, Type type, void *to) {
  for (const Parameter &p : list.all())
    file.read(nameOf(p.name), type, p.shape, static_cast<char *>(to) + p.offset * bytesOf(type));
}

/// `'a', 'b', 'c' and 4 more`.
static std::string listed(const std::vector<std::string> &names) {
  constexpr size_t shown = 3;
  const std::vector<std::string> first(names.begin(), names.begin() + std::min(shown, names.size()));
  const std::string more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  return fmt::format("'{}'{}", fmt::join(first, "', '"), more);
}

void verifyNames(const std::string &path, const std::vector<std::string> &held, const ParameterList &list,
                 const NameInFile &nameOf, const std::function<bool(const std::string &)> &mayBeThere) {
  std::set<std::string> missing;
  for (const Parameter &p : list.all())
    missing.insert(nameOf(p.name));
  std::vector<std::string> extra;
  for (const std::string &name : held)
    if (missing.erase(name) == 0 && !(mayBeThere && mayBeThere(name)))
      extra.push_back(name);
  if (!missing.empty())
    throw Error(fmt::format("expected the {} tensors of the model in '{}', but there is no {}", list.all().size(), path,
                            listed({missing.begin(), missing.end()})));
  if (!extra.empty())
    throw Error(fmt::format("expected the {} tensors of the model in '{}', but there is also {}", list.all().size(),
                            path, listed(extra)));
}

//===-- Checkpoints ---------------------------------------------------------------------------------------------===//

namespace fs = std::filesystem;

static constexpr const char *masterPrefix = "master.";

BufferSource readFrom(const HostBuffers &buffers) {
  return {buffers.type, [&buffers](FlatBuffer which, int64_t first, int64_t count, void *to) {
            const int64_t size = which == FlatBuffer::values ? bytesOf(buffers.type) : bytesOf(f32);
            const void *const from = which == FlatBuffer::values  ? static_cast<const void *>(buffers.values.data())
                                     : which == FlatBuffer::first ? static_cast<const void *>(buffers.first.data())
                                                                  : static_cast<const void *>(buffers.second.data());
            std::memcpy(to, static_cast<const char *>(from) + first * size, count * size);
          }};
}

/// Elements converted at a time.
static constexpr int64_t chunk = int64_t{1} << 16;

/// Whether a number's exponent is all ones: infinity or NaN.
template <class Word> static bool isFinite(Word word, Word exponent) { return (word & exponent) != exponent; }

/// Throws unless all numbers (f32, bf16 or f16) are finite.
static void expectFinite(const std::string &tensor, Type type, const char *numbers, int64_t count) {
  const auto check = [&]<class Word>(Word exponent) {
    for (int64_t i = 0; i < count; ++i) {
      Word word;
      std::memcpy(&word, numbers + i * sizeof word, sizeof word);
      if (!isFinite(word, exponent))
        throw Error(fmt::format("expected finite weights, but tensor '{}' has {} as {}", tensor,
                                toDoubles(numbers + i * sizeof word, type, 1)[0], nameOf(type)));
    }
  };
  if (type == f32)
    check(uint32_t{0x7f800000});
  else
    check(type == bf16 ? uint16_t{0x7f80} : uint16_t{0x7c00});
}

/// The tensors of a flat buffer of `type`, named with `prefix` and saved as `saved`.
static void append(std::vector<HostTensor> &tensors, const ParameterList &list, const char *prefix,
                   const BufferSource &source, FlatBuffer which, Type type, Type saved) {
  for (const Parameter &p : list.all())
    tensors.emplace_back(prefix + p.name, saved, p.shape, [=, &source, &p](std::vector<char> &place) -> const void * {
      place.resize(p.count() * bytesOf(saved));
      if (saved == type)
        source.read(which, p.offset, p.count(), place.data());
      std::vector<char> part(saved == type ? 0 : std::min(chunk, p.count()) * bytesOf(type));
      for (int64_t i = 0; i < p.count() && saved != type; i += chunk) {
        const int64_t size = std::min(chunk, p.count() - i);
        source.read(which, p.offset + i, size, part.data());
        fromDoubles(toDoubles(part.data(), type, size), saved, place.data() + i * bytesOf(saved));
      }
      if (which == FlatBuffer::values)
        expectFinite(p.name, saved, place.data(), p.count());
      return place.data();
    });
}

static void writeText(const std::string &path, const std::string &text) {
  writeSynced(path, {{text.data(), static_cast<int64_t>(text.size())}});
}

static void writeAll(const std::string &folder, const RunState &state, const Model &model,
                     const BufferSource &buffers) {
  const ParameterList &list = model.parameters();
  const Type saved = state.settings.saveType;
  std::vector<HostTensor> weights, moments;
  append(weights, list, "", buffers, FlatBuffer::values, buffers.type, saved);
  if (saved != buffers.type && saved != f32)
    append(moments, list, masterPrefix, buffers, FlatBuffer::values, buffers.type, buffers.type);
  append(moments, list, "exp_avg.", buffers, FlatBuffer::first, f32, f32);
  append(moments, list, "exp_avg_sq.", buffers, FlatBuffer::second, f32, f32);
  const auto partsWith = [&](const Metadata &ofWeights, const Metadata &ofMoments) {
    IdentifiedParts parts = {textOf(model.configJson(saved), 2) + "\n", textOf(stateJson(state), 2) + "\n", ofWeights,
                             ofMoments};
    parts.weights.emplace("format", "pt"); // required by Hugging Face's library
    identify(parts, state.step, state.settings.seed);
    return parts;
  };
  const std::string weightFile = folder + "/model.safetensors", momentFile = folder + "/optimizer.safetensors";
  // Each tensor is read once; the combined checksum is known after writing, and is filled in then.
  const IdentifiedParts blank = partsWith(blankChecksums(weights), blankChecksums(moments));
  const Metadata ofWeights = writeSafetensors(weightFile, weights, blank.weights);
  const IdentifiedParts parts = partsWith(ofWeights, writeSafetensors(momentFile, moments, blank.moments));
  replaceMetadata(weightFile, weights, parts.weights);
  replaceMetadata(momentFile, moments, parts.moments);
  writeText(folder + "/config.json", parts.config);
  writeText(folder + "/training.json", parts.training);
  syncFolder(folder);
}

static const std::string stem = "checkpoint-";

std::string checkpointPath(const std::string &folder, int64_t step) {
  return fmt::format("{}/{}{:08}", folder, stem, step);
}

/// The step in a checkpoint's name.
static int64_t readStep(const fs::path &checkpoint) {
  return std::strtoll(checkpoint.filename().string().c_str() + stem.size(), nullptr, 10);
}

/// Checkpoints in `folder`, oldest first; none if the folder does not exist. Throws Error (device) if it cannot be
/// read.
static std::vector<std::string> checkpoints(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    const std::string digits = name.substr(0, stem.size()) == stem ? name.substr(stem.size()) : "";
    // Other trainers do not pad with zeros.
    const bool padded = digits.size() == 8 || (digits.size() > 8 && digits[0] != '0');
    if (padded && digits.find_first_not_of("0123456789") == std::string::npos)
      found.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw Error(fmt::format("cannot read folder '{}': {}", folder, error.message()), Fault::device);
  std::sort(found.begin(), found.end(), [](const std::string &a, const std::string &b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b; // steps above 99999999 have longer names
  });
  return found;
}

std::optional<std::string> newestCheckpoint(const std::string &folder) {
  const std::vector<std::string> found = checkpoints(folder);
  return found.empty() ? std::nullopt : std::optional(found.back());
}

/// Renames and then removes a checkpoint, so that a partial one is never read.
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

/// Whether a checkpoint is complete and undamaged.
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

/// Removes a checkpoint, and the link to the best one if it leads there. Throws Error (device) if it cannot.
static void remove(const std::string &checkpoint) {
  const fs::path path = checkpoint;
  if (bestLinked(path.parent_path()) == path.filename().string())
    unlinkBest(path.parent_path());
  if (const std::error_code error = discard(checkpoint))
    throw Error(fmt::format("cannot remove '{}': {}", checkpoint, error.message()), Fault::device);
}

void removeCheckpointsAfter(const std::string &checkpoint) {
  const fs::path folder = fs::path(checkpoint).parent_path();
  const std::vector<std::string> all = checkpoints(folder);
  if (all.empty() || all.back() == checkpoint)
    return;
  linkModel(folder, fs::path(checkpoint).filename()); // before their targets are removed
  for (auto path = all.rbegin(); path != all.rend() && *path != checkpoint; ++path)
    remove(*path);
}

void removeCheckpoints(const std::string &folder) {
  unlinkModel(folder);
  for (const std::string &path : checkpoints(folder))
    remove(path);
}

/// Removes partial checkpoints of runs that were killed while they wrote or removed one.
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

/// Renames the checkpoint written at `aside`. If one of that name exists, because a run was resumed from an earlier
/// step, the two are exchanged atomically. So links to it are never dangling.
static void install(const std::string &aside, const std::string &path) {
  std::error_code error;
  if (!fs::exists(path))
    return fs::rename(aside, path);
  if (renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(aside, error); // a remainder is removed at the next save
    return;
  }
  error = discard(path); // on file systems without an exchange
  if (error)
    throw fs::filesystem_error("remove", path, error);
  fs::rename(aside, path);
}

void linkNewest(const std::string &folder) {
  if (const std::optional<std::string> newest = newestCheckpoint(folder))
    linkModel(folder, fs::path(*newest).filename());
}

std::string saveCheckpoint(const std::string &folder, const RunState &state, const Model &model,
                           const BufferSource &buffers) {
  const std::string path = checkpointPath(folder, state.step);
  const std::string aside = fmt::format("{}/.{}{:08}.partial", folder, stem, state.step);
  std::error_code ignored;
  removeLeftovers(folder);
  try {
    fs::create_directory(aside); // not its parents, so that a removed folder is reported
    writeAll(aside, state, model, buffers);
    install(aside, path);
    syncFolder(folder);
  } catch (const fs::filesystem_error &error) {
    fs::remove_all(aside, ignored);
    throw Error(fmt::format("cannot write checkpoint '{}': {}", path, error.code().message()), Fault::device);
  } catch (const Error &error) {
    fs::remove_all(aside, ignored);
    throw Error(fmt::format("{} (earlier checkpoints are untouched)", error.what()), error.fault);
  }
  linkNewest(folder); // before their targets are removed
  const std::vector<std::string> all = checkpoints(folder);
  const std::optional<std::string> best = bestLinked(folder);
  const TrainSettings &s = state.settings;
  for (size_t i = 0; i + static_cast<size_t>(s.keep) < all.size(); ++i)
    if (fs::path(all[i]).filename() != best.value_or("") && !(s.keepEvery > 0 && readStep(all[i]) % s.keepEvery == 0))
      std::ignore = discard(all[i]); // retried at the next save
  return path;
}

/// Reads the tensors of a file as `type`, one by one.
static void bring(const Safetensors &file, const ParameterList &list, const std::string &prefix, FlatBuffer which,
                  Type type, const BufferSink &to) {
  std::vector<char> place;
  for (const Parameter &p : list.all()) {
    place.resize(p.count() * bytesOf(type));
    file.read(prefix + p.name, type, p.shape, place.data());
    to(which, p.offset, p.count(), place.data());
  }
}

void readBuffers(const std::string &checkpoint, const Model &model, Type type, const BufferSink &to) {
  const ParameterList &list = model.parameters();
  const Safetensors weights(checkpoint + "/model.safetensors"), moments(checkpoint + "/optimizer.safetensors");
  verifyNames(checkpoint + "/model.safetensors", weights.names(), list, prefixed(""));
  const bool hasMasters = moments.has(masterPrefix + list.all().front().name);
  if (hasMasters) // then the narrow weights are not read
    weights.verify();
  bring(hasMasters ? moments : weights, list, hasMasters ? masterPrefix : "", FlatBuffer::values, type, to);
  bring(moments, list, "exp_avg.", FlatBuffer::first, f32, to);
  bring(moments, list, "exp_avg_sq.", FlatBuffer::second, f32, to);
}

HostBuffers readBuffers(const std::string &checkpoint, const Model &model, Type type) {
  const int64_t count = model.parameters().count();
  HostBuffers buffers{std::vector<char>(count * bytesOf(type)), std::vector<float>(count), std::vector<float>(count),
                      type};
  readBuffers(checkpoint, model, type, [&](FlatBuffer which, int64_t first, int64_t number, const void *from) {
    const int64_t size = which == FlatBuffer::values ? bytesOf(type) : bytesOf(f32);
    void *const to = which == FlatBuffer::values  ? static_cast<void *>(buffers.values.data())
                     : which == FlatBuffer::first ? static_cast<void *>(buffers.first.data())
                                                  : static_cast<void *>(buffers.second.data());
    std::memcpy(static_cast<char *>(to) + first * size, from, number * size);
  });
  return buffers;
}

} // namespace kiln
