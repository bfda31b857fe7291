// Encoder-decoder models: their gradients compared with a tape in double precision, for all options and shapes of
// micro-batches.

#include "models/nn/encoder_decoder.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/models/nn/decoder_model.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class PairModel : public EncoderDecoderNetwork {
public:
  explicit PairModel(const EncoderDecoderOptions &options, Type type = f32)
      : EncoderDecoderNetwork(plainNames("source "), plainNames(), options, type, DecayOn::matrices), options(options) {
  }
  double flops(const BatchShape &) const override { return 0; }
  std::string text() const override { return "a model of pairs"; }
  nlohmann::ordered_json configJson(Type) const override { return {}; }

  const EncoderDecoderOptions options;
};

/// Two blocks of each, of width 12 in three heads.
EncoderDecoderOptions plain() {
  EncoderDecoderOptions o = {{.layers = 2, .width = 12, .context = 9, .vocab = 13},
                             {.layers = 2, .width = 12, .context = 9, .vocab = 11}};
  for (DecoderOptions *side : {&o.encoder, &o.decoder})
    side->block.attention.heads = 3;
  o.decoder.block.cross = true;
  return o;
}

/// A change of both sides.
template <class Change> EncoderDecoderOptions changed(Change change) {
  EncoderDecoderOptions o = plain();
  change(o.encoder);
  change(o.decoder);
  return o;
}

/// Pairs of sequences whose sources have any length up to `source`.
struct Pairs {
  DecoderBatch sources, sequences;
  std::vector<int32_t> lengths;
};
Pairs randomPairs(const EncoderDecoderOptions &o, int64_t count, int64_t source, int64_t time, uint32_t seed) {
  Pairs pairs = {randomBatch(o.encoder, count, source, seed), randomBatch(o.decoder, count, time, seed + 1), {}};
  for (int64_t b = 0; b < count; ++b)
    pairs.lengths.push_back(b == 0 ? static_cast<int32_t>(source) : static_cast<int32_t>(1 + (seed + b) % source));
  for (int32_t &token : pairs.sources.tokens)
    token = std::max(token, 0);
  return pairs;
}

HostBatch makeInputs(const Pairs &pairs) {
  HostBatch batch = makeInputs(pairs.sequences, 0, pairs.sequences.sequences);
  batch["source tokens"] = pairs.sources.tokens;
  std::vector<int32_t> ranges;
  for (const int32_t length : pairs.lengths)
    ranges.insert(ranges.end(), {0, length});
  batch["source ranges"] = ranges;
  batch.shape = {pairs.sequences.sequences, pairs.sequences.time, pairs.sources.time};
  return batch;
}

/// The dropout factors of step 3 for a micro-batch whose first sequence is number `first`, at the sites of one side,
/// whose site 0 is number `base` of all.
auto maskIn(const DecoderOptions &o, int64_t base, int64_t time, int64_t first) {
  return [=](int64_t site, int64_t rows, int64_t columns) {
    const DropoutOptions &d = o.dropout;
    const std::vector<double> rates = {d.residual, d.attention, d.activation, d.residual, d.residual, d.attention};
    const int64_t which = site == 0 ? 0 : (site - 1) % (o.block.cross ? 6 : 4);
    const bool isOfHeads = site > 0 && (which == 1 || which == 5);
    const int64_t before = (isOfHeads ? first * o.block.attention.heads : first) * time;
    std::vector<double> mask =
        maskOf(o, d.of(site == 0 ? d.embedding : rates[which]), 3, base + site, time, before + rows, columns);
    mask.erase(mask.begin(), mask.begin() + before * columns);
    return mask;
  };
}

/// The sites of dropout of a side where every kind drops.
int64_t sitesOf(const DecoderOptions &o) { return 1 + o.layers * (o.block.cross ? 6 : 4); }

class EncoderDecoderTest : public DeviceTest {
protected:
  /// The gradient of a step of micro-batches of pairs, compared with the tape's for all their losses.
  void expectGradient(const EncoderDecoderOptions &o, std::vector<Pairs> micros, Type type = f32) {
    const PairModel model(o, type);
    TrainSettings settings = settingsOf(1, std::ssize(micros));
    settings.type = type;
    settings.lossScale = 1;
    std::vector<BatchShape> shapes;
    int64_t targets = 0;
    for (const Pairs &pairs : micros) {
      shapes.push_back(*makeInputs(pairs).shape);
      targets += presentIn(pairs.sequences);
    }
    Trainer trainer(Device::open(GetParam()), model, settings, shapes);
    const HostBuffers buffers = randomBuffers(model.parameters(), 7, type);
    trainer.upload(buffers);
    poison(trainer);
    trainer.beginStep(1e-3, 3, targets);
    std::optional<TapeGradient> want;
    int64_t first = 0;
    for (int64_t micro = 0; micro < std::ssize(micros); ++micro) {
      Pairs &pairs = micros[micro];
      trainer.addGradient(makeInputs(pairs), micro);
      if (o.decoder.dropout.embedding > 0) {
        pairs.sequences.mask = maskIn(o.decoder, 0, pairs.sequences.time, first);
        pairs.sources.mask = maskIn(o.encoder, sitesOf(o.decoder), pairs.sources.time, first);
      }
      first += pairs.sequences.sequences;
      const auto lossOn = [&](Tape &tape, std::map<std::string, Value> &values) {
        const Value mean =
            encoderDecoderLoss(tape, o.encoder, o.decoder, values, pairs.sources, pairs.lengths, pairs.sequences);
        return mean * (static_cast<double>(presentIn(pairs.sequences)) / static_cast<double>(targets));
      };
      TapeGradient own = tapeGradient(model.parameters(), buffers, lossOn);
      setDeviations(own, model.parameters(), buffers, type, lossOn);
      if (!want) {
        want = own;
        continue;
      }
      want->loss += own.loss;
      for (auto &[name, gradient] : want->gradients)
        for (size_t i = 0; i < gradient.size(); ++i)
          gradient[i] += own.gradients.at(name)[i];
      for (auto &[name, deviation] : want->deviations)
        deviation = std::hypot(deviation, own.deviations.at(name));
    }
    expectGradients(model, trainer.gradients(), *want, type);
  }
};

/// Each option of the connection of encoder and decoder, and those with their own code in cross-attention and the
/// encoder.
std::vector<EncoderDecoderOptions> each() {
  std::vector<EncoderDecoderOptions> all = {plain()};
  all.push_back(plain());
  all.back().encoder.vocab = all.back().decoder.vocab;
  all.back().sharesTable = true;
  all.push_back(all.back()); // a table that the head does not share
  all.back().decoder.head = {.tied = false, .bias = true};
  all.push_back(changed([](DecoderOptions &o) { o.block.place = NormPlace::post; }));
  all.push_back(changed([](DecoderOptions &o) { o.block.order = BlockOrder::mlp_first; }));
  all.push_back(changed([](DecoderOptions &o) { o.lastNorm = false; }));
  all.push_back(changed([](DecoderOptions &o) { o.block.attention.linear.bias = false; }));
  all.push_back(changed([](DecoderOptions &o) { o.block.attention.form = AttentionForm::plain; }));
  all.push_back(changed([](DecoderOptions &o) {
    o.embedding.positions = PositionTable::sinusoids;
    o.embedding.scale = 3;
    o.smoothing = 0.1;
  }));
  all.push_back(changed([](DecoderOptions &o) { o.dropout = {0.1, 0.2, 0.3, 0.4, DropoutKind::inverted}; }));
  return all;
}

// The gradient of every tensor equals the tape's within rounding, as in decoder_test.cc: with sources longer than the
// sequences, and shorter ones.
TEST_P(EncoderDecoderTest, HasTheTapesGradient) {
  const std::vector<EncoderDecoderOptions> all = each();
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    if (Tier::asked().takes(static_cast<int64_t>(i)))
      expectGradient(all[i], {randomPairs(all[i], 3, 8, 5, 1)});
  }
  if (Tier::asked().takes(static_cast<int64_t>(all.size())))
    expectGradient(plain(), {randomPairs(plain(), 2, 4, 9, 2)});
}

// Micro-batches of several shapes add up to the gradient of all of their targets: kernels are picked by buckets, which
// no result depends on, and dropout counts the sequences of a step.
TEST_P(EncoderDecoderTest, ShapesMayDifferWithinAStep) {
  const std::vector<EncoderDecoderOptions> options = {plain(), each().back()};
  for (size_t i = 0; i < options.size(); ++i)
    if (const EncoderDecoderOptions &o = options[i]; Tier::asked().takes(static_cast<int64_t>(i), 2))
      expectGradient(o, {randomPairs(o, 3, 8, 5, 1), randomPairs(o, 2, 3, 9, 2), randomPairs(o, 5, 9, 2, 3)});
}

// After the preparation of a trainer for several shapes, a shape that needs other kernels is an error that names it.
TEST(EncoderDecoder, CompilesNothingOnceItIsReady) {
  const PairModel model(plain());
  const auto shapeOf = [](const Pairs &pairs) { return *makeInputs(pairs).shape; };
  const Pairs one = randomPairs(plain(), 3, 8, 5, 1), other = randomPairs(plain(), 3, 7, 6, 2),
              unknown = randomPairs(plain(), 1, 2, 3, 3);
  forgetCompiled();
  Trainer trainer(Device::open("cpu"), model, settingsOf(1), std::vector{shapeOf(one), shapeOf(other)});
  trainer.upload(randomBuffers(model.parameters(), 7));
  trainer.prepare();
  const int64_t compiled = compileStatistics().compiled;
  for (const Pairs *pairs : {&one, &other}) {
    trainer.beginStep(1e-3, 1, presentIn(pairs->sequences));
    trainer.addGradient(makeInputs(*pairs), 0);
    trainer.update();
  }
  EXPECT_EQ(compileStatistics().compiled, compiled);
  trainer.beginStep(1e-3, 2, 1);
  expectError([&] { trainer.addGradient(makeInputs(unknown), 0); },
              {"a micro-batch of 1 sequences of 3 target and 2 source positions: kernel '",
               "requires compilation, which freeze() forbids"});
}

// In narrow types, as in decoder_test.cc.
TEST_P(EncoderDecoderTest, NarrowTypesHaveTheTapesGradient) {
  for (const Type type : {bf16, f16})
    expectGradient(plain(), {randomPairs(plain(), 3, 8, 5, 1)}, type);
}

KILN_ON_DEVICES(EncoderDecoderTest);

} // namespace
