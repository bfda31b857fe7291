// Each layer as its formula says.

#include "test/models/reference/decoder.h"

#include <cmath>
#include <fmt/format.h>

namespace kiln::test {

DecoderNames plainNames() {
  const auto layer = [](const std::string &name) { return LayerNames{name + ".weight", name + ".bias"}; };
  const auto block = [=](int64_t number) {
    const auto in = [&](const char *name) { return layer(fmt::format("{}.{}", number, name)); };
    return BlockNames{in("norm1"), {in("qkv"), in("mixed")}, in("norm2"), {in("up"), in("down")}};
  };
  return {{"tokens", "places"}, block, layer("last"), layer("head")};
}

namespace {

class Model {
public:
  Model(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &p, const DecoderBatch &batch)
      : tape(tape), o(options), p(p), batch(batch) {
    const DropoutOptions &d = options.dropout; // sites are numbered as layers are made, not as they run
    int64_t site = 0;
    const auto next = [&](double chance) { return d.of(chance).threshold() > 0 ? site++ : -1; };
    embedded = next(d.embedding);
    for (int64_t l = 0; l < options.layers; ++l) {
      const int64_t mixed = next(d.residual), weights = next(d.attention), active = next(d.activation);
      sites.push_back({mixed, weights, active, next(d.residual)});
    }
  }

  Value loss() {
    std::vector<int32_t> places = batch.positions;
    for (int64_t n = 0; n < batch.sequences * batch.time && !o.embedding.givesPositions; ++n)
      places.push_back(static_cast<int32_t>(n % batch.time));
    Value x = gathered(p.at("tokens"), batch.tokens) * o.embedding.scale;
    if (o.embedding.positions != PositionTable::none)
      x = x + gathered(p.at("places"), places);
    x = dropped(x, embedded);
    for (int64_t l = 0; l < o.layers; ++l)
      for (const bool attends : {o.block.order == BlockOrder::attention_first, o.block.order == BlockOrder::mlp_first})
        x = half(x, l, attends);
    if (o.lastNorm)
      x = norm(x, "last");
    Value logits = matmul(x, transposed(p.at(o.head.tied ? "tokens" : "head.weight")));
    if (o.head.bias)
      logits = logits + p.at("head.bias");
    return crossEntropy(logits, batch.targets);
  }

private:
  Value half(Value x, int64_t l, bool attends) {
    const std::string name = fmt::format("{}.{}", l, attends ? "norm1" : "norm2");
    const auto layer = [&](Value in) { return attends ? attention(in, l) : mlp(in, l); };
    return o.block.place == NormPlace::pre ? x + layer(norm(x, name)) : norm(x + layer(x), name);
  }
  Value norm(Value x, const std::string &name) {
    const kiln::NormOptions &n = o.block.norm;
    const Value y = normalised(x, {.ddof = n.ddof, .epsilon = n.epsilon, .outside = n.outside});
    return n.affine ? y * p.at(name + ".weight") + p.at(name + ".bias") : y;
  }
  Value linear(Value x, const std::string &name, bool bias) {
    const Value y = matmul(x, p.at(name + ".weight"));
    return bias ? y + p.at(name + ".bias") : y;
  }
  Value dropped(Value x, int64_t site) {
    return site < 0 || !batch.mask ? x : x * tape.value(x.rows(), x.columns(), batch.mask(site, x.rows(), x.columns()));
  }
  Value mlp(Value x, int64_t l) {
    const bool bias = o.block.mlp.linear.bias;
    const Value up = activated(o.block.mlp.activation, linear(x, fmt::format("{}.up", l), bias));
    return dropped(linear(dropped(up, sites[l].active), fmt::format("{}.down", l), bias), sites[l].fed);
  }
  Value attention(Value x, int64_t l) {
    const AttentionOptions &a = o.block.attention;
    const Value qkv = linear(x, fmt::format("{}.qkv", l), a.linear.bias);
    const int64_t depth = o.width / a.heads, time = batch.time;
    const auto seen = [&](int64_t b) { // by each place of sequence b
      std::vector<bool> all;
      for (int64_t i = 0; i < time * time; ++i) {
        const int64_t row = i / time, column = i % time;
        const int32_t *range = o.givesRanges ? &batch.ranges[2 * (b * time + row)] : nullptr;
        all.push_back(range ? range[0] <= column && column < range[1] : column <= row);
      }
      return all;
    };
    const auto masked = [&](Value weights, int64_t head) { // of the head, counted through all sequences
      if (sites[l].weights < 0 || !batch.mask)
        return weights;
      const std::vector<double> all = batch.mask(sites[l].weights, batch.sequences * a.heads * time, time);
      const auto begin = all.begin() + head * time * time;
      return weights * tape.value(time, time, {begin, begin + time * time});
    };
    std::vector<Value> sequences;
    for (int64_t b = 0; b < batch.sequences; ++b) {
      std::vector<Value> heads;
      for (int64_t h = 0; h < a.heads; ++h) {
        const auto part = [&](int64_t which) {
          return columnsOf(rowsOf(qkv, b * time, time), which * o.width + h * depth, depth);
        };
        const Value scores = matmul(part(0), transposed(part(1))) * (1 / std::sqrt(static_cast<double>(depth)));
        heads.push_back(matmul(masked(softmax(scores, seen(b)), b * a.heads + h), part(2)));
      }
      sequences.push_back(joined(heads));
    }
    return dropped(linear(stacked(sequences), fmt::format("{}.mixed", l), a.linear.bias), sites[l].mixed);
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
  int64_t embedded;
  /// Of a block: behind attention, its weights, the activation, behind the feed-forward layer.
  struct Sites {
    int64_t mixed, weights, active, fed;
  };
  std::vector<Sites> sites;
};

} // namespace

Value decoderLoss(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &parameters,
                  const DecoderBatch &batch) {
  return Model(tape, options, parameters, batch).loss();
}

} // namespace kiln::test
