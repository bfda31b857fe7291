// Chapter 9: dropout (Srivastava et al., 2014) without a mask in memory. y = x ∘ m / (1 − p), where the mask m is 0
// with probability p. The random number of an element follows from a seed and from the element's place in the whole
// tensor.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct DropoutConfig {
  int rows = 4, columns = 64; // of a program's tile; columns are a multiple of 4
  bool four = false;          // one Philox number serves four elements
};
static std::vector<Field> fields() {
  return {field("rows", &DropoutConfig::rows, "rows of a tile"),
          field("columns", &DropoutConfig::columns, "columns of a tile"),
          field("four", &DropoutConfig::four, "one Philox number serves four elements")};
}

// Random bits of the tile at (n, c) of a tensor with C columns. Philox-4x32-10 (Salmon et al., 2011) maps a seed and a
// counter to four words of 32 bits. The counter is that of the element, or that of a group of four neighbours in a row.
static Tile bitsAt(Tile seed, Tile n, Tile c, Tile C, const DropoutConfig &cfg) {
  Tile row = unsqueeze(n + iota(cfg.rows, i64), -1); // (ROWS, 1)
  if (!cfg.four)
    return random_bits(seed, row * C + (c + iota(cfg.columns, i64)));        // (ROWS, COLUMNS)
  Tile group = row * cdiv(C, 4) + (c / 4 + iota(cfg.columns / 4, i64));      // (ROWS, COLUMNS / 4)
  const auto [w0, w1, w2, w3] = random_words(seed, group);                   // (ROWS, COLUMNS / 4) each
  return reshape(join(join(w0, w2), join(w1, w3)), {cfg.rows, cfg.columns}); // w0, w1, w2, w3 of group 0, of group 1, …
}

// x, y (N, C). The same kernel is the backward pass: dx = dy ∘ m / (1 − p), with the seed of the forward pass.
static void dropout(View x, View y, Tile p, Tile seed, DropoutConfig cfg) {
  Tile n = program_id(0) * cfg.rows, c = program_id(1) * cfg.columns;
  Tile bits = bitsAt(seed, n, c, x.dim(1), cfg) & 0xFFFFFF; // (ROWS, COLUMNS), 24 bits
  Tile kept = bits >= cast(p * 0x1p24, i32);                // (ROWS, COLUMNS)
  Tile value = load(x, {n, c}, {cfg.rows, cfg.columns});    // (ROWS, COLUMNS)
  store(y, {n, c}, where(kept, value / (1 - p), 0.0));
}
const Kernel dropoutKernel = kernel("dropout", dropout, {"x (N, C)", "y (N, C)", "p f32", "seed i64"}, fields());
