// Chapter 11: narrow floating-point types, and the remedies for their rounding: f32 accumulators, a loss scale, and
// stochastic rounding.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

enum class Format { f32, bf16, f16 };
struct PrecisionConfig {
  Format format = Format::bf16;
  Precision precision = Precision::ieee; // of f32 operands of dot
  bool stochastic = false;               // rounding of updated weights
  int block = 32;
};
static std::vector<Field> fields() {
  return {field("format", &PrecisionConfig::format, {"f32", "bf16", "f16"}, "type of operands and weights"),
          field("precision", &PrecisionConfig::precision, precisionNames, "rounding of f32 operands of dot"),
          field("stochastic", &PrecisionConfig::stochastic, "rounds updated weights stochastically"),
          field("block", &PrecisionConfig::block, "rows and columns of a tile")};
}
static Type toType(Format format) { return format == Format::f32 ? f32 : format == Format::bf16 ? bf16 : f16; }

// c = a · b with operands in the format and an accumulator in f32. a (M, K), b (K, N), c (M, N), all f32 in memory.
static void product(View a, View b, View c, PrecisionConfig cfg) {
  const int64_t B = cfg.block;
  const Type type = toType(cfg.format);
  Tile m = program_id(0) * B, n = program_id(1) * B;
  Tile acc = zeros(f32, {B, B}); // (B, B)
  for (Tile k : range(0, a.dim(1), B)) {
    Tile a_k = cast(load(a, {m, k}, {B, B}), type); // (B, B)
    Tile b_k = cast(load(b, {k, n}, {B, B}), type); // (B, B)
    acc = dot(a_k, b_k, acc, cfg.precision);        // (B, B)
  }
  store(c, {m, n}, acc);
}
const Kernel productKernel = kernel("product", product, {"a (M, K)", "b (K, N)", "c (M, N)"}, fields());

// Prints x as each format holds it, and as f16 holds it between a multiplication by the loss scale and a division.
static void formats(Tile x, Tile scale) {
  const auto rounded = [](Tile value, Type type) { return cast(cast(value, type), f32); };
  print("bf16", rounded(x, bf16));
  print("f16", rounded(x, f16));
  print("f16 with a loss scale", rounded(x * scale, f16) / scale);
}
const Kernel formatsKernel = kernel("formats", formats, {"x f32", "scale f32"});

// One of the two neighbours of x (f32) in bf16, the nearer one with the greater probability: 16 random bits are added
// below the 16 upper bits, which are the bf16, and may carry into them. The mean of the result is x.
static Tile roundStochastically(Tile x, Tile bits) {
  return bitcast((bitcast(x, i32) + (bits & 0xFFFF)) & ~0xFFFF, f32);
}

// w += step, `count` times, where w has 8 significant bits: bf16, as numbers in f32. w (N).
static void updates(View w, Tile step, Tile count, Tile seed, PrecisionConfig cfg) {
  Tile i = program_id() * cfg.block + iota(cfg.block, i64); // (BLOCK)
  Tile x = load(w, {i});                                    // (BLOCK)
  for (Tile t : range(count)) {
    Tile sum = x + step; // (BLOCK) f32
    if (cfg.stochastic)
      x = roundStochastically(sum, random_bits(seed, t * w.dim(0) + i));
    else
      x = cast(cast(sum, bf16), f32);
  }
  store(w, {i}, x);
}
const Kernel updatesKernel = kernel("updates", updates, {"w (N)", "step f32", "count i64", "seed i64"}, fields());
