// The layers in order, forward and backward.

#include "models/nn/decoder.h"
#include "kernels/column_sums.h"
#include "kernels/cross_entropy.h"
#include "kernels/matmul.h"
#include "models/data/batches.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>

namespace kiln {

//===-- The head ------------------------------------------------------------------------------------------------===//

Head::Head(ParameterList &list, const LayerNames &names, int64_t vocab, int64_t width, int tokenTable,
           const HeadOptions &options, const LinearInit &init)
    : weight(options.tied ? tokenTable : list.add(names.weight, {vocab, width}, init.weight, Role::matrix)) {
  if (options.bias)
    bias = list.add(names.bias, {vocab}, init.bias, Role::bias);
}

void Head::forward(Build &b, const TensorRef &x, const TensorRef &logits) const {
  const LaunchScope scope(b, "head");
  b.plan += planLinear(b.target, Layout::nt, x, b.value(weight), logits,
                       {.bias = bias ? std::optional(b.value(*bias)) : std::nullopt});
}

void Head::backward(Build &b, const TensorRef &dlogits, const TensorRef &x, const TensorRef &dx, bool add) const {
  const LaunchScope scope(b, "head backward");
  b.plan += planMatmul(b.target, Layout::nn, dlogits, b.value(weight), dx);
  b.plan += planWeightGradient(b.target, dlogits, x, b.gradient(weight), {}, b.accumulate || add);
  if (bias)
    b.plan += planColumnSums(b.target, dlogits, b.gradient(*bias), b.accumulate || add);
}

//===-- The layers ----------------------------------------------------------------------------------------------===//

static std::vector<Block> makeBlocks(ParameterList &list, const DecoderNames &names, const DecoderOptions &o) {
  std::vector<Block> blocks;
  for (int64_t l = 0; l < o.layers; ++l) {
    BlockOptions block = o.block;
    block.attention.scale =
        o.attentionScale ? o.attentionScale(l) : 1 / std::sqrt(static_cast<double>(o.width / block.attention.heads));
    blocks.emplace_back(list, names.block(l), o.width, block, o.inits, o.dropout, o.context);
  }
  return blocks;
}

Stack::Stack(ParameterList &list, const DecoderNames &names, const DecoderOptions &o)
    : blocks(makeBlocks(list, names, o)),
      last(o.lastNorm ? std::optional<LayerNorm>(std::in_place, list, names.last, o.width, o.block.norm)
                      : std::nullopt) {}

/// The label of a block's launches.
static std::string blockLabel(size_t number) { return fmt::format("block {}", number); }

TensorRef Stack::forward(Build &b, TensorRef x, int64_t batch, int64_t time, const char *name, Saved &s) const {
  s.blocks = std::vector<Block::Saved>(blocks.size());
  for (size_t l = 0; l < blocks.size(); ++l) {
    const LaunchScope scope(b, blockLabel(l));
    b.block = static_cast<int64_t>(l);
    x = blocks[l].forward(b, x, batch, time, s.blocks[l]);
  }
  s.x = s.normed = x;
  if (last) {
    const LaunchScope scope(b, "last");
    s.norm = last->take(b, x.extents[0]);
    s.normed = b.take(name, x.extents);
    last->forward(b, x, s.norm, s.normed);
  }
  return s.normed;
}

TensorRef Stack::backward(Build &b, TensorRef dx, Saved &s) const {
  b.deferred.begin(b.target);
  if (last) {
    const LaunchScope scope(b, "last backward");
    last->backward(b, dx, s.x, s.norm, dx);
    last->release(b, s.norm);
    b.release(s.normed);
  }
  b.release(s.x);
  for (size_t l = blocks.size(); l-- > 0;) {
    {
      const LaunchScope scope(b, blockLabel(l));
      dx = blocks[l].backward(b, dx, s.blocks[l]);
    }
    if (b.deferred.isFull() || b.recompute != Recompute()) // deferring takes memory, which recomputation saves
      b.launchWeights();
  }
  b.launchDeferred();
  return dx;
}

void Stack::infer(Build &b, const TensorRef &x, int64_t batch, int64_t time) const {
  for (size_t l = 0; l < blocks.size(); ++l) {
    const LaunchScope scope(b, blockLabel(l));
    blocks[l].infer(b, x, batch, time);
  }
}

void Stack::normalise(Build &b, const TensorRef &x, const TensorRef &y) const {
  const LaunchScope scope(b, "last");
  const LayerNorm::Saved statistics = last->take(b, x.extents[0]);
  last->forward(b, x, statistics, y);
  last->release(b, statistics);
}

/// A tied token table's gradient includes the head's.
static EmbeddingOptions embeddingOptions(const DecoderOptions &o) {
  EmbeddingOptions embedding = o.embedding;
  embedding.tied = o.head.tied;
  return embedding;
}

Decoder::Decoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &o)
    : sizes(o), embedding(list, names.tables, {o.vocab, o.context, o.width}, embeddingOptions(o), o.dropout),
      stack(list, names, o),
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
  for (const auto &[begin, count] : cutLossRows(b.target, rows, b.lossChunks)) {
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

static Embedding::Inputs inputsIn(const MicroBatch &micro) {
  return [&](const std::string &name) -> const TensorRef & { return micro[name]; };
}

void Decoder::gradient(Build &b, const MicroBatch &micro) const {
  const auto [batch, time, source] = micro.shape;
  const int64_t rows = batch * time;
  b.time = time;
  look(b, sizes, inputsIn(micro));
  const TensorRef x = b.take("embedding", {rows, sizes.width});
  embedding.forward(b, inputsIn(micro), time, x);
  Stack::Saved saved;
  const TensorRef normed = stack.forward(b, x, batch, time, "last norm", saved);
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
  dx = stack.backward(b, dx, saved);
  embedding.backward(b, inputsIn(micro), dx, time);
  b.release(dx);
}

TensorRef Decoder::hidden(Build &b, const Embedding::Inputs &inputs, int64_t rows, int64_t time) const {
  look(b, sizes, inputs);
  const TensorRef x = b.take("hidden", {rows, sizes.width});
  embedding.forward(b, inputs, time, x);
  stack.infer(b, x, rows / time, time);
  return x;
}

TensorRef Decoder::extend(Build &b, const TensorRef &tokens, const TensorRef &positions,
                          const std::vector<KvCache> &caches, const std::vector<CrossKvCache> &crossCaches) const {
  const TensorRef x = b.take("hidden", {tokens.count(), sizes.width});
  embedding.forwardAt(b, tokens, positions, x);
  for (size_t l = 0; l < stack.blocks.size(); ++l) {
    const LaunchScope scope(b, blockLabel(l));
    stack.blocks[l].extend(b, x, caches[l], l < crossCaches.size() ? &crossCaches[l] : nullptr);
  }
  return x;
}

void Decoder::remember(Build &b, const std::vector<CrossKvCache> &crossCaches) const {
  for (size_t l = 0; l < stack.blocks.size(); ++l) {
    const LaunchScope scope(b, blockLabel(l));
    stack.blocks[l].remember(b, crossCaches[l].kv);
  }
}

void Decoder::logits(Build &b, const TensorRef &rows, const TensorRef &logits) const {
  if (!stack.last)
    return projection.forward(b, rows, logits);
  const TensorRef normed = b.take("last norm", rows.extents);
  stack.normalise(b, rows, normed);
  projection.forward(b, normed, logits);
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

//===-- The model -----------------------------------------------------------------------------------------------===//

DecoderNetwork::DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type)
    : element(type), decoder(list, names, options) {}

DecoderNetwork::DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type, DecayOn decayOn)
    : DecoderNetwork(names, options, type) {
  list.place(decayOn);
}

double DecoderNetwork::attentionShare(const HostBatch &batch, const BatchShape &shape) const {
  const auto ranges = batch.find("ranges");
  if (ranges == batch.end())
    return 1;
  double squares = 0;
  const std::vector<int32_t> seen = ranges->second.numbers<int32_t>();
  for (size_t i = 0; i < seen.size(); i += 2) // n² is the sum of the first n odd numbers
    squares += std::max(2 * (seen[i + 1] - seen[i]) - 1, 0);
  return squares / (static_cast<double>(shape.targets()) * static_cast<double>(shape.target));
}

Tensor uploaded(const std::shared_ptr<Device> &device, const DecoderNetwork &network,
                const std::vector<char> &weights) {
  Tensor value(device, network.type(), {network.parameters().count()});
  value.upload(weights.data(), std::ssize(weights));
  return value;
}

} // namespace kiln
