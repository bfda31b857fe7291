// Token and position embedding: a gather forward, ordered sums backward.

#include "kernels/embedding.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"
#include "kernels/rows.h"

namespace kiln {

/// out[n] = wte[tokens[n]] + wpe[n mod T].
static void embedding(View tokens, View wte, View wpe, View out, Tile T, EmbeddingConfig cfg) {
  const int64_t C = width({wte, wpe, out});
  Tile n = program_id() * cfg.rows;
  Tile token = load(tokens, {n}, {cfg.rows}); // (BN)
  device_assert((token >= 0) & (token < wte.dim(0)), "expected a token of the vocabulary");

  Tile position = (n + iota(cfg.rows, i64)) % T;               // (BN)
  Tile tokenRow = cast(load(wte, {token, 0}, {C}), f32);       // (BN, C)
  Tile positionRow = cast(load(wpe, {position, 0}, {C}), f32); // (BN, C)
  store(out, {n, 0}, cast(tokenRow + positionRow, out.type()));
}

/// out[n] = drop(scale · wte[tokens[n]] + wpe[position]).
static void embeddingSum(View tokens, View wte, View positions, View wpe, View out, Tile T, Tile scale, View rngState,
                         Tile time, Tile maxLength, Tile threshold, Tile dropScale, EmbeddingSumConfig cfg) {
  const int64_t C = width({wte, out});
  Tile n = program_id() * cfg.rows;
  Tile token = load(tokens, {n}, {cfg.rows}); // (BN)
  device_assert((token >= -1) & (token < wte.dim(0)), "expected a token of the vocabulary, or -1");
  Tile sum = cast(load(wte, {token, 0}, {C}), f32) * scale; // (BN, C)

  if (cfg.places != Places::none) {
    Tile position = (n + iota(cfg.rows, i64)) % T; // (BN)
    if (cfg.places == Places::given)
      position = cast(load(positions, {n}, {cfg.rows}), i64);
    device_assert((position >= -1) & (position < wpe.dim(0)), "expected a position of the table, or -1");
    sum += cast(load(wpe, {position, 0}, {C}), f32); // (BN, C)
  }
  sum = dropped(sum, cfg.dropout, {rngState, time, maxLength, threshold, dropScale}, n, out.dim(1), 0); // (BN, C)
  store(out, {n, 0}, cast(sum, out.type()));
}

/// One program per token: the sum of the rows of dout at its occurrences.
static void tokenGradient(View tokens, View starts, View positions, View dout, View dwte, Tile scale,
                          EmbeddingConfig cfg) {
  const int64_t C = width({dout, dwte});
  Tile u = program_id();
  Tile token = load(tokens, {u}, {}); // scalar
  Tile begin = load(starts, {u}, {}), end = load(starts, {u + 1}, {});

  // BI partial sums. The first begins with the row's present value; index −1 is outside of every view and reads zeros.
  Tile slot = iota(cfg.block);               // (BI)
  Tile running = zeros(f32, {cfg.block, C}); // (BI, C)
  if (cfg.accumulate)
    running = cast(load(dwte, {where(slot == 0, token, -1), 0}, {C}), f32);
  for (Tile i : range(begin, end, cfg.block)) {
    Tile n = load(positions, {i}, {cfg.block}); // (BI)
    if (cfg.block > 1)                          // the last block may be partial
      n = where(slot < cast(min(end - i, cfg.block), i32), n, -1);
    Tile rows = cast(load(dout, {n, 0}, {C}), f32); // (BI, C)
    running += cfg.scaled ? rows * scale : rows;
  }
  Tile total = sum(running, 0);                      // (C)
  store(dwte, {token, 0}, cast(total, dwte.type())); // token −1 is outside: nothing is written
}

/// dwpe[t] (+)= Σ_b dout[b, t]. dout (B, T, C); rows of dwpe from T on are set to 0.
static void positionGradient(View dout, View dwpe, EmbeddingConfig cfg) {
  const int64_t C = width({dout, dwpe});
  const Shape block = {cfg.rows, C};
  Tile t = program_id() * cfg.rows;
  Tile total = zeros(f32, block); // (BT, C)
  if (cfg.accumulate)
    total = cast(load(dwpe, {t, 0}, block), f32);
  for (Tile b : range(dout.dim(0)))
    total += cast(load(dout, {b, t, 0}, block), f32); // (BT, C)
  store(dwpe, {t, 0}, cast(total, dwpe.type()));
}

static const std::vector<Field> &configFields() {
  static const std::vector<Field> fields = {
      field("rows", &EmbeddingConfig::rows, "rows a program"),
      field("block", &EmbeddingConfig::block, "rows that token_gradient gathers at once"),
      field("accumulate", &EmbeddingConfig::accumulate, "adds to the gradients instead of replacing them"),
      field("scaled", &EmbeddingConfig::scaled, "token_gradient multiplies by its scale")};
  return fields;
}
static std::vector<Field> sumFields() {
  return {
      field("rows", &EmbeddingSumConfig::rows, "rows a program"),
      field("places", &EmbeddingSumConfig::places, placesNames, "rows of wpe that are added: none, in_order, given"),
      field("dropout", &EmbeddingSumConfig::dropout, dropoutModeNames, "dropout: off, scale_only or random")};
}
const Kernel embeddingKernel =
    kernel("embedding", embedding,
           {"tokens (N) i32", "wte (V, C), a row for each token", "wpe (P, C), a row for each position", "out (N, C)",
            "T i64, positions of a sequence"},
           configFields());
const Kernel embeddingSumKernel =
    kernel("embedding_sum", embeddingSum,
           {"tokens (N) i32, −1 for none", "wte (V, C), a row for each token", "positions (N) i32, read when given",
            "wpe (P, C), a row for each position", "out (N, C)", "T i64, positions of a sequence",
            "scale f32, factor of the token embeddings", aboutDropoutState, aboutDropoutTime, aboutDropoutLength,
            aboutThreshold, "dropout_scale f32, the factor of kept elements"},
           sumFields());
const Kernel tokenGradientKernel =
    kernel("token_gradient", tokenGradient,
           {"tokens (U) i32, the distinct tokens", "starts (U + 1) i32, where each token's positions begin",
            "positions (N) i32, grouped by token", "dout (N, C)", "dwte (V, C)",
            "scale f32, factor of the sums, read when scaled"},
           configFields());
const Kernel positionGradientKernel =
    kernel("position_gradient", positionGradient, {"dout (B, T, C)", "dwpe (P, C)"}, configFields());

/// Position tables have at least T rows.
static void expectPositions(const char *plan, const char *operand, const TensorRef &table, int64_t T) {
  if (table.extents[0] < T)
    throw Error("'" + std::string(plan) + "': expected '" + operand + "' to have at least " + std::to_string(T) +
                " rows, but got " + std::to_string(table.extents[0]));
}

EmbeddingConfig pickEmbedding(const Target &target) {
  return {.rows = pickRows(target, 4),
          .block = target.visit([](const CpuFacts &) { return 1; }, [](const GpuFacts &) { return 4; })};
}

Plan planEmbedding(const Target &target, const TensorRef &tokens, const TensorRef &wte, const TensorRef &wpe,
                   const TensorRef &out, int64_t T, const std::optional<EmbeddingConfig> &config) {
  checkOperands(embeddingKernel, {tokens, wte, wpe, out});
  expectPositions("embedding", "wpe", wpe, T);
  const int64_t N = out.extents[0];
  const EmbeddingConfig chosen = config.value_or(pickEmbedding(target));
  return {.launches = {makeLaunch(embeddingKernel, chosen, programs(cdiv(N, chosen.rows)),
                                  {target.varying(tokens), wte, wpe, out, T})}};
}

Plan planEmbeddingSum(const Target &target, const TensorRef &tokens, const TensorRef &wte, const TensorRef &out,
                      int64_t T, const EmbeddingTerms &terms, const std::optional<EmbeddingSumConfig> &config) {
  const char *plan = "embedding_sum";
  checkOperands(embeddingSumKernel, {tokens, wte, terms.positions, terms.places, out});
  const int64_t N = out.extents[0];
  if (terms.places && !terms.positions)
    expectPositions(plan, "wpe", *terms.places, T);
  if (terms.dropout)
    expectDropout(plan, *terms.dropout, N);
  EmbeddingSumConfig chosen = config.value_or(EmbeddingSumConfig{.rows = pickEmbedding(target).rows});
  chosen.places = !terms.places ? Places::none : terms.positions ? Places::given : Places::in_order;
  chosen.dropout = chooseDropoutMode(terms.dropout);
  std::vector<Arg> args = {target.varying(tokens),
                           wte,
                           target.varying(terms.positions.value_or(tokens)),
                           terms.places.value_or(wte),
                           out,
                           T,
                           terms.scale};
  appendArgs(args, terms.dropout, out);
  return {.launches = {makeLaunch(embeddingSumKernel, chosen, programs(cdiv(N, chosen.rows)), args)}};
}

Plan planTokenGradient(const Target &target, const EmbeddingIndex &index, const TensorRef &dout, const TensorRef &dwte,
                       bool accumulate, const std::optional<EmbeddingConfig> &config, float scale) {
  checkOperands(tokenGradientKernel, {index.tokens, index.starts, index.positions, dout, dwte});
  const int64_t U = index.tokens.extents[0];
  EmbeddingConfig chosen = config.value_or(pickEmbedding(target));
  chosen.accumulate = accumulate;
  chosen.scaled = scale != 1;
  return {.launches = {makeLaunch(tokenGradientKernel, chosen, programs(U),
                                  {target.varying(index.tokens), target.varying(index.starts),
                                   target.varying(index.positions), dout, dwte, scale})}};
}

Plan planPositionGradient(const Target &target, const TensorRef &dout, const TensorRef &dwpe, int64_t T,
                          bool accumulate, const std::optional<EmbeddingConfig> &config) {
  const char *plan = "position_gradient";
  checkOperands(positionGradientKernel, {{}, dwpe});
  expectPositions(plan, "dwpe", dwpe, T);
  const int64_t C = dwpe.extents[1], N = dout.rank() == 2 ? dout.extents[0] : 0;
  expectShape(plan, "dout", dout, {N, C});
  if (N % T != 0)
    throw Error("'position_gradient': expected 'dout' to have whole sequences of " + std::to_string(T) +
                " rows, but got " + std::to_string(N) + " rows");
  EmbeddingConfig chosen = config.value_or(pickEmbedding(target));
  chosen.accumulate = accumulate;
  const TensorRef written = accumulate ? dwpe.slice(0, 0, T) : dwpe; // rows from T on are set to 0
  return {.launches = {makeLaunch(positionGradientKernel, chosen, programs(cdiv(written.extents[0], chosen.rows)),
                                  {dout.reshape({N / T, T, C}), written})}};
}

} // namespace kiln
