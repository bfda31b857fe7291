// The KV cache, and the passes that fill it.

#include "models/generate/generator.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln {

ReadyPlan::ReadyPlan(const std::shared_ptr<Device> &device, const std::function<Plan(Arena &)> &plan) {
  Arena measured;
  workspace = Tensor(device, i8, {plan(measured).workspaceBytes});
  const ArenaPlan places = measured.plan();
  arena = Tensor(device, i8, {places.bytes});
  Arena placed(places, arena.data());
  launches = prepare(*device, plan(placed), workspace);
}

/// Positions of a text in one pass over a prompt: many for a long prompt, so that its GEMMs are efficient.
static constexpr int64_t longPass = 128, shortPass = 16;

Generator::Generator(std::shared_ptr<Device> opened, const DecoderNetwork &network, const TensorRef &weights,
                     Options given)
    : device(std::move(opened)), network(network), weights(weights), options(std::move(given)) {
  const DecoderOptions &o = network.layers().options();
  if (options.sequences < 1)
    throw Error(fmt::format("expected at least 1 sequence, but got {}", options.sequences));
  const int64_t heads = o.block.attention.heads;
  texts.resize(options.sequences);
  cache = Tensor(device, network.type(), {o.layers, 2, options.sequences, heads, o.context, o.width / heads});
  logits = Tensor(device, network.type(), {options.sequences, o.vocab});
  for (int64_t s = 0; s < options.sequences; ++s)
    clear(s);
}

void Generator::clear(int64_t sequence) {
  texts[sequence] = {};
  if (options.front)
    texts[sequence].tokens.push_back(*options.front);
}

void Generator::append(int64_t sequence, std::span<const int32_t> tokens) {
  texts[sequence].tokens.insert(texts[sequence].tokens.end(), tokens.begin(), tokens.end());
}

void Generator::fit(Text &text) {
  const int64_t size = std::ssize(text.tokens);
  if (size <= network.context())
    return;
  const int64_t front = options.front ? 1 : 0;
  const int64_t wanted = text.cached > 0 ? std::max<int64_t>(1, network.context() / 2) : network.context();
  const int64_t left = std::max<int64_t>(wanted - front, 1 - front);
  text.tokens.erase(text.tokens.begin() + front, text.tokens.end() - left);
  if (text.cached > 0 && options.restarts)
    options.restarts();
  text.cached = 0;
}

Plan Generator::plan(Arena &placed, int64_t places, const TensorRef &numbers) const {
  Target target = device->target();
  target.precision = Precision::ieee; // few tokens at a time: bound by memory, so a lower precision gains nothing
  Build b{target, placed, network.parameters(), ParameterBuffers{weights, weights}, network.type()};
  const int64_t count = options.sequences, rows = count * places;
  const TensorRef tokens = numbers.slice(0, 0, rows), positions = numbers.slice(0, rows, rows),
                  ranges = numbers.slice(0, 2 * rows, 2 * rows).reshape({count, places, 2}),
                  starts = numbers.slice(0, 4 * rows, count);
  std::vector<KvCache> caches;
  for (int64_t l = 0; l < network.layers().options().layers; ++l) {
    const TensorRef both = cache.ref().select(0, l);
    caches.push_back({both.select(0, 0), both.select(0, 1), starts, ranges});
  }
  const TensorRef hidden = network.layers().extend(b, tokens, positions, caches, options.crossCaches);
  if (places == 1)
    network.logits(b, hidden, logits);
  b.release(hidden);
  return std::move(b.plan);
}

Generator::Pass &Generator::pass(int64_t places) {
  const auto known = passes.find(places);
  if (known != passes.end())
    return known->second;
  Pass made = {.places = places, .numbers = Tensor(device, i32, {options.sequences * (4 * places + 1)})};
  made.ready = ReadyPlan(device, [&](Arena &arena) { return plan(arena, places, made.numbers); });
  return passes.emplace(places, std::move(made)).first->second;
}

void Generator::read(int64_t places, const std::function<int64_t(const Text &)> &of) {
  Pass &with = pass(places);
  const int64_t count = options.sequences, rows = count * places;
  // Unused positions of a pass: no token, no position; they see nothing and are not written to the cache.
  std::vector<int32_t> numbers(with.numbers.count(), -1);
  int32_t *ranges = &numbers[2 * rows], *starts = &numbers[4 * rows];
  for (int64_t s = 0; s < count; ++s) {
    Text &text = texts[s];
    const int64_t taken = of(text);
    starts[s] = static_cast<int32_t>(taken > 0 ? text.cached : network.context());
    for (int64_t i = 0; i < places; ++i) {
      const int64_t row = s * places + i, place = text.cached + i;
      const bool isThere = i < taken;
      if (isThere) {
        numbers[row] = text.tokens[place];
        numbers[rows + row] = static_cast<int32_t>(place);
      }
      const auto end = static_cast<int32_t>(text.cached + taken); // ranges must not decrease
      ranges[2 * row] = isThere ? 0 : end;
      ranges[2 * row + 1] = isThere ? static_cast<int32_t>(place + 1) : end;
    }
    text.cached += taken;
  }
  with.numbers.upload(numbers.data(), with.numbers.bytes());
  with.ready.launches.run();
}

std::vector<std::vector<float>> Generator::next() {
  std::vector<bool> grows;
  for (size_t s = 0; s < texts.size(); ++s) {
    if (texts[s].tokens.empty())
      throw Error(fmt::format("expected text {} to have at least one token, but got none", s));
    grows.push_back(pending(texts[s]) > 0);
    fit(texts[s]);
  }
  // 1. All tokens of each text except the last; their logits are not needed.
  const auto before = [](const Text &text) { return std::max<int64_t>(pending(text) - 1, 0); };
  for (;;) {
    int64_t most = 0;
    for (const Text &text : texts)
      most = std::max(most, before(text));
    if (most == 0)
      break;
    const int64_t places = std::min(most > shortPass ? longPass : shortPass, network.context());
    read(places, [&](const Text &text) { return std::min(before(text), places); });
  }
  // 2. The last token.
  read(1, [](const Text &text) { return std::min<int64_t>(pending(text), 1); });
  device->synchronize();
  const std::vector<float> all = logits.downloadFloats();
  const int64_t vocab = network.vocab();
  std::vector<std::vector<float>> result(texts.size());
  for (size_t s = 0; s < texts.size(); ++s)
    if (grows[s])
      result[s].assign(all.begin() + static_cast<int64_t>(s) * vocab,
                       all.begin() + static_cast<int64_t>(s + 1) * vocab);
  return result;
}

} // namespace kiln
