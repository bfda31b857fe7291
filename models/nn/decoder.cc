// The layers in order, forward and back.

#include "models/nn/decoder.h"
#include "kernels/cross_entropy.h"
#include "models/data/batches.h"

#include <cmath>
#include <fmt/format.h>

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

/// A token table holds the gradient of the head that shares it.
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

/// Logits (rows, vocab), taken from the arena: columns of a matrix whose rows begin at multiples of 64 elements, so
/// that vectors of them are aligned whatever the vocabulary.
static TensorRef takeLogits(Build &b, int64_t rows, int64_t vocab) {
  return b.take("logits", {rows, ceildiv(vocab, 64) * 64});
}

/// The build knows from now on what the places of its sequences see.
static void look(Build &b, const DecoderOptions &o, const Embedding::Inputs &inputs) {
  if (o.givesRanges)
    b.ranges = inputs("ranges"), b.columnRanges = inputs("column ranges");
}

/// Of a block's launches.
static std::string blockLabel(size_t number) { return fmt::format("block {}", number); }

static Embedding::Inputs inputsIn(const MicroBatch &micro) {
  return [&](const std::string &name) -> const TensorRef & { return micro[name]; };
}

void Decoder::gradient(Build &b, const MicroBatch &micro) const {
  const auto [batch, time, source] = micro.shape;
  const int64_t rows = batch * time;
  b.time = time;
  look(b, sizes, inputsIn(micro));
  // Forward.
  TensorRef x = b.take("embedding", {rows, sizes.width});
  embedding.forward(b, inputsIn(micro), time, x);
  std::vector<Block::Saved> saved(blocks.size());
  for (size_t l = 0; l < blocks.size(); ++l) {
    const Scope scope(b, blockLabel(l));
    x = blocks[l].forward(b, x, batch, time, saved[l]);
  }
  const LayerNorm::Saved statistics = last ? last->take(b, rows) : LayerNorm::Saved();
  const TensorRef normed = last ? b.take("last norm", {rows, sizes.width}) : x;
  const TensorRef padded = takeLogits(b, rows, sizes.vocab), logits = padded.slice(1, 0, sizes.vocab);
  head(b, x, statistics, normed, logits);
  // The loss; the logits become their gradient.
  b.plan += labelled(planCrossEntropy(b.target, logits, micro["targets"], micro.losses, sizes.vocab, 1, ignoredTarget,
                                      b.lossWeight, {.smoothing = static_cast<float>(sizes.smoothing)}),
                     "loss");
  // Backward.
  const TensorRef dx = b.take("d block output", {rows, sizes.width});
  projection.backward(b, logits, normed, dx);
  b.release(padded);
  if (last) {
    const Scope scope(b, "last backward");
    last->backward(b, dx, x, statistics, dx, /*add=*/false);
    last->release(b, statistics);
    b.release(normed);
  }
  b.release(x);
  for (size_t l = blocks.size(); l-- > 0;) {
    const Scope scope(b, blockLabel(l));
    blocks[l].backward(b, dx, saved[l]);
  }
  embedding.backward(b, inputsIn(micro), dx, time);
  b.release(dx);
}

void Decoder::head(Build &b, const TensorRef &x, const LayerNorm::Saved &statistics, const TensorRef &normed,
                   const TensorRef &logits) const {
  if (last) {
    const Scope scope(b, "last");
    last->forward(b, x, statistics, normed);
  }
  projection.forward(b, normed, logits);
}

TensorRef Decoder::hidden(Build &b, const Embedding::Inputs &inputs, int64_t rows, int64_t time) const {
  look(b, sizes, inputs);
  const TensorRef x = b.take("hidden", {rows, sizes.width});
  embedding.forward(b, inputs, time, x);
  for (size_t l = 0; l < blocks.size(); ++l) {
    const Scope scope(b, blockLabel(l));
    blocks[l].infer(b, x, rows / time, time);
  }
  return x;
}

TensorRef Decoder::extend(Build &b, const TensorRef &tokens, const TensorRef &positions, const std::vector<Past> &pasts,
                          const std::vector<CrossPast> &crossPasts) const {
  const TensorRef x = b.take("hidden", {tokens.count(), sizes.width});
  embedding.forwardAt(b, tokens, positions, x);
  for (size_t l = 0; l < blocks.size(); ++l) {
    const Scope scope(b, blockLabel(l));
    blocks[l].extend(b, x, pasts[l], l < crossPasts.size() ? &crossPasts[l] : nullptr);
  }
  return x;
}

void Decoder::remember(Build &b, const std::vector<CrossPast> &crossPasts) const {
  for (size_t l = 0; l < blocks.size(); ++l) {
    const Scope scope(b, blockLabel(l));
    blocks[l].remember(b, crossPasts[l].kv);
  }
}

void Decoder::logits(Build &b, const TensorRef &rows, const TensorRef &logits) const {
  if (!last)
    return head(b, rows, {}, rows, logits);
  const TensorRef normed = b.take("last norm", rows.extents);
  const LayerNorm::Saved statistics = last->take(b, rows.extents[0]);
  head(b, rows, statistics, normed, logits);
  last->release(b, statistics);
  b.release(normed);
}

void Decoder::losses(Build &b, const MicroBatch &micro) const {
  const TensorRef x = hidden(b, inputsIn(micro), micro.shape.targets(), micro.shape.target);
  const TensorRef padded = takeLogits(b, x.extents[0], sizes.vocab), out = padded.slice(1, 0, sizes.vocab);
  logits(b, x, out);
  b.plan += labelled(planCrossEntropyLoss(b.target, out, micro["targets"], micro.losses, sizes.vocab, ignoredTarget,
                                          {.hits = micro.hits}),
                     "loss");
  b.release(padded);
  b.release(x);
}

} // namespace kiln
