// The encoder's launches, before the decoder's in the forward pass and after them in the backward pass.

#include "models/nn/encoder_decoder.h"

#include <utility>

namespace kiln {

//===-- The encoder ---------------------------------------------------------------------------------------------===//

/// Prefix of the source's array names.
static const std::string front = "source ";

/// An encoder with its own table writes its whole gradient.
static EmbeddingOptions sourceEmbeddingOptions(const DecoderOptions &o) {
  EmbeddingOptions embedding = o.embedding;
  embedding.tied = embedding.table >= 0;
  return embedding;
}

Encoder::Encoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &o)
    : sizes(o), embedding(list, names.tables, {o.vocab, o.context, o.width}, sourceEmbeddingOptions(o), o.dropout),
      stack(list, names, o) {}

std::vector<Input> Encoder::inputs(const BatchShape &shape) const {
  const auto &[sequences, target, source] = shape;
  std::vector<Input> all = {{"source tokens", i32, {shape.sources()}}, {"source ranges", i32, {sequences, 2}}};
  for (const Embedding::Array &array : embedding.arrays(shape.sources()))
    all.push_back({front + array.name, i32, array.extents});
  for (const char *name : {"source columns", "memory columns"})
    all.push_back({name, i32, {sequences, source, 2}});
  return all;
}

/// For each source position, the range of decoder rows that see it: all `time` rows, or none for padding.
static std::vector<int32_t> lastColumns(const std::vector<int32_t> &ranges, int64_t source, int64_t time) {
  std::vector<int32_t> columns;
  const auto rows = static_cast<int32_t>(time);
  for (size_t b = 0; b < ranges.size(); b += 2)
    for (int64_t j = 0; j < source; ++j)
      columns.insert(columns.end(), {j < ranges[b + 1] ? 0 : rows, rows});
  return columns;
}

void Encoder::derive(HostBatch &batch, const BatchShape &shape) const {
  HostBatch own;
  own["tokens"] = batch.at("source tokens");
  embedding.derive(own);
  for (const auto &[name, array] : own)
    batch[front + name] = array;
  const std::vector<int32_t> ranges = batch.at("source ranges").numbers<int32_t>();
  batch["source columns"] = lastColumns(ranges, shape.source, shape.source);
  batch["memory columns"] = lastColumns(ranges, shape.source, shape.target);
}

static Embedding::Inputs sourceInputsIn(const MicroBatch &micro) {
  return [&](const std::string &name) -> const TensorRef & { return micro[front + name]; };
}

namespace {
/// During its lifetime, the build's positions are the source's, and each sees all source positions of its sequence.
class Looking {
public:
  Looking(Build &build, const TensorRef &ranges, int64_t source, std::optional<TensorRef> columns = {})
      : build(build), time(std::exchange(build.time, source)) {
    build.ranges = repeatedRanges(ranges, source);
    build.queryRanges = std::move(columns);
  }
  ~Looking() {
    build.time = time;
    build.ranges.reset();
    build.queryRanges.reset();
  }
  Looking(const Looking &) = delete;

private:
  Build &build;
  const int64_t time;
};
} // namespace

EncoderMemory Encoder::forward(Build &b, const MicroBatch &micro, Stack::Saved &saved) const {
  const LaunchScope scope(b, "encoder");
  const auto [batch, time, source] = micro.shape;
  const Looking looking(b, micro["source ranges"], source, micro["source columns"]);
  const TensorRef x = b.take("source embedding", {batch * source, sizes.width});
  embedding.forward(b, sourceInputsIn(micro), source, x);
  return {stack.forward(b, x, batch, source, "memory", saved), micro["source ranges"], micro["memory columns"]};
}

EncoderMemory Encoder::infer(Build &b, const Embedding::Inputs &inputs, int64_t batch, int64_t source) const {
  const LaunchScope scope(b, "encoder");
  const TensorRef &ranges = inputs("source ranges");
  const Looking looking(b, ranges, source);
  const TensorRef x = b.take("memory", {batch * source, sizes.width});
  embedding.forward(b, [&](const std::string &name) -> const TensorRef & { return inputs(front + name); }, source, x);
  stack.infer(b, x, batch, source);
  if (stack.last)
    stack.normalise(b, x, x);
  return {x, ranges};
}

void Encoder::backward(Build &b, const MicroBatch &micro, const EncoderMemory &memory, Stack::Saved &saved) const {
  const LaunchScope scope(b, "encoder");
  const Looking looking(b, micro["source ranges"], micro.shape.source, micro["source columns"]);
  const TensorRef dx = stack.backward(b, *memory.gradient, saved);
  embedding.backward(b, sourceInputsIn(micro), dx, micro.shape.source);
  b.release(dx);
}

//===-- The model -----------------------------------------------------------------------------------------------===//

/// The encoder's options, with the shared token table.
static DecoderOptions sharing(const EncoderDecoderOptions &options, int table) {
  DecoderOptions encoder = options.encoder;
  if (options.sharesTable)
    encoder.embedding.table = table;
  return encoder;
}

EncoderDecoderNetwork::EncoderDecoderNetwork(const DecoderNames &encoderNames, const DecoderNames &decoderNames,
                                             const EncoderDecoderOptions &options, Type type, DecayOn decayOn)
    : DecoderNetwork(decoderNames, options.decoder, type), source(sharing(options, layers().tokenTable())),
      encoder(list, encoderNames, source) {
  list.place(decayOn);
}

std::vector<Input> EncoderDecoderNetwork::inputs(const BatchShape &shape) const {
  std::vector<Input> all = DecoderNetwork::inputs(shape);
  for (const Input &input : encoder.inputs(shape))
    all.push_back(input);
  return all;
}

void EncoderDecoderNetwork::derive(HostBatch &batch, const BatchShape &shape) const {
  DecoderNetwork::derive(batch, shape);
  encoder.derive(batch, shape);
}

void EncoderDecoderNetwork::gradient(Build &b, const MicroBatch &batch) const {
  Stack::Saved saved;
  b.memory = encoder.forward(b, batch, saved);
  DecoderNetwork::gradient(b, batch);
  encoder.backward(b, batch, *b.memory, saved);
  b.memory.reset();
}

void EncoderDecoderNetwork::losses(Build &b, const MicroBatch &batch) const {
  b.memory = encoder.infer(
      b, [&](const std::string &name) -> const TensorRef & { return batch[name]; }, batch.shape.sequences,
      batch.shape.source);
  DecoderNetwork::losses(b, batch);
  b.release(b.memory->states);
  b.memory.reset();
}

void EncoderDecoderNetwork::read(Build &b, const Embedding::Inputs &inputs, int64_t sources, int64_t length,
                                 const std::vector<CrossKvCache> &caches) const {
  b.memory = encoder.infer(b, inputs, sources, length);
  layers().remember(b, caches);
  b.release(b.memory->states);
  b.memory.reset();
}

} // namespace kiln
