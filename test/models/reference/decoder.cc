// Each layer by its formula.

#include "test/models/reference/decoder.h"

#include <cmath>
#include <fmt/format.h>

namespace kiln::test {

DecoderNames plainNames(const std::string &front) {
  const auto layer = [=](const std::string &name) {
    return LayerNames{front + name + ".weight", front + name + ".bias"};
  };
  const auto block = [=](int64_t number) {
    const auto in = [&](const char *name) { return layer(fmt::format("{}.{}", number, name)); };
    return BlockNames{in("norm1"), {in("qkv"), in("mixed")},
                      in("norm2"), {in("up"), in("down")},
                      in("norm3"), {in("query"), in("looked"), in("memory")}};
  };
  return {{front + "tokens", front + "places"}, block, layer("last"), layer("head")};
}

namespace {

/// The output of an encoder for sequences of `time` positions, some of them padding.
struct Memory {
  Value states;
  int64_t time;
  const std::vector<int32_t> &lengths;
};

class Model {
public:
  /// A block whose positions see those of `lengths` is an encoder's; one with a memory has cross-attention.
  Model(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &p, const DecoderBatch &batch,
        std::string front = "", const std::vector<int32_t> *lengths = nullptr, const Memory *memory = nullptr)
      : tape(tape), o(options), p(p), batch(batch), front(std::move(front)), lengths(lengths), memory(memory) {
    const DropoutOptions &d = options.dropout; // sites are numbered as layers are made, not as they run
    int64_t site = 0;
    const auto next = [&](double chance) { return d.of(chance).threshold() > 0 ? site++ : -1; };
    embedded = next(d.embedding);
    for (int64_t l = 0; l < options.layers; ++l) {
      const int64_t mixed = next(d.residual), weights = next(d.attention), active = next(d.activation);
      const int64_t fed = next(d.residual), looked = o.block.cross ? next(d.residual) : -1;
      sites.push_back({mixed, weights, active, fed, looked, o.block.cross ? next(d.attention) : -1});
    }
  }

  /// The output of the last norm, or of the last block.
  Value states() {
    std::vector<int32_t> places = batch.positions;
    for (int64_t n = 0; n < batch.sequences * batch.time && !o.embedding.givesPositions; ++n)
      places.push_back(static_cast<int32_t>(n % batch.time));
    Value x = gathered(p.at(p.count(front + "tokens") ? front + "tokens" : "tokens"), batch.tokens) * o.embedding.scale;
    if (o.embedding.positions != PositionTable::none)
      x = x + gathered(p.at(front + "places"), places);
    x = dropped(x, embedded);
    for (int64_t l = 0; l < o.layers; ++l)
      for (const bool attends :
           {o.block.order == BlockOrder::attention_first, o.block.order == BlockOrder::mlp_first}) {
        x = half(x, l, attends ? "norm1" : "norm2", [&](Value in) { return attends ? attention(in, l) : mlp(in, l); });
        if (attends && memory)
          x = half(x, l, "norm3", [&](Value in) { return look(in, l); });
      }
    return o.lastNorm ? norm(x, "last") : x;
  }

  Value logits() {
    const Value x = states();
    Value logits = matmul(x, transposed(p.at(o.head.tied ? "tokens" : "head.weight")));
    if (o.head.bias)
      logits = logits + p.at("head.bias");
    return logits;
  }
  Value loss() { return crossEntropy(logits(), batch.targets, o.smoothing); }

private:
  template <class Layer> Value half(Value x, int64_t l, const char *which, Layer layer) {
    const std::string name = fmt::format("{}.{}", l, which);
    return o.block.place == NormPlace::pre ? x + layer(norm(x, name)) : norm(x + layer(x), name);
  }
  Value norm(Value x, const std::string &name) {
    const kiln::NormOptions &n = o.block.norm;
    const Value y = normalised(x, {.ddof = n.ddof, .epsilon = n.epsilon, .outside = n.epsOutsideSqrt});
    return n.affine ? y * p.at(front + name + ".weight") + p.at(front + name + ".bias") : y;
  }
  Value linear(Value x, const std::string &name, bool bias) {
    const Value y = matmul(x, p.at(front + name + ".weight"));
    return bias ? y + p.at(front + name + ".bias") : y;
  }
  Value dropped(Value x, int64_t site) {
    return site < 0 || !batch.mask ? x : x * tape.value(x.rows(), x.columns(), batch.mask(site, x.rows(), x.columns()));
  }
  Value mlp(Value x, int64_t l) {
    const bool bias = o.block.mlp.linear.bias;
    const Value up = activated(o.block.mlp.activation, linear(x, fmt::format("{}.up", l), bias));
    return dropped(linear(dropped(up, sites[l].active), fmt::format("{}.down", l), bias), sites[l].fed);
  }
  /// Queries at column `q` of each row of x, keys and values at columns `k` and `v` of each row of y, for sequences of
  /// `time` and `keys` positions, in block `l`; weights are dropped at `site`.
  Value heads(Value x, int64_t q, Value y, int64_t k, int64_t v, int64_t keys,
              const std::function<bool(int64_t b, int64_t row, int64_t column)> &sees, int64_t site, int64_t l) {
    const int64_t count = o.block.attention.heads, depth = o.width / count, time = batch.time;
    const auto masked = [&](Value weights, int64_t head) { // of the head, counted through all sequences
      if (site < 0 || !batch.mask)
        return weights;
      const std::vector<double> all = batch.mask(site, batch.sequences * count * time, keys);
      const auto begin = all.begin() + head * time * keys;
      return weights * tape.value(time, keys, {begin, begin + time * keys});
    };
    std::vector<Value> sequences;
    for (int64_t b = 0; b < batch.sequences; ++b) {
      std::vector<bool> seen;
      for (int64_t i = 0; i < time * keys; ++i)
        seen.push_back(sees(b, i / keys, i % keys));
      std::vector<Value> all;
      for (int64_t h = 0; h < count; ++h) {
        const auto part = [&](Value of, int64_t column, int64_t rows) {
          return columnsOf(rowsOf(of, b * rows, rows), column + h * depth, depth);
        };
        const Value scores = matmul(part(x, q, time), transposed(part(y, k, keys))) *
                             (o.attentionScale ? o.attentionScale(l) : 1 / std::sqrt(static_cast<double>(depth)));
        all.push_back(matmul(masked(softmax(scores, seen), b * count + h), part(y, v, keys)));
      }
      sequences.push_back(joined(all));
    }
    return stacked(sequences);
  }
  Value attention(Value x, int64_t l) {
    const bool bias = o.block.attention.linear.bias;
    const Value qkv = linear(x, fmt::format("{}.qkv", l), bias);
    const auto sees = [&](int64_t b, int64_t row, int64_t column) {
      const int32_t *range = o.givesRanges ? &batch.ranges[2 * (b * batch.time + row)] : nullptr;
      return lengths ? column < (*lengths)[b] : range ? range[0] <= column && column < range[1] : column <= row;
    };
    const Value mixed = heads(qkv, 0, qkv, o.width, 2 * o.width, batch.time, sees, sites[l].weights, l);
    return dropped(linear(mixed, fmt::format("{}.mixed", l), bias), sites[l].mixed);
  }
  Value look(Value x, int64_t l) {
    const bool bias = o.block.attention.linear.bias;
    const Value q = linear(x, fmt::format("{}.query", l), bias),
                kv = linear(memory->states, fmt::format("{}.memory", l), bias);
    const auto sees = [&](int64_t b, int64_t, int64_t column) { return column < memory->lengths[b]; };
    const Value looked = heads(q, 0, kv, 0, o.width, memory->time, sees, sites[l].lookedWeights, l);
    return dropped(linear(looked, fmt::format("{}.looked", l), bias), sites[l].looked);
  }
  static Value activated(Activation activation, Value x) {
    switch (activation) {
    case Activation::none:
      return x;
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_erf:
      return geluErf(x);
    case Activation::relu:
      return relu(x);
    case Activation::relu2:
      return relu(x) * relu(x);
    case Activation::silu:
      return silu(x);
    }
    return x;
  }

  Tape &tape;
  const DecoderOptions &o;
  std::map<std::string, Value> &p;
  const DecoderBatch &batch;
  const std::string front;
  const std::vector<int32_t> *lengths;
  const Memory *memory;
  int64_t embedded;
  /// The sites of a block: after attention, its weights, the activation, after the feed-forward layer; after
  /// cross-attention, its weights.
  struct Sites {
    int64_t mixed, weights, active, fed, looked, lookedWeights;
  };
  std::vector<Sites> sites;
};

} // namespace

Value decoderLogits(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &parameters,
                    const DecoderBatch &batch) {
  return Model(tape, options, parameters, batch).logits();
}

Value decoderLoss(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &parameters,
                  const DecoderBatch &batch) {
  return Model(tape, options, parameters, batch).loss();
}

Value encoderDecoderLoss(Tape &tape, const DecoderOptions &encoder, const DecoderOptions &decoder,
                         std::map<std::string, Value> &parameters, const DecoderBatch &source,
                         const std::vector<int32_t> &lengths, const DecoderBatch &batch) {
  const Memory memory = {Model(tape, encoder, parameters, source, "source ", &lengths).states(), source.time, lengths};
  return Model(tape, decoder, parameters, batch, "", nullptr, &memory).loss();
}

} // namespace kiln::test
