// The embedding's launches, and the counting sort that prepares its index.

#include "models/nn/embedding.h"
#include "kernels/dropout.h"

#include <algorithm>

namespace kiln {

Embedding::Embedding(ParameterList &list, const EmbeddingNames &names, const EmbeddingSizes &sizes,
                     const EmbeddingOptions &options, const DropoutOptions &dropout)
    : sizes(sizes), options(options),
      tokens(options.table >= 0 ? options.table
                                : list.add(names.tokens, {sizes.vocab, sizes.width}, options.tokenInit, Role::table)),
      site(list, dropout.of(dropout.embedding), sizes.context) {
  const Shape shape = {sizes.context, sizes.width};
  if (learnsPositions())
    positions = list.add(names.positions, shape, options.positionInit, Role::table);
  if (options.positions == PositionTable::sinusoids)
    positions = list.add(names.positions, shape, {Init::Kind::sinusoids}, Role::fixed);
}

/// Names of the arrays of an index.
static std::string tokensName(const std::string &index) { return index + " index"; }
static std::string startsName(const std::string &index) { return index + " starts"; }
static std::string positionsName(const std::string &index) { return index + " positions"; }

static void addIndex(std::vector<Embedding::Array> &all, const std::string &name, int64_t distinct, int64_t rows) {
  all.push_back({tokensName(name), {distinct}});
  all.push_back({startsName(name), {distinct + 1}});
  all.push_back({positionsName(name), {rows}});
}

std::vector<Embedding::Array> Embedding::arrays(int64_t rows) const {
  std::vector<Array> all;
  addIndex(all, "token", options.tied ? std::min(sizes.vocab, rows) : sizes.vocab, rows);
  if (options.givesPositions && options.positions != PositionTable::none)
    all.push_back({"positions", {rows}});
  if (options.givesPositions && learnsPositions())
    addIndex(all, "position", sizes.context, rows);
  return all;
}

static void addIndex(HostBatch &batch, const std::string &name, const HostEmbeddingIndex &index) {
  batch[tokensName(name)] = index.tokens;
  batch[startsName(name)] = index.starts;
  batch[positionsName(name)] = index.positions;
}

void Embedding::derive(HostBatch &batch) const {
  addIndex(batch, "token", makeIndex(batch.at("tokens").numbers<int32_t>(), sizes.vocab, !options.tied));
  if (options.givesPositions && learnsPositions())
    addIndex(batch, "position", makeIndex(batch.at("positions").numbers<int32_t>(), sizes.context, /*every=*/true));
}

void Embedding::forward(Build &b, const Inputs &inputs, int64_t time, const TensorRef &x) const {
  const LaunchScope scope(b, "embedding");
  const std::optional<Dropout> dropout = site.in(b);
  if (options.scale == 1 && learnsPositions() && !options.givesPositions && options.tied &&
      chooseDropoutMode(dropout) == DropoutMode::off) {
    b.plan += planEmbedding(b.target, inputs("tokens"), b.value(tokens), b.value(positions), x, time);
    return;
  }
  EmbeddingTerms terms = {.scale = static_cast<float>(options.scale), .dropout = dropout};
  if (options.positions != PositionTable::none) {
    terms.places = b.value(positions);
    if (options.givesPositions)
      terms.positions = inputs("positions");
  }
  b.plan += planEmbeddingSum(b.target, inputs("tokens"), b.value(tokens), x, time, terms);
}

void Embedding::forwardAt(Build &b, const TensorRef &given, const TensorRef &places, const TensorRef &x) const {
  const LaunchScope scope(b, "embedding");
  EmbeddingTerms terms = {.scale = static_cast<float>(options.scale), .dropout = site.in(b)};
  if (options.positions != PositionTable::none) {
    terms.places = b.value(positions);
    terms.positions = places;
  }
  b.plan += planEmbeddingSum(b.target, given, b.value(tokens), x, /*T=*/1, terms);
}

static EmbeddingIndex indexIn(const Embedding::Inputs &inputs, const std::string &name) {
  return {inputs(tokensName(name)), inputs(startsName(name)), inputs(positionsName(name))};
}

void Embedding::backward(Build &b, const Inputs &inputs, const TensorRef &dx, int64_t time) const {
  const LaunchScope scope(b, "embedding backward");
  if (const std::optional<Dropout> dropout = site.in(b))
    b.plan += planDropout(b.target, dx, dx, *dropout);
  b.plan += planTokenGradient(b.target, indexIn(inputs, "token"), dx, b.gradient(tokens), options.tied || b.accumulate,
                              {}, static_cast<float>(options.scale));
  if (!learnsPositions())
    return;
  if (options.givesPositions)
    b.plan += planTokenGradient(b.target, indexIn(inputs, "position"), dx, b.gradient(positions), b.accumulate);
  else
    b.plan += planPositionGradient(b.target, dx, b.gradient(positions), time, b.accumulate);
}

HostEmbeddingIndex makeIndex(const std::vector<int32_t> &tokens, int64_t vocab, bool every) {
  const int64_t count = static_cast<int64_t>(tokens.size()), distinct = every ? vocab : std::min(vocab, count);
  std::vector<std::vector<int32_t>> places(vocab);
  int64_t present = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i] < -1 || tokens[i] >= vocab)
      throw Error("expected tokens from 0 to below " + std::to_string(vocab) + ", but got " +
                  std::to_string(tokens[i]));
    if (tokens[i] >= 0) {
      places[tokens[i]].push_back(static_cast<int32_t>(i));
      ++present;
    }
  }
  HostEmbeddingIndex index;
  index.tokens.assign(distinct, -1);
  index.starts.assign(distinct + 1, static_cast<int32_t>(present));
  index.positions.reserve(count);
  int64_t u = 0;
  for (int64_t token = 0; token < vocab; ++token)
    if (every || !places[token].empty()) {
      index.tokens[u] = static_cast<int32_t>(token);
      index.starts[u++] = static_cast<int32_t>(index.positions.size());
      index.positions.insert(index.positions.end(), places[token].begin(), places[token].end());
    }
  index.positions.resize(count, 0);
  return index;
}

} // namespace kiln
