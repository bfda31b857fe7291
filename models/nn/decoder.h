// A decoder-only language model: its output head, its layers, and the model that has its parameters.

#pragma once

#include "models/nn/block.h"
#include "models/nn/build.h"
#include "models/nn/embedding.h"
#include "models/train/model.h"

namespace kiln {

//===-- The head ------------------------------------------------------------------------------------------------===//
// The output head: a GEMM with the token table (tied) or with a weight of its own, and a bias.

struct HeadOptions {
  bool tied = true;
  bool bias = false;
};

class Head {
public:
  /// The weight (vocab, width), unless `tokenTable` is given (tied), and the bias (vocab), if any.
  Head(ParameterList &list, const LayerNames &names, int64_t vocab, int64_t width, int tokenTable,
       const HeadOptions &options, const LinearInit &init);

  /// logits (N, vocab) = x · weightᵀ + bias.
  void forward(Build &build, const TensorRef &x, const TensorRef &logits) const;
  /// dx = dlogits · weight. The weight's gradient (+)= dlogitsᵀ · x, the bias's (+)= Σ dlogits; both += with `add`.
  void backward(Build &build, const TensorRef &dlogits, const TensorRef &x, const TensorRef &dx,
                bool add = false) const;

private:
  int weight;
  std::optional<int> bias;
};

//===-- The layers ----------------------------------------------------------------------------------------------===//
// A decoder-only language model as layers: embeddings, causal blocks, a final norm or none, and a head. Options express
// the differences between GPT-2 and its relatives. All have equal launches for a training micro-batch, an evaluation
// and a prediction.

/// Names of all parameters.
struct DecoderNames {
  EmbeddingNames tables;
  std::function<BlockNames(int64_t)> block; // of each block, counted from 0
  LayerNames last, head;
};

struct DecoderOptions {
  int64_t layers = 0, width = 0, context = 0, vocab = 0;
  BlockOptions block = {};
  std::function<double(int64_t)> attentionScale =
      {}; // scale of attention scores in each block; default 1/√(width/heads)
  EmbeddingOptions embedding = {};
  bool lastNorm = true; // final norm, with the options of block.norm
  /// The batch gives visible ranges (`ranges`, `column ranges`); otherwise attention is causal.
  bool givesRanges = false;
  double smoothing = 0; // label smoothing in the training loss (kernels/cross_entropy.h)
  HeadOptions head = {};
  LinearInit headInit = {{Init::Kind::normal, 0.02}}; // of an untied head
  Inits inits = {};
  DropoutOptions dropout = {};
};

/// The options that every model's config has.
template <class Config> DecoderOptions decoderOptions(const Config &c, int64_t layers, int64_t vocab) {
  DecoderOptions o = {.layers = layers, .width = c.width, .context = c.context, .vocab = vocab};
  o.block.attention.heads = c.heads;
  o.block.attention.form = c.attention;
  o.dropout = c.dropout;
  o.smoothing = c.smoothing;
  return o;
}

/// The blocks of a decoder or an encoder, and a final norm or none.
struct Stack {
  Stack(ParameterList &list, const DecoderNames &names, const DecoderOptions &options);

  /// Must not move between the two passes, because the recomputation of activations refers to it.
  struct Saved {
    std::vector<Block::Saved> blocks;
    TensorRef x, normed; // (N, C) of the final norm; one tensor without it
    LayerNorm::Saved norm;
  };
  /// The output, from x (N, C), both taken from the arena; `name` is that of the final norm's.
  TensorRef forward(Build &build, TensorRef x, int64_t batch, int64_t time, const char *name, Saved &saved) const;
  /// The gradient of x from that of the output, in place or in new memory. Releases `saved` and x, the output if it is
  /// a norm's, and launches the deferred work.
  TensorRef backward(Build &build, TensorRef dx, Saved &saved) const;
  /// The blocks without saved activations: x becomes the last one's output in place.
  void infer(Build &build, const TensorRef &x, int64_t batch, int64_t time) const;
  /// y = the final norm of x, which there must be; y may be x.
  void normalise(Build &build, const TensorRef &x, const TensorRef &y) const;

  std::vector<Block> blocks;
  std::optional<LayerNorm> last;
};

class Decoder {
public:
  /// Adds its parameters to the list, in the order: tables, blocks, final norm, head.
  Decoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &options);

  const DecoderOptions &options() const { return sizes; }
  /// Tokens and targets (N) with N = sequences · length, and further inputs of the embeddings.
  std::vector<Input> inputs(const BatchShape &shape) const;
  void derive(HostBatch &batch) const { embedding.derive(batch); }
  /// Recomputes activations as the build's policy says. With several loss chunks it has the logits of one chunk in
  /// memory at a time; gradients are then sums over the chunks.
  void gradient(Build &build, const MicroBatch &batch) const;
  /// Targets below 0 are ignored.
  void losses(Build &build, const MicroBatch &batch) const;

  /// The last block's output (N, width), taken from the arena, for whole sequences of `time` positions. `inputs` has
  /// the tokens (N), and positions and ranges if the batch gives them.
  TensorRef hidden(Build &build, const Embedding::Inputs &inputs, int64_t rows, int64_t time) const;
  /// hidden() for new positions of B sequences (incremental decoding), with a KV cache for each block. `tokens` and
  /// `positions` are (B · n) i32; −1 adds nothing. Blocks with cross-attention also take their keys and values of the
  /// encoder memory.
  TensorRef extend(Build &build, const TensorRef &tokens, const TensorRef &positions,
                   const std::vector<KvCache> &caches, const std::vector<CrossKvCache> &crossCaches = {}) const;
  /// Computes the last argument of extend() for each block with cross-attention, from the build's encoder memory.
  void remember(Build &build, const std::vector<CrossKvCache> &crossCaches) const;
  /// Logits (N, vocab) of rows of hidden() or extend().
  void logits(Build &build, const TensorRef &rows, const TensorRef &logits) const;
  int tokenTable() const { return embedding.tokenTable(); }

private:
  DecoderOptions sizes;
  Embedding embedding;
  Stack stack;
  Head projection;
};

//===-- The model -----------------------------------------------------------------------------------------------===//
// A language model that is a decoder: its parameters, and the launches of a training micro-batch, an evaluation and a
// prediction. The derived model chooses options and names, counts its FLOPs and describes itself in a file.

class DecoderNetwork : public Model {
public:
  const ParameterList &parameters() const override { return list; }
  Type type() const override { return element; }

  /// Sequences as long as the context. Shorter ones are allowed and use the first positions.
  BatchShape shape(int64_t sequences) const override { return {sequences, context()}; }
  /// Tokens and targets (N) with N = sequences · length, and the three arrays of the token index.
  std::vector<Input> inputs(const BatchShape &shape) const override { return decoder.inputs(shape); }
  void derive(HostBatch &batch, const BatchShape &) const override { decoder.derive(batch); }
  double attentionShare(const HostBatch &batch, const BatchShape &shape) const override;
  void gradient(Build &build, const MicroBatch &batch) const override { decoder.gradient(build, batch); }
  /// Targets equal to ignoredTarget are ignored.
  void losses(Build &build, const MicroBatch &batch) const override { decoder.losses(build, batch); }

  int64_t blocks() const override { return decoder.options().layers; }

  int64_t context() const { return decoder.options().context; }
  int64_t vocab() const { return decoder.options().vocab; }
  /// Logits (N, vocab) of rows of the decoder's hidden() or extend().
  void logits(Build &build, const TensorRef &rows, const TensorRef &logits) const {
    decoder.logits(build, rows, logits);
  }

  const Decoder &layers() const { return decoder; }

protected:
  /// With weights and activations of `type`.
  DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type, DecayOn decayOn);
  /// As above, for a model that adds more parameters to the list and then places it.
  DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type);

  ParameterList list;

private:
  Type element;
  Decoder decoder;
};

/// Uploads host weights of the network's type, laid out as its parameters.
Tensor uploaded(const std::shared_ptr<Device> &device, const DecoderNetwork &network, const std::vector<char> &weights);

} // namespace kiln
