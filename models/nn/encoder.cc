// The encoder's launches.

#include "models/nn/encoder.h"

#include <fmt/format.h>
#include <utility>

namespace kiln {

/// Prefix of the source's array names.
static const std::string front = "source ";

/// An encoder with its own table writes its whole gradient.
static EmbeddingOptions embeddingOf(const DecoderOptions &o) {
  EmbeddingOptions embedding = o.embedding;
  embedding.tied = embedding.table >= 0;
  return embedding;
}

Encoder::Encoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &o)
    : sizes(o), embedding(list, names.tables, {o.vocab, o.context, o.width}, embeddingOf(o), o.dropout),
      blocks(makeBlocks(list, names, o)),
      last(o.lastNorm ? std::optional<LayerNorm>(std::in_place, list, names.last, o.width, o.block.norm)
                      : std::nullopt) {}

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
static std::vector<int32_t> columnsOf(const std::vector<int32_t> &ranges, int64_t source, int64_t time) {
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
  batch["source columns"] = columnsOf(ranges, shape.source, shape.source);
  batch["memory columns"] = columnsOf(ranges, shape.source, shape.target);
}

static Embedding::Inputs inputsIn(const MicroBatch &micro) {
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

static std::string blockLabel(size_t number) { return fmt::format("block {}", number); }

EncoderMemory Encoder::forward(Build &b, const MicroBatch &micro, Saved &saved) const {
  const LaunchScope scope(b, "encoder");
  const auto [batch, time, source] = micro.shape;
  const Looking looking(b, micro["source ranges"], source, micro["source columns"]);
  TensorRef x = b.take("source embedding", {batch * source, sizes.width});
  embedding.forward(b, inputsIn(micro), source, x);
  saved.blocks = std::vector<Block::Saved>(blocks.size());
  for (size_t l = 0; l < blocks.size(); ++l) {
    const LaunchScope number(b, blockLabel(l));
    b.block = static_cast<int64_t>(l);
    x = blocks[l].forward(b, x, batch, source, saved.blocks[l]);
  }
  saved.last = x;
  if (last) {
    const LaunchScope norm(b, "last");
    saved.norm = last->take(b, x.extents[0]);
    const TensorRef states = b.take("memory", x.extents);
    last->forward(b, x, saved.norm, states);
    x = states;
  }
  return {x, micro["source ranges"], micro["memory columns"]};
}

EncoderMemory Encoder::infer(Build &b, const Embedding::Inputs &inputs, int64_t batch, int64_t source) const {
  const LaunchScope scope(b, "encoder");
  const TensorRef &ranges = inputs("source ranges");
  const Looking looking(b, ranges, source);
  const TensorRef x = b.take("memory", {batch * source, sizes.width});
  embedding.forward(b, [&](const std::string &name) -> const TensorRef & { return inputs(front + name); }, source, x);
  for (size_t l = 0; l < blocks.size(); ++l) {
    const LaunchScope number(b, blockLabel(l));
    blocks[l].infer(b, x, batch, source);
  }
  if (last) {
    const LaunchScope norm(b, "last");
    const LayerNorm::Saved statistics = last->take(b, x.extents[0]);
    last->forward(b, x, statistics, x);
    last->release(b, statistics);
  }
  return {x, ranges};
}

void Encoder::backward(Build &b, const MicroBatch &micro, const EncoderMemory &memory, Saved &saved) const {
  const LaunchScope scope(b, "encoder");
  const Looking looking(b, micro["source ranges"], micro.shape.source, micro["source columns"]);
  TensorRef dx = *memory.gradient;
  b.deferred.begin(b.target);
  if (last) {
    const LaunchScope norm(b, "last backward");
    last->backward(b, dx, saved.last, saved.norm, dx);
    last->release(b, saved.norm);
    b.release(memory.states);
  }
  b.release(saved.last);
  for (size_t l = blocks.size(); l-- > 0;) {
    {
      const LaunchScope number(b, blockLabel(l));
      dx = blocks[l].backward(b, dx, saved.blocks[l]);
    }
    if (b.deferred.isFull() || b.recompute != Recompute()) // deferring takes memory, which recomputation saves
      b.launchWeights();
  }
  b.launchDeferred();
  embedding.backward(b, inputsIn(micro), dx, micro.shape.source);
  b.release(dx);
}

} // namespace kiln
