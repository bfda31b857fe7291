// Encodes sources, and generates their translations.

#include "models/translate/translator.h"

#include <algorithm>

namespace kiln {

namespace {
/// Sources on a device, with their keys and values for the decoder's blocks.
struct Sources {
  Tensor tokens, ranges, kv; // (B · S), (B, 2); (layers, B · S, 2C)
  std::vector<CrossKvCache> caches;
};
} // namespace

/// Encodes `rows`, each followed by an end mark, padded to one length.
static Sources read(const std::shared_ptr<Device> &device, const TranslationNetwork &network, const TensorRef &weights,
                    const std::vector<std::vector<int32_t>> &rows) {
  const int64_t count = std::ssize(rows), layers = network.config().layers, width = network.config().width;
  int64_t length = 0;
  for (const std::vector<int32_t> &row : rows)
    length = std::max(length, std::ssize(row));
  std::vector<int32_t> tokens, ranges;
  for (std::vector<int32_t> row : rows) {
    ranges.insert(ranges.end(), {0, static_cast<int32_t>(row.size())});
    row.resize(length, row.back());
    tokens.insert(tokens.end(), row.begin(), row.end());
  }
  Sources all = {Tensor(device, i32, {count * length}),
                 Tensor(device, i32, {count, 2}),
                 Tensor(device, network.type(), {layers, count * length, 2 * width}),
                 {}};
  all.tokens.upload(tokens.data(), all.tokens.bytes());
  all.ranges.upload(ranges.data(), all.ranges.bytes());
  for (int64_t l = 0; l < layers; ++l)
    all.caches.push_back({all.kv.ref().select(0, l), all.ranges});
  const std::map<std::string, TensorRef> inputs = {{"source tokens", all.tokens}, {"source ranges", all.ranges}};
  Target target = device->target();
  target.precision = Precision::ieee; // as in Generator
  target.elastic = true;
  const auto plan = [&](Arena &arena) {
    Build b{target, arena, network.parameters(), ParameterBuffers{weights, weights}, network.type()};
    network.read(
        b, [&](const std::string &name) -> const TensorRef & { return inputs.at(name); }, count, length, all.caches);
    return std::move(b.plan);
  };
  Arena measured;
  const Tensor workspace(device, i8, {plan(measured).workspaceBytes});
  const ArenaPlan places = measured.plan();
  const Tensor memory(device, i8, {places.bytes});
  Arena arena(places, memory.data());
  run(*device, plan(arena), workspace);
  device->synchronize();
  return all;
}

std::vector<std::string> Translator::translate(std::span<const std::string> lines) const {
  const int64_t most = network.config().context;
  std::vector<std::vector<int32_t>> rows, made(lines.size());
  std::vector<bool> ended;
  for (const std::string &line : lines) {
    std::vector<int32_t> row = tokenizers.source.encode(line);
    ended.push_back(row.empty());
    row.resize(std::min(std::ssize(row), most - 1));
    row.push_back(marks.sourceEnd);
    rows.push_back(std::move(row));
  }
  const Sources sources = read(device, network, weights, rows);
  Generator generator(device, network, weights,
                      {.sequences = std::ssize(lines), .front = marks.begin, .crossCaches = sources.caches});
  for (int64_t length = 1;
       length < most && !std::all_of(ended.begin(), ended.end(), [](bool end) { return end; }); ++length) {
    const std::vector<std::vector<float>> logits = generator.next();
    for (size_t i = 0; i < lines.size(); ++i) {
      if (ended[i])
        continue;
      const auto first = logits[i].begin(), last = first + tokenizers.target.size(); // the rest is padding
      const auto token = static_cast<int32_t>(std::max_element(first, last) - first);
      ended[i] = token == marks.end;
      if (ended[i])
        continue;
      made[i].push_back(token);
      generator.append(static_cast<int64_t>(i), {&token, 1});
    }
  }
  std::vector<std::string> texts;
  for (const std::vector<int32_t> &tokens : made) {
    texts.push_back(tokenizers.target.decode(tokens));
    while (!texts.back().empty() && texts.back().back() == ' ') // after the last word
      texts.back().pop_back();
  }
  return texts;
}

} // namespace kiln
