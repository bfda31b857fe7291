// A kernel for each function of the language, which repeats it in a chain: each step reads the result of the step
// before twice. sweep.py compiles them and compares their names with the declarations of the language.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

struct SweepConfig {
  int times = 1;
};

/// The tiles of a chain: 256 numbers, positions and conditions.
struct Chain {
  View x, y;
  Tile a, i, c;
  int time = 0;

  Tile square() const { return reshape(a, {16, 16}); }
  Tile halves() const { return reshape(a, {128, 2}); }
};

template <class Step> static void sweep(View x, View y, SweepConfig cfg) {
  Tile i = iota(256), a = load(x, {0}, {256});
  Chain chain{x, y, a, i, a < 0.0f};
  for (chain.time = 0; chain.time < cfg.times; ++chain.time)
    Step{}(chain);
  store(y, {0}, chain.a + cast(chain.i, f32) + cast(chain.c, f32));
}
template <class Step> static Kernel kernelOf(const char *name, Step) {
  return kernel(name, sweep<Step>, {"x", "y"}, {field("times", &SweepConfig::times)});
}

/// A chain of a function of numbers, of conditions, or of integers.
#define NUMBERS(name, ...) kernelOf("step_" #name, [](Chain &t) { t.a = t.a + (__VA_ARGS__); })
#define INTEGERS(name, ...) kernelOf("step_" #name, [](Chain &t) { t.i = t.i + (__VA_ARGS__); })
#define CONDITIONS(name, ...) kernelOf("step_" #name, [](Chain &t) { t.c = t.c ^ (__VA_ARGS__); })
#define EFFECT(name, ...) kernelOf("step_" #name, [](Chain &t) { __VA_ARGS__; })

static Tile least(Tile x, Tile y) { return where(x < y, x, y); }

const Kernel kernels[] = {
#define KILN_FUNCTION(name, ...) NUMBERS(name, name(t.a)),
#define KILN_FUNCTION_OF_TWO(name, ...) NUMBERS(name, name(t.a, t.a)),
#define KILN_COMPOSITE_FUNCTION(name, ...) NUMBERS(name, name(t.a)),
#define KILN_COMPOSITE_FUNCTION_OF_TWO(name, ...) NUMBERS(name, name(t.a, t.a)),
#include "dialect/tile/Functions.def"

    INTEGERS(program_id, cast(program_id(0), i32)),
    INTEGERS(num_programs, cast(num_programs(0), i32)),
    NUMBERS(zeros, zeros(f32, {256})),
    NUMBERS(full, full(f32, {256}, sum(t.a))),
    INTEGERS(constant, sum(constant(i32, {2}, {1, double(t.time)}))),
    INTEGERS(iota, iota(256)),
    NUMBERS(abs, abs(t.a)),
    NUMBERS(min, min(t.a, t.a * 2.0f)),
    NUMBERS(max, max(t.a, flip(t.a))),
    NUMBERS(fma, fma(t.a, t.a, t.a)),
    NUMBERS(clamp, clamp(t.a, 0.0f, t.a)),
    NUMBERS(floor, floor(t.a)),
    NUMBERS(ceil, ceil(t.a)),
    NUMBERS(round, round(t.a)),
    NUMBERS(trunc, trunc(t.a)),
    NUMBERS(sqrt, sqrt(t.a)),
    NUMBERS(divide, divide(t.a, t.a, Accuracy::full)),
    NUMBERS(where, where(t.i < t.time, t.a, flip(t.a))),
    NUMBERS(cast, cast(cast(t.a, bf16), f32)),
    NUMBERS(stochastic_round, cast(stochastic_round(t.a, bf16, bitcast(t.a, u32)), f32)),
    NUMBERS(bitcast, bitcast(bitcast(t.a, i32) + 1, f32)),
    NUMBERS(pack, unpack(pack(t.a), f32)),
    NUMBERS(unpack, flip(unpack(pack(t.a), f32))),
    NUMBERS(copysign, copysign(t.a, flip(t.a))),
    NUMBERS(sign, sign(t.a)),
    NUMBERS(sigmoid, sigmoid(t.a)),
    NUMBERS(silu, silu(t.a)),
    NUMBERS(softplus, softplus(t.a)),
    NUMBERS(softmax, softmax(t.a)),
    CONDITIONS(isnan, isnan(where(t.c, t.a, 1.0f))),
    CONDITIONS(isinf, isinf(where(t.c, t.a, 1.0f))),
    CONDITIONS(isfinite, isfinite(where(t.c, t.a, 1.0f))),
    INTEGERS(cdiv, cdiv(t.i, 3)),
    INTEGERS(mulhi, mulhi(t.i, t.i)),
    INTEGERS(popcount, popcount(t.i)),
    INTEGERS(clz, clz(t.i)),
    INTEGERS(brev, brev(t.i)),

    NUMBERS(reshape, reshape(transpose(t.square()), {256})),
    NUMBERS(transpose, reshape(transpose(reshape(t.a, {4, 64})), {256}) + reshape(transpose(t.square()), {256})),
    NUMBERS(broadcast, broadcast(extract(t.a, {t.time % 256}, {1}), {256})),
    NUMBERS(unsqueeze, reshape(unsqueeze(reduce_max(t.square()), 1) + t.square(), {256})),
    NUMBERS(squeeze, reshape(broadcast(squeeze(extract(t.square(), {0, 0}, {1, 16}), 0), {16, 16}), {256})),
    NUMBERS(roll, roll(t.a, 1 << t.time % 8)),
    NUMBERS(flip, flip(t.a)),
    NUMBERS(extract, reshape(broadcast(extract(t.halves(), {0, 1}, {128, 1}), {128, 2}), {256})),
    NUMBERS(concat, concat({extract(t.a, {128}, {128}), extract(t.a, {0}, {128})})),
    NUMBERS(insert, insert(t.a, extract(t.a, {0}, {128}), {128})),
    NUMBERS(pad, pad(extract(t.a, {1}, {255}), {1}, {0}, 0.0f)),
    NUMBERS(split, concat({split(t.halves())[1], split(t.halves())[0]})),
    NUMBERS(join, reshape(join(extract(t.a, {0}, {128}), extract(t.a, {128}, {128})), {256})),
    NUMBERS(interleave, interleave(extract(t.a, {0}, {128}), extract(t.a, {128}, {128}))),

    NUMBERS(sum, sum(t.a)),
    NUMBERS(prod, prod(t.a)),
    NUMBERS(reduce_max, reduce_max(t.a)),
    NUMBERS(reduce_min, reduce_min(t.a)),
    INTEGERS(reduce_and, reduce_and(t.i)),
    INTEGERS(reduce_or, reduce_or(t.i)),
    INTEGERS(reduce_xor, reduce_xor(t.i)),
    INTEGERS(argmax, argmax(t.i)),
    INTEGERS(argmin, argmin(t.i)),
    NUMBERS(max_at, max_at(t.a)[0]),
    NUMBERS(min_at, min_at(t.a)[0]),
    CONDITIONS(any, any(t.c)),
    CONDITIONS(all, all(t.c)),
    NUMBERS(mean, mean(t.a)),
    NUMBERS(var, var(t.a)),
    NUMBERS(reduce, reduce(t.a, 0, least)),
    NUMBERS(cumsum, cumsum(t.a)),
    NUMBERS(cumprod, cumprod(t.a)),
    NUMBERS(cummax, cummax(t.a)),
    NUMBERS(cummin, cummin(t.a)),
    INTEGERS(cumand, cumand(t.i)),
    INTEGERS(cumor, cumor(t.i)),
    INTEGERS(cumxor, cumxor(t.i)),
    NUMBERS(scan, scan(t.a, 0, least)),
    NUMBERS(sort, sort(t.a)),
    NUMBERS(sort_at, sort_at(t.a)[0]),
    NUMBERS(topk, concat({topk(t.a, 128)[0], extract(t.a, {0}, {128})})),
    NUMBERS(gather, gather(t.a, t.i % 256)),
    INTEGERS(histogram, histogram(t.i % 256, 256)),
    NUMBERS(dot, reshape(dot(t.square(), t.square()), {256})),
    NUMBERS(dot_scaled, reshape(dot_scaled(cast(broadcast(reshape(t.a, {1, 256}), {16, 256}), f8e4m3),
                                           full(u8, {16, 8}, 127),
                                           cast(broadcast(reshape(t.a, {256, 1}), {256, 16}), f8e4m3),
                                           full(u8, {8, 16}, 127)),
                                {256})),
    INTEGERS(random_bits, cast(random_bits(1, t.i), i32)),
    INTEGERS(random_words, cast(random_words(1, t.i)[3], i32)),
    NUMBERS(random, random(1, cast(t.a, i32))),
    NUMBERS(random_normal, random_normal(1, cast(t.a, i32))),

    NUMBERS(load, load(t.x, {cast(t.a, i32)})),
    INTEGERS(atomic_add, cast(atomic_add(t.y, {t.i}, cast(t.i, f32)), i32)),
    INTEGERS(atomic_min, cast(atomic_min(t.y, {t.i}, cast(t.i, f32)), i32)),
    INTEGERS(atomic_max, cast(atomic_max(t.y, {t.i}, cast(t.i, f32)), i32)),
    INTEGERS(atomic_exchange, cast(atomic_exchange(t.y, {t.i}, cast(t.i, f32)), i32)),
    INTEGERS(atomic_load, cast(atomic_load(t.y, {t.i}), i32)),
    EFFECT(store, store(t.y, {t.i * (t.time + 1)}, t.a)),
    EFFECT(atomic_store, atomic_store(t.y, {t.i * (t.time + 1)}, t.a)),
    EFFECT(print, print("a", sum(t.a))),
    EFFECT(device_assert, device_assert(t.i < t.time + 256, "expected a small number")),
    EFFECT(assume, assume(sum(t.i) < t.time)),
    EFFECT(range, for (Tile k : range(0, t.x.dim(0), 256)) t.a = t.a + load(t.x, {k}, {256})),
    EFFECT(repeat_while,
           for (Tile k : repeat_while([&] { return sum(t.a) < 1.0f; })) t.a = t.a + cast(k, f32)),
    EFFECT(if_, if_(sum(t.i) < t.time, [&] { t.a = flip(t.a); })),
    EFFECT(continue_if, for (Tile k : range(0, t.x.dim(0), 256)) {
      continue_if(k < t.time);
      t.a = t.a + 1.0f;
    }),
    EFFECT(break_if, for (Tile k : range(0, t.x.dim(0), 256)) {
      break_if(k < t.time);
      t.a = t.a + 1.0f;
    }),
    EFFECT(return_if, return_if(sum(t.a) < float(t.time))),
};
