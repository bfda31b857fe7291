// The layers in order, forward and back.

#include "models/gpt2/network.h"
#include "kernels/cross_entropy.h"
#include "models/data/batches.h"

#include <cmath>

namespace kiln {

/// GPT-2's initialisation: 0.02, and 0.02 / √(2L) for what adds to the residual stream.
static constexpr double deviation = 0.02;

static std::vector<Block> makeBlocks(ParameterList &list, const Gpt2Config &c) {
  std::vector<Block> blocks;
  const double residual = deviation / std::sqrt(2.0 * static_cast<double>(c.layers));
  for (int64_t l = 0; l < c.layers; ++l)
    blocks.emplace_back(list, "h." + std::to_string(l), BlockSettings{c.heads, c.width, c.epsilon, c.scaleOf(l)},
                        deviation, residual);
  return blocks;
}

Network::Network(const Gpt2Config &config)
    : sizes(config), embedding(list, config.vocab, config.context, config.width, deviation),
      blocks(makeBlocks(list, config)), last(list, "ln_f", config.width, config.epsilon) {
  verify(config);
  list.place();
}

void Network::gradient(Build &b, const BatchRefs &refs, int64_t batch, float scale) const {
  const int64_t rows = batch * sizes.context;
  // Forward.
  TensorRef x = b.take("embedding", {rows, sizes.width});
  embedding.forward(b, refs.tokens, sizes.context, x);
  std::vector<Block::Saved> saved(blocks.size());
  for (size_t l = 0; l < blocks.size(); ++l)
    x = blocks[l].forward(b, x, batch, sizes.context, saved[l]);
  const LayerNorm::Saved statistics = last.take(b, rows);
  const TensorRef normed = b.take("last norm", {rows, sizes.width});
  last.forward(b, x, statistics, normed);
  const TensorRef logits = b.take("logits", {rows, sizes.vocab});
  embedding.head(b, normed, logits);
  // The loss; the logits become their gradient.
  b.plan += planCrossEntropy(b.target, logits, refs.targets, refs.losses, sizes.vocab, scale, ignoredTarget);
  // Backward.
  const TensorRef dx = b.take("d block output", {rows, sizes.width});
  embedding.headBackward(b, logits, normed, dx);
  b.release(logits);
  last.backward(b, dx, x, statistics, dx, /*add=*/false);
  last.release(b, statistics);
  b.release(normed);
  b.release(x);
  for (size_t l = blocks.size(); l-- > 0;)
    blocks[l].backward(b, dx, saved[l]);
  embedding.backward(b, refs.index, dx, sizes.context);
  b.release(dx);
}

TensorRef Network::hidden(Build &b, const TensorRef &tokens, int64_t batch) const {
  const TensorRef x = b.take("hidden", {batch * sizes.context, sizes.width});
  embedding.forward(b, tokens, sizes.context, x);
  for (const Block &block : blocks)
    block.infer(b, x, batch, sizes.context);
  return x;
}

void Network::logits(Build &b, const TensorRef &rows, const TensorRef &logits) const {
  const TensorRef normed = b.take("last norm", rows.extents);
  const LayerNorm::Saved statistics = last.take(b, rows.extents[0]);
  last.forward(b, rows, statistics, normed);
  embedding.head(b, normed, logits);
  last.release(b, statistics);
  b.release(normed);
}

void Network::losses(Build &b, const BatchRefs &refs, int64_t batch) const {
  const TensorRef x = hidden(b, refs.tokens, batch);
  const TensorRef out = b.take("logits", {batch * sizes.context, sizes.vocab});
  logits(b, x, out);
  b.plan += planCrossEntropyLoss(b.target, out, refs.targets, refs.losses, sizes.vocab, ignoredTarget);
  b.release(out);
  b.release(x);
}

} // namespace kiln
