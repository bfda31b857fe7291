// Writing and reading checkpoints, and the two JSON files in them.

#include "models/gpt2/checkpoint.h"
#include "models/data/files.h"
#include "models/data/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

uint64_t hashOf(const std::vector<uint8_t> &bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint8_t byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

static Json configJson(const Gpt2Config &c) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"n_layer", c.layers},
          {"n_head", c.heads},
          {"n_embd", c.width},
          {"n_positions", c.context},
          {"n_ctx", c.context},
          {"vocab_size", c.vocab},
          {"tie_word_embeddings", true},
          {"torch_dtype", c.type == Type::bf16  ? "bfloat16"
                          : c.type == Type::f16 ? "float16"
                                                : "float32"}};
}

static Json settingsJson(const TrainSettings &s) {
  return {{"batch", s.batch}, {"accumulate", s.accumulate}, {"steps", s.steps}, {"warmup", s.warmup},
          {"rate", s.rate},   {"final_rate", s.finalRate},  {"decay", s.decay}, {"beta1", s.beta1},
          {"beta2", s.beta2}, {"epsilon", s.epsilon},       {"clip", s.clip},   {"evaluate_every", s.evaluateEvery},
          {"seed", s.seed}};
}

static Json stateJson(const RunState &state) {
  return {{"format", 1},
          {"step", state.step},
          {"settings", settingsJson(state.settings)},
          {"random", {{"generator", "philox4x32-10"}, {"seed", state.settings.seed}, {"sequences", state.sequences}}},
          {"data", {{"path", state.data.path}, {"train_bytes", state.data.bytes}, {"hash", state.data.hash}}}};
}

static TrainSettings settingsOf(const Json &j) {
  TrainSettings s;
  s.batch = j.at("batch");
  s.accumulate = j.at("accumulate");
  s.steps = j.at("steps");
  s.warmup = j.at("warmup");
  s.rate = j.at("rate");
  s.finalRate = j.at("final_rate");
  s.decay = j.at("decay");
  s.beta1 = j.at("beta1");
  s.beta2 = j.at("beta2");
  s.epsilon = j.at("epsilon");
  s.clip = j.at("clip");
  s.evaluateEvery = j.at("evaluate_every");
  s.seed = j.at("seed");
  return s;
}

/// Parses the file and hands it to `take`; a file that is no JSON or lacks a field becomes an Error with its name.
template <class Take> static auto readJson(const std::string &path, Take take) {
  const std::string text = readFile(path);
  try {
    return take(Json::parse(text));
  } catch (const nlohmann::json::exception &error) {
    throw Error(fmt::format("expected the fields of a checkpoint in '{}', but got: {}", path, error.what()));
  }
}

Gpt2Config readConfig(const std::string &checkpoint) {
  const Gpt2Config config = readJson(checkpoint + "/config.json", [](const Json &j) {
    Gpt2Config c;
    c.layers = j.at("n_layer");
    c.heads = j.at("n_head");
    c.width = j.at("n_embd");
    c.context = j.at("n_positions");
    c.vocab = j.at("vocab_size");
    return c;
  });
  verify(config);
  return config;
}

RunState readRunState(const std::string &checkpoint) {
  RunState state = readJson(checkpoint + "/training.json", [](const Json &j) {
    RunState s;
    s.step = j.at("step");
    s.settings = settingsOf(j.at("settings"));
    s.sequences = j.at("random").at("sequences");
    s.data = {j.at("data").at("path"), j.at("data").at("train_bytes"), j.at("data").at("hash")};
    return s;
  });
  state.config = readConfig(checkpoint);
  return state;
}

/// The tensors of a flat buffer, named with `prefix`.
static void append(std::vector<HostTensor> &tensors, const ParameterList &list, const char *prefix, Type type,
                   const void *flat) {
  for (const Parameter &p : list.all())
    tensors.push_back({prefix + p.name, type, p.shape, static_cast<const char *>(flat) + p.offset * bytesOf(type)});
}

static std::string textOf(const Json &json) { return json.dump(2) + "\n"; }

static void writeText(const std::string &path, const std::string &text) {
  writeSynced(path, {{text.data(), static_cast<int64_t>(text.size())}});
}

static void writeAll(const std::string &folder, const RunState &state, const ParameterList &list,
                     const HostBuffers &buffers) {
  std::vector<HostTensor> weights, moments;
  append(weights, list, "", state.config.type, buffers.values.data());
  append(moments, list, "exp_avg.", f32, buffers.first.data());
  append(moments, list, "exp_avg_sq.", f32, buffers.second.data());
  writeSafetensors(folder + "/model.safetensors", weights, {{"format", "pt"}});
  writeSafetensors(folder + "/optimizer.safetensors", moments);
  writeText(folder + "/config.json", textOf(configJson(state.config)));
  writeText(folder + "/training.json", textOf(stateJson(state)));
  syncFolder(folder);
}

static const std::string stem = "checkpoint-";

/// Checkpoints below `folder`, oldest first.
static std::vector<std::string> checkpoints(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code none;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    const std::string digits = name.substr(0, stem.size()) == stem ? name.substr(stem.size()) : "";
    if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos)
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::string> newestCheckpoint(const std::string &folder) {
  const std::vector<std::string> found = checkpoints(folder);
  return found.empty() ? std::nullopt : std::optional(found.back());
}

void removeCheckpoints(const std::string &folder) {
  for (const std::string &path : checkpoints(folder))
    fs::remove_all(path);
}

std::string saveCheckpoint(const std::string &folder, int64_t keep, const RunState &state, const ParameterList &list,
                           const HostBuffers &buffers) {
  const std::string path = fmt::format("{}/{}{:08}", folder, stem, state.step);
  const std::string aside = fmt::format("{}/.{}{:08}.partial", folder, stem, state.step);
  std::error_code ignored;
  try {
    fs::remove_all(aside);
    fs::create_directories(aside);
    writeAll(aside, state, list, buffers);
    fs::remove_all(path); // a run that was resumed earlier and comes by here again
    fs::rename(aside, path);
    syncFolder(folder);
  } catch (const fs::filesystem_error &error) {
    fs::remove_all(aside, ignored);
    throw Error(fmt::format("cannot write checkpoint '{}': {}", path, error.code().message()), Fault::device);
  } catch (const Error &error) {
    fs::remove_all(aside, ignored);
    throw Error(fmt::format("{} (earlier checkpoints are untouched)", error.what()), error.fault);
  }
  const std::vector<std::string> all = checkpoints(folder);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i)
    fs::remove_all(all[i], ignored);
  return path;
}

static void readFlat(const Safetensors &file, const ParameterList &list, const std::string &prefix, Type type,
                     void *flat) {
  for (const Parameter &p : list.all())
    file.read(prefix + p.name, type, p.shape, static_cast<char *>(flat) + p.offset * bytesOf(type));
}

std::vector<char> readWeights(const std::string &checkpoint, const ParameterList &list, Type type) {
  const Safetensors file(checkpoint + "/model.safetensors");
  const std::vector<std::string> names = file.names();
  const bool prefixed = std::find(names.begin(), names.end(), "transformer.wte.weight") != names.end();
  std::vector<char> values(list.count() * bytesOf(type));
  readFlat(file, list, prefixed ? "transformer." : "", type, values.data());
  return values;
}

HostBuffers readBuffers(const std::string &checkpoint, const ParameterList &list, Type type) {
  HostBuffers buffers{readWeights(checkpoint, list, type), std::vector<float>(list.count()),
                      std::vector<float>(list.count())};
  const Safetensors moments(checkpoint + "/optimizer.safetensors");
  readFlat(moments, list, "exp_avg.", f32, buffers.first.data());
  readFlat(moments, list, "exp_avg_sq.", f32, buffers.second.data());
  return buffers;
}

} // namespace kiln
