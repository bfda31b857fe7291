// Reads and writes llm.c's files, one tensor at a time.

#include "models/gpt2/llmc.h"
#include "models/data/files.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace kiln::llmc {

//===-- Layout --------------------------------------------------------------------------------------------------===//

/// A block's tensors, in the file's order.
static constexpr std::array blockTensors = {
    "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
    "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"};

FileLayout fileLayout(const ParameterList &list, int64_t layers, int64_t rows, int64_t positions) {
  std::map<std::string, const Parameter *> named;
  for (const Parameter &p : list.all())
    named[p.name] = &p;
  FileLayout layout;
  const auto add = [&](const std::string &name, std::optional<int64_t> rows = {}) {
    const Parameter *const p = named.at(name);
    const bool isTransposed = p->shape.size() == 2 && name.starts_with("h.");
    const int64_t count = rows ? *rows * p->shape[1] : p->count();
    layout.pieces.push_back({p, isTransposed, layout.count, count});
    layout.count += count;
  };
  add("wte.weight", rows);
  add("wpe.weight", positions);
  for (const char *kind : blockTensors)
    for (int64_t i = 0; i < layers; ++i)
      add(fmt::format("h.{}.{}", i, kind));
  add("ln_f.weight");
  add("ln_f.bias");
  for (const Parameter &p : list.all())
    if (std::none_of(layout.pieces.begin(), layout.pieces.end(),
                     [&](const Piece &piece) { return piece.parameter == &p; }))
      throw Error(
          fmt::format("expected a model of llm.c's tensors, but got '{}', which its files do not have", p.name));
  return layout;
}

FileLayout fileLayout(const Header &header, const ParameterList &list) {
  return fileLayout(list, header[4], header[rowsAt], header[2]);
}

Header readHeader(const InputFile &file, const std::string &path, const char *what) {
  Header header = {};
  if (file.size() < headerBytes)
    throw Error(fmt::format("expected {} of llm.c in '{}', but it has {} bytes", what, path, file.size()));
  file.read(0, header.data(), headerBytes);
  return header;
}

std::vector<float> readAll(const InputFile &file, int64_t begin, Type type, const FileLayout &layout,
                           const ParameterList &list) {
  std::vector<float> all(list.count());
  std::vector<char> raw;
  for (const Piece &piece : layout.pieces) {
    const Parameter &p = *piece.parameter;
    raw.resize(p.count() * bytesOf(type));
    file.read(begin + piece.begin * bytesOf(type), raw.data(), std::ssize(raw));
    std::vector<float> numbers(p.count());
    const std::vector<double> wide = toDoubles(raw.data(), type, p.count());
    std::copy(wide.begin(), wide.end(), numbers.begin());
    float *const to = all.data() + p.offset;
    if (piece.isTransposed)
      transpose(numbers.data(), p.shape[1], p.shape[0], to);
    else
      std::copy(numbers.begin(), numbers.end(), to);
  }
  return all;
}

} // namespace kiln::llmc

namespace kiln {

using namespace llmc;

static constexpr int32_t modelMagic = 20240326, f32Version = 3, bf16Version = 5, stateMagic = 20240527,
                         stateVersion = 1;
static constexpr int stepsAt = 10, randomAt = 20;
/// llm.c's default random state, written because Kiln's generator is another.
static constexpr int32_t firstRandom = 13371337;

static int64_t paddedVocab(int64_t vocab) { return (vocab + 127) / 128 * 128; }

//===-- Reading -------------------------------------------------------------------------------------------------===//

void verifyLlmc(const Gpt2Config &c) {
  const auto expect = [&](bool right, const std::string &wanted) {
    if (!right)
      throw Error(fmt::format("llm.c's files require a GPT-2 {}, but got {}", wanted, textOf(c)));
  };
  expect(c.form == Gpt2Form(), "with Hugging Face's layers");
  expect(c.dropout.kind == DropoutKind::inverted, "without plain dropout (--dropout-kind)");
  expect(c.tied, "whose head is the token table");
  expect(c.innerWidth() == 4 * c.width, "whose feed-forward layers are four times as wide");
  expect(c.epsilon == 1e-5, "whose norms add 1e-5");
  expect(c.scalesScores && !c.scalesByLayer, "whose scores are divided by the root of a head's width");
}

/// The config in a model file's header. Throws Error for another header.
static Gpt2Config readLlmcConfig(const Header &header, const std::string &path) {
  if (header[0] != modelMagic || (header[1] != f32Version && header[1] != bf16Version))
    throw Error(fmt::format("expected a model of llm.c ({}, version {} or {}) in '{}', but got {}, version {}",
                            modelMagic, f32Version, bf16Version, path, header[0], header[1]));
  for (int i = 2; i < 8; ++i) // limits, so that no product of these overflows
    if (header[i] < 1 || header[i] > largestSize)
      throw Error(
          fmt::format("expected sizes from 1 to {} in the header of '{}', but got {}", largestSize, path, header[i]));
  Gpt2Config config = {.layers = header[4], .heads = header[5], .width = header[6], .context = header[2]};
  config.vocab = header[3];
  config.type = header[1] == f32Version ? f32 : bf16;
  if (header[rowsAt] < config.vocab)
    throw Error(fmt::format("expected at least {} rows in the token table of '{}', one for each token, but got {}",
                            config.vocab, path, header[rowsAt]));
  verify(config);
  return config;
}

Gpt2Config readLlmcConfig(const std::string &path) {
  const InputFile file(path);
  const Header header = readHeader(file, path, "a model");
  const Gpt2Config config = readLlmcConfig(header, path);
  const int64_t padding = (header[rowsAt] - config.vocab) * config.width;
  const int64_t bytes = headerBytes + (parameterCount(config) + padding) * bytesOf(config.type);
  if (file.size() != bytes)
    throw Error(fmt::format("expected {} bytes in '{}', the model of {}, but it has {}", bytes, path, textOf(config),
                            file.size()));
  return config;
}

static void setValues(HostBuffers &buffers, const std::vector<float> &values) {
  const auto *const bytes = reinterpret_cast<const char *>(values.data());
  buffers.type = f32;
  buffers.values.assign(bytes, bytes + values.size() * sizeof(float));
}

/// Moments, master weights and steps of the state in `path`.
static void readState(const std::string &path, const FileLayout &layout, const ParameterList &list, LlmcTraining &to) {
  const InputFile file(path);
  const Header header = readHeader(file, path, "a state");
  if (header[0] != stateMagic || header[1] != stateVersion)
    throw Error(fmt::format("expected a state of llm.c ({}, version {}) in '{}', but got {}, version {}", stateMagic,
                            stateVersion, path, header[0], header[1]));
  if (header[2] != 1)
    throw Error(fmt::format("expected the state of one process in '{}', but it is one of {}", path, header[2]));
  const int64_t bytes = layout.count * bytesOf(f32);
  const int64_t parts = header[4] != 0 ? 3 : 2;
  const bool takesMore = header[5] != 0; // llm.c's data state after the numbers
  if (header[stepsAt] < 0 || file.size() < headerBytes + parts * bytes ||
      (!takesMore && file.size() != headerBytes + parts * bytes))
    throw Error(fmt::format("expected {} bytes in '{}', the state of {} parameters, but it has {} (step {})",
                            headerBytes + parts * bytes, path, layout.count, file.size(), header[stepsAt]));
  to.steps = header[stepsAt];
  to.buffers.first = readAll(file, headerBytes, f32, layout, list);
  to.buffers.second = readAll(file, headerBytes + bytes, f32, layout, list);
  if (header[4] != 0)
    setValues(to.buffers, readAll(file, headerBytes + 2 * bytes, f32, layout, list));
}

LlmcTraining readLlmc(const std::string &model, const std::optional<std::string> &state, const Gpt2Config &config,
                      const ParameterList &list) {
  const InputFile file(model);
  const FileLayout layout = fileLayout(readHeader(file, model, "a model"), list);
  LlmcTraining training;
  setValues(training.buffers, readAll(file, headerBytes, config.type, layout, list));
  if (state)
    readState(*state, layout, list, training);
  else
    training.buffers.first = training.buffers.second = std::vector<float>(list.count());
  return training;
}

//===-- Writing -------------------------------------------------------------------------------------------------===//

/// Writes a header and `arrays`, each as `type`, in llm.c's layout.
static void write(const std::string &path, const Header &header, Type type, const FileLayout &layout,
                  const std::vector<const float *> &arrays) {
  std::vector<char> raw;
  std::vector<float> transposed;
  const int64_t pieces = std::ssize(layout.pieces);
  replaceFile(path, 1 + std::ssize(arrays) * pieces, [&](int64_t part) -> Bytes {
    if (part == 0)
      return {header.data(), headerBytes};
    const Piece &piece = layout.pieces[(part - 1) % pieces];
    const Parameter &p = *piece.parameter;
    const float *from = arrays[(part - 1) / pieces] + p.offset;
    transposed.assign(piece.count, 0);
    if (piece.isTransposed)
      transpose(from, p.shape[0], p.shape[1], transposed.data());
    else
      std::copy_n(from, p.count(), transposed.data());
    raw.resize(piece.count * bytesOf(type));
    fromDoubles({transposed.begin(), transposed.end()}, type, raw.data());
    return {raw.data(), std::ssize(raw)};
  });
}

static const float *floatsIn(const HostBuffers &buffers) {
  if (buffers.type != f32)
    throw Error("expected weights of f32 for llm.c's files", Fault::internal);
  return reinterpret_cast<const float *>(buffers.values.data());
}

void writeLlmcModel(const std::string &path, const Gpt2Config &config, const ParameterList &list,
                    const HostBuffers &buffers) {
  verifyLlmc(config);
  if (config.type != f32 && config.type != bf16)
    throw Error(fmt::format("llm.c's files require --dtype fp32 or bf16, but got {}", dtypeName(config.type)));
  const int64_t rows = paddedVocab(config.vocab);
  Header header = {modelMagic, config.type == f32 ? f32Version : bf16Version};
  const std::array sizes = {config.context, config.vocab, config.layers, config.heads, config.width, rows};
  std::transform(sizes.begin(), sizes.end(), header.begin() + 2, [](int64_t s) { return static_cast<int32_t>(s); });
  write(path, header, config.type, fileLayout(list, config.layers, rows, config.context), {floatsIn(buffers)});
}

void writeLlmcState(const std::string &path, const Gpt2Config &config, const ParameterList &list,
                    const HostBuffers &buffers, int64_t steps) {
  verifyLlmc(config);
  const bool hasMasters = config.type != f32;
  Header header = {stateMagic, stateVersion, 1, 0, hasMasters ? 1 : 0};
  header[stepsAt] = static_cast<int32_t>(steps);
  header[randomAt] = header[randomAt + 2] = firstRandom; // the lower halves of two 64-bit numbers
  std::vector<const float *> arrays = {buffers.first.data(), buffers.second.data()};
  if (hasMasters)
    arrays.push_back(floatsIn(buffers));
  write(path, header, f32, fileLayout(list, config.layers, paddedVocab(config.vocab), config.context), arrays);
}

//===-- Debug states --------------------------------------------------------------------------------------------===//

static constexpr int32_t debugMagic = 20240327, debugVersion = 2;

/// The offset of the gradient in bytes.
static int64_t gradientAt(int64_t sequences, int64_t length, int64_t vocab) {
  return headerBytes + 4 * (sequences * length * (2 + vocab) + 1);
}

LlmcDebugState readLlmcDebugState(const std::string &path, const Gpt2Config &config) {
  const InputFile file(path);
  const Header header = readHeader(file, path, "a debug state");
  if (header[0] != debugMagic || header[1] != debugVersion)
    throw Error(fmt::format("expected a debug state of llm.c ({}, version {}) in '{}', but got {}, version {}",
                            debugMagic, debugVersion, path, header[0], header[1]));
  LlmcDebugState state = {header[2], header[3]};
  if (state.sequences < 1 || state.sequences > largestSize || state.length < 1 || state.length > config.context)
    throw Error(fmt::format("expected sequences of 1 to {} tokens in '{}', but got {} of {}", config.context, path,
                            state.sequences, state.length));
  const int64_t places = state.sequences * state.length;
  if (file.size() < gradientAt(state.sequences, state.length, config.vocab))
    throw Error(fmt::format("expected at least {} bytes in '{}', but it has {}",
                            gradientAt(state.sequences, state.length, config.vocab), path, file.size()));
  int64_t at = headerBytes;
  const auto read = [&](auto &to, int64_t count) {
    to.resize(count);
    file.read(at, to.data(), 4 * count);
    at += 4 * count;
  };
  read(state.tokens, places);
  read(state.targets, places);
  read(state.logits, places * config.vocab);
  std::vector<float> loss;
  read(loss, 1);
  state.loss = loss[0];
  for (const int32_t token : state.tokens)
    if (token < 0 || token >= config.vocab)
      throw Error(fmt::format("expected tokens below {} in '{}', but got {}", config.vocab, path, token));
  return state;
}

std::vector<float> readLlmcGradient(const std::string &path, const std::string &model, const ParameterList &list) {
  const InputFile file(path), weights(model);
  const Header header = readHeader(file, path, "a debug state"), sizes = readHeader(weights, model, "a model");
  const FileLayout layout = fileLayout(sizes, list);
  const int64_t begin = gradientAt(header[2], header[3], sizes[3]), bytes = begin + layout.count * bytesOf(f32);
  if (file.size() != bytes)
    throw Error(fmt::format("expected {} bytes in '{}', a debug state of the model in '{}', but it has {}", bytes, path,
                            model, file.size()));
  return readAll(file, begin, f32, layout, list);
}

} // namespace kiln
