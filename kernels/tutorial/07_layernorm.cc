// Chapter 7: LayerNorm (Ba, Kiros & Hinton, 2016), forward and backward.
//
// For a row x of C elements, with means over the row:
//
//     out = x̂ · gamma + beta,   x̂ = (x − mean) · rstd,   rstd = 1 / √(mean((x − mean)²) + ε)
//
// Backward, with g = dout · gamma, and sums over the N rows:
//
//     dx = (g − mean(g) − x̂ · mean(g · x̂)) · rstd,   dgamma = Σ_n dout · x̂,   dbeta = Σ_n dout

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct LayerNormConfig {
  int block = 4; // rows of a tile
  int rows = 16; // rows of a program in the backward pass, a multiple of block
};
static std::vector<Field> fields() {
  return {field("block", &LayerNormConfig::block, "rows of a tile"),
          field("rows", &LayerNormConfig::rows, "rows of a program in the backward pass")};
}

// x, out (N, C); gamma, beta (C); mean, rstd (N), which the backward pass reads. The grid is ⌈N / block⌉.
static void layernorm(View x, View gamma, View beta, View out, View mean, View rstd, Tile epsilon,
                      LayerNormConfig cfg) {
  const int64_t B = cfg.block, C = x.extent(1);
  Tile n = program_id() * B;
  Tile row = load(x, {n, 0}, {B, C});         // (B, C)
  Tile mu = sum(row) / C;                     // (B)
  Tile centred = row - unsqueeze(mu, -1);     // (B, C)
  Tile variance = sum(centred * centred) / C; // (B), a second pass over the row, which is in registers
  Tile r = rsqrt(variance + epsilon);         // (B)
  Tile xhat = centred * unsqueeze(r, -1);     // (B, C)
  store(out, {n, 0}, xhat * load(gamma, {0}, {C}) + load(beta, {0}, {C}));
  store(mean, {n}, mu);
  store(rstd, {n}, r);
}
const Kernel layernormKernel =
    kernel("layernorm", layernorm,
           {"x (N, C)", "gamma (C)", "beta (C)", "out (N, C)", "mean (N)", "rstd (N)", "epsilon"}, fields());

// dout, x, dx (N, C); gamma (C); mean, rstd (N). Program p of P = ⌈N / rows⌉ computes dx of its rows, and its share of
// dgamma and of dbeta: parts (2, P, C).
static void layernormBackward(View dout, View x, View gamma, View mean, View rstd, View dx, View parts,
                              LayerNormConfig cfg) {
  const int64_t B = cfg.block, C = x.extent(1);
  Tile p = program_id();
  Tile scale = load(gamma, {0}, {C});                           // (C)
  Tile dgamma = zeros(f32, {B, C}), dbeta = zeros(f32, {B, C}); // (B, C), loop-carried

  for (Tile n : range(p * cfg.rows, min((p + 1) * cfg.rows, x.dim(0)), B)) {
    // 1. x̂ again. A row past the end reads a mean, an rstd and a dout of 0, and adds 0 to all sums.
    Tile mu = unsqueeze(load(mean, {n}, {B}), -1);  // (B, 1)
    Tile r = unsqueeze(load(rstd, {n}, {B}), -1);   // (B, 1)
    Tile xhat = (load(x, {n, 0}, {B, C}) - mu) * r; // (B, C)
    Tile d = load(dout, {n, 0}, {B, C});            // (B, C)

    // 2. The program's share of the parameters' gradients.
    dgamma += d * xhat; // (B, C)
    dbeta += d;         // (B, C)

    // 3. dx = (g − mean(g) − x̂ · mean(g · x̂)) · rstd
    Tile g = d * scale;                        // (B, C)
    Tile gMean = sum(g, -1, keep) / C;         // (B, 1)
    Tile gxMean = sum(g * xhat, -1, keep) / C; // (B, 1)
    store(dx, {n, 0}, (g - gMean - xhat * gxMean) * r);
  }
  store(parts, {0, p, 0}, sum(dgamma, 0)); // (C)
  store(parts, {1, p, 0}, sum(dbeta, 0));  // (C)
}
const Kernel layernormBackwardKernel =
    kernel("layernorm_backward", layernormBackward,
           {"dout (N, C)", "x (N, C)", "gamma (C)", "mean (N)", "rstd (N)", "dx (N, C)", "parts (2, P, C)"}, fields());

struct SumConfig {
  int columns = 64; // columns of a program
};

// out[i] = parts[i, 0] + parts[i, 1] + …, in this order. parts (2, P, C), out (2, C). The grid is (⌈C / columns⌉, 2).
static void sumParts(View parts, View out, SumConfig cfg) {
  Tile c = program_id(0) * cfg.columns, i = program_id(1);
  Tile total = zeros(f32, {cfg.columns}); // (COLUMNS)
  for (Tile p : range(parts.dim(1)))
    total += load(parts, {i, p, c}, {cfg.columns});
  store(out, {i, c}, total);
}
const Kernel sumPartsKernel = kernel("sum_parts", sumParts, {"parts (2, P, C)", "out (2, C), dgamma and dbeta"},
                                     {field("columns", &SumConfig::columns, "columns of a program")});

// Prints the variance of 64 numbers, half of them `offset` and half `offset` + 1, by two formulas. It is 1/4.
static void variances(Tile offset) {
  Tile x = offset + cast(iota(64) % 2, f32); // (64)
  Tile mean = sum(x) / 64;
  Tile centred = x - mean; // (64)
  print("mean((x - mean)^2)", sum(centred * centred) / 64);
  print("mean(x^2) - mean^2", sum(x * x) / 64 - mean * mean);
}
const Kernel variancesKernel = kernel("variances", variances, {"offset f32"});
