// The layers in order, forward and backward.

#include "models/nn/decoder.h"
#include "kernels/cross_entropy.h"
#include "models/data/batches.h"

#include <cmath>
#include <fmt/format.h>
#include <functional>

namespace kiln {

std::vector<Block> makeBlocks(ParameterList &list, const DecoderNames &names, const DecoderOptions &o) {
  std::vector<Block> blocks;
  for (int64_t l = 0; l < o.layers; ++l) {
    BlockOptions block = o.block;
    block.attention.scale =
        o.scaleOf ? o.scaleOf(l) : 1 / std::sqrt(static_cast<double>(o.width / block.attention.heads));
    blocks.emplace_back(list, names.block(l), o.width, block, o.inits, o.dropout, o.context);
  }
  return blocks;
}

/// A tied token table's gradient includes the head's.
static EmbeddingOptions embeddingOf(const DecoderOptions &o) {
  EmbeddingOptions embedding = o.embedding;
  embedding.tied = o.head.tied;
  return embedding;
}

Decoder::Decoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &o)
    : sizes(o), embedding(list, names.tables, {o.vocab, o.context, o.width}, embeddingOf(o), o.dropout),
      blocks(makeBlocks(list, names, o)),
      last(o.lastNorm ? std::optional<LayerNorm>(std::in_place, list, names.last, o.width, o.block.norm)
                      : std::nullopt),
      projection(list, names.head, o.vocab, o.width, embedding.tokenTable(), o.head, o.headInit) {}

std::vector<Input> Decoder::inputs(const BatchShape &shape) const {
  const int64_t rows = shape.targets();
  std::vector<Input> all = {{"tokens", i32, {rows}}, {"targets", i32, {rows}}};
  for (const Embedding::Array &array : embedding.arrays(rows))
    all.push_back({array.name, i32, array.extents});
  if (sizes.givesRanges)
    for (const char *name : {"ranges", "column ranges"})
      all.push_back({name, i32, {shape.sequences, shape.target, 2}});
  return all;
}

/// Logits (rows, vocab), taken from the arena. Their row stride is a multiple of 64 elements, so that vectors are
/// aligned for any vocabulary.
static TensorRef takeLogits(Build &b, int64_t rows, int64_t vocab) {
  return b.take("logits", {rows, cdiv(vocab, 64) * 64});
}

/// Calls `visit(begin, count)` for each chunk of rows. For an empty chunk it takes the buffers of one row, like plans
/// of more rows, and launches nothing.
static void forChunks(Build &b, int64_t rows, const std::function<void(int64_t, int64_t)> &visit) {
  for (const auto &[begin, count] : lossChunksOf(b.target, rows, b.lossChunks)) {
    const size_t before = b.plan.launches.size();
    visit(std::min(begin, rows - 1), std::max<int64_t>(count, 1));
    if (count == 0)
      b.plan.launches.resize(before);
  }
}

/// Sets the visible ranges of the build's positions.
static void look(Build &b, const DecoderOptions &o, const Embedding::Inputs &inputs) {
  if (o.givesRanges)
    b.ranges = inputs("ranges"), b.queryRanges = inputs("column ranges");
}

/// The label of a block's launches.
static std::string blockLabel(size_t number) { return fmt::format("block {}", number); }

static Embedding::Inputs inputsIn(const MicroBatch &micro) {
  return [&](const std::string &name) -> const TensorRef & { return micro[name]; };
}

void Decoder::gradient(Build &b, const MicroBatch &micro) const {
  const auto [batch, time, source] = micro.shape;
  const int64_t rows = batch * time;
  b.time = time;
  look(b, sizes, inputsIn(micro));
  // Forward. A block's saved activations must not move, because their recomputation refers to them.
  TensorRef x = b.take("embedding", {rows, sizes.width});
  embedding.forward(b, inputsIn(micro), time, x);
  std::vector<Block::Saved> saved(blocks.size());
  for (size_t l = 0; l < blocks.size(); ++l) {
    const LaunchScope scope(b, blockLabel(l));
    b.block = static_cast<int64_t>(l);
    x = blocks[l].forward(b, x, batch, time, saved[l]);
  }
  const LayerNorm::Saved statistics = last ? last->take(b, rows) : LayerNorm::Saved();
  const TensorRef normed = last ? b.take("last norm", {rows, sizes.width}) : x;
  if (last) {
    const LaunchScope scope(b, "last");
    last->forward(b, x, statistics, normed);
  }
  // The losses, a chunk of rows at a time. The gradient replaces the logits, and the head propagates it.
  TensorRef dx = b.take("d block output", {rows, sizes.width});
  forChunks(b, rows, [&](int64_t begin, int64_t count) {
    const TensorRef padded = takeLogits(b, count, sizes.vocab), logits = padded.slice(1, 0, sizes.vocab),
                    in = normed.slice(0, begin, count);
    projection.forward(b, in, logits);
    b.plan += labelled(planCrossEntropy(b.target, logits, micro["targets"].slice(0, begin, count),
                                        micro.losses.slice(0, begin, count), sizes.vocab, 1, ignoredTarget,
                                        b.lossWeight, {.smoothing = static_cast<float>(sizes.smoothing)}),
                       "loss");
    projection.backward(b, logits, in, dx.slice(0, begin, count), /*add=*/begin > 0);
    b.release(padded);
  });
  b.deferred.begin(b.target);
  if (last) {
    const LaunchScope scope(b, "last backward");
    last->backward(b, dx, x, statistics, dx);
    last->release(b, statistics);
    b.release(normed);
  }
  b.release(x);
  // Backward.
  for (size_t l = blocks.size(); l-- > 0;) {
    {
      const LaunchScope scope(b, blockLabel(l));
      dx = blocks[l].backward(b, dx, saved[l]);
    }
    if (b.deferred.isFull() || b.recompute != Recompute()) // deferring takes memory, which recomputation saves
      b.launchWeights();
  }
  b.launchDeferred();
  embedding.backward(b, inputsIn(micro), dx, time);
  b.release(dx);
}

TensorRef Decoder::hidden(Build &b, const Embedding::Inputs &inputs, int64_t rows, int64_t time) const {
  look(b, sizes, inputs);
  const TensorRef x = b.take("hidden", {rows, sizes.width});
  embedding.forward(b, inputs, time, x);
  for (size_t l = 0; l < blocks.size(); ++l) {
    const LaunchScope scope(b, blockLabel(l));
    blocks[l].infer(b, x, rows / time, time);
  }
  return x;
}

TensorRef Decoder::extend(Build &b, const TensorRef &tokens, const TensorRef &positions,
                          const std::vector<KvCache> &caches, const std::vector<CrossKvCache> &crossCaches) const {
  const TensorRef x = b.take("hidden", {tokens.count(), sizes.width});
  embedding.forwardAt(b, tokens, positions, x);
  for (size_t l = 0; l < blocks.size(); ++l) {
    const LaunchScope scope(b, blockLabel(l));
    blocks[l].extend(b, x, caches[l], l < crossCaches.size() ? &crossCaches[l] : nullptr);
  }
  return x;
}

void Decoder::remember(Build &b, const std::vector<CrossKvCache> &crossCaches) const {
  for (size_t l = 0; l < blocks.size(); ++l) {
    const LaunchScope scope(b, blockLabel(l));
    blocks[l].remember(b, crossCaches[l].kv);
  }
}

void Decoder::logits(Build &b, const TensorRef &rows, const TensorRef &logits) const {
  if (!last)
    return projection.forward(b, rows, logits);
  const TensorRef normed = b.take("last norm", rows.extents);
  const LayerNorm::Saved statistics = last->take(b, rows.extents[0]);
  {
    const LaunchScope scope(b, "last");
    last->forward(b, rows, statistics, normed);
  }
  projection.forward(b, normed, logits);
  last->release(b, statistics);
  b.release(normed);
}

void Decoder::losses(Build &b, const MicroBatch &micro) const {
  const TensorRef x = hidden(b, inputsIn(micro), micro.shape.targets(), micro.shape.target);
  forChunks(b, x.extents[0], [&](int64_t begin, int64_t count) {
    const TensorRef padded = takeLogits(b, count, sizes.vocab), out = padded.slice(1, 0, sizes.vocab);
    logits(b, x.slice(0, begin, count), out);
    b.plan += labelled(planCrossEntropyLoss(
                           b.target, out, micro["targets"].slice(0, begin, count), micro.losses.slice(0, begin, count),
                           sizes.vocab, ignoredTarget,
                           {.correct = micro.hits ? std::optional(micro.hits->slice(0, begin, count)) : std::nullopt}),
                       "loss");
    b.release(padded);
  });
  b.release(x);
}

} // namespace kiln
