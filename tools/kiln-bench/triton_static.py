#!/usr/bin/env python3
"""Compares the code of Triton's compiler with Kiln's, for the problems of a GPT-2 step or for users' kernels:

    triton_static.py static|users [--bench PROGRAM] [--only TEXT] [FLAG OF kiln-bench...]

Compiles the kernels below, or those of triton_users.py, with Triton, without a GPU, and runs `kiln-bench static|users` with a
row for each: the problem, its tiles, registers, stack and shared memory, and the instructions of its main loop by class. Needs a
Python with triton, whose wheel brings NVIDIA's ptxas, nvdisasm and cuobjdump. PROGRAM is a built kiln-bench, which reads the
disassembly of both compilers' kernels, so that they are counted alike.

Arguments have the facts that Triton's own launcher would state for aligned tensors whose extents are multiples of 16. Problems
have the names of kiln-bench. `--only TEXT` compiles the problems that contain TEXT.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="triton-static-"))
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import driver

PROGRAMS = Path(triton.__file__).parent / "backends/nvidia/bin"
LOG2E = tl.constexpr(1.4426950408889634)


# --- Kernels ---------------------------------------------------------------------------------------------------------


@triton.jit
def matmul(a, b, c, M, N, K, pitch_a, pitch_b, pitch_c, TA: tl.constexpr, TB: tl.constexpr, BM: tl.constexpr,
           BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    """C = op(A) op(B), sums in ACC. Programs walk down groups of 8 rows of tiles, for the level-2 cache."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = tl.program_id(0) // (8 * columns)
    inside = tl.program_id(0) % (8 * columns)
    height = min(rows - group * 8, 8)
    m = ((group * 8 + inside % height) * BM + tl.arange(0, BM)) % M
    n = ((inside // height) * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    at_a = a + (k[None, :] * pitch_a + m[:, None] if TA else m[:, None] * pitch_a + k[None, :])
    at_b = b + (n[None, :] * pitch_b + k[:, None] if TB else k[:, None] * pitch_b + n[None, :])
    acc = tl.zeros((BM, BN), ACC)
    for step in range(0, tl.cdiv(K, BK)):
        left = K - step * BK
        x = tl.load(at_a, mask=k[None, :] < left, other=0)  # (BM, BK)
        y = tl.load(at_b, mask=k[:, None] < left, other=0)  # (BK, BN)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        at_a += BK * pitch_a if TA else BK
        at_b += BK if TB else BK * pitch_b
    m = (group * 8 + inside % height) * BM + tl.arange(0, BM)
    n = (inside // height) * BN + tl.arange(0, BN)
    tl.store(c + m[:, None] * pitch_c + n[None, :], acc.to(c.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def scores(query, key, m, n, T, scale, CAUSAL: tl.constexpr):
    """(BM, BN) scores in powers of two; those that do not count are far below all others."""
    s = tl.dot(query, tl.trans(key)) * (scale * LOG2E)
    return tl.where(m[:, None] >= n[None, :] if CAUSAL else (n < T)[None, :], s, -1.0e6)


@triton.jit
def attention(q, k, v, o, lse, scale, T, pitch, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
              MASKED: tl.constexpr):
    """Online softmax over blocks of keys. Without MASKED every block counts whole: an interior block."""
    base, d = tl.program_id(1) * D, tl.arange(0, D)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    query = tl.load(q + base + m[:, None] * pitch + d[None, :], mask=(m < T)[:, None], other=0)  # (BM, D)
    top = tl.full((BM,), -1.0e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM if CAUSAL else T, BN):
        n = start + tl.arange(0, BN)
        at = base + n[:, None] * pitch + d[None, :]
        if MASKED:
            s = scores(query, tl.load(k + at, mask=(n < T)[:, None], other=0), m, n, T, scale, CAUSAL)  # (BM, BN)
        else:
            s = tl.dot(query, tl.trans(tl.load(k + at))) * (scale * LOG2E)
        higher = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(p, axis=1)
        value = tl.load(v + at, mask=(n < T)[:, None], other=0) if MASKED else tl.load(v + at)  # (BN, D)
        acc = tl.dot(p.to(value.dtype), value, acc * shrink[:, None])
        top = higher
    inside = m < T
    tl.store(lse + tl.program_id(1) * T + m, top + tl.log2(total), mask=inside)
    tl.store(o + base + m[:, None] * pitch + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty), mask=inside[:, None])


@triton.jit
def attention_backward_keys(q, k, v, dout, lse, delta, dk, dv, scale, T, pitch, D: tl.constexpr, BM: tl.constexpr,
                            BN: tl.constexpr, CAUSAL: tl.constexpr):
    """dK and dV of one block of keys, over the blocks of queries."""
    base, row, d = tl.program_id(1) * D, tl.program_id(1) * T, tl.arange(0, D)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    keys = base + n[:, None] * pitch + d[None, :]
    key, value = tl.load(k + keys), tl.load(v + keys)  # (BN, D)
    dkey = tl.zeros((BN, D), tl.float32)
    dvalue = tl.zeros((BN, D), tl.float32)
    for start in range(tl.program_id(0) * BN if CAUSAL else 0, T, BM):
        m = start + tl.arange(0, BM)
        at = base + m[:, None] * pitch + d[None, :]
        query = tl.load(q + at)  # (BM, D)
        p = tl.exp2(tl.dot(key, tl.trans(query)) * (scale * LOG2E) - tl.load(lse + row + m)[None, :])  # (BN, BM)
        if CAUSAL:
            p = tl.where(m[None, :] >= n[:, None], p, 0.0)
        grad = tl.load(dout + at)  # (BM, D)
        dvalue = tl.dot(p.to(grad.dtype), grad, dvalue)
        ds = p * (tl.dot(value, tl.trans(grad)) - tl.load(delta + row + m)[None, :])
        dkey = tl.dot(ds.to(query.dtype), query, dkey)
    tl.store(dk + keys, (dkey * scale).to(dk.dtype.element_ty))
    tl.store(dv + keys, dvalue.to(dv.dtype.element_ty))


@triton.jit
def attention_backward_queries(q, k, v, dout, lse, delta, dq, scale, T, pitch, D: tl.constexpr, BM: tl.constexpr,
                               BN: tl.constexpr, CAUSAL: tl.constexpr):
    """dQ of one block of queries, over the blocks of keys."""
    base, row, d = tl.program_id(1) * D, tl.program_id(1) * T, tl.arange(0, D)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    queries = base + m[:, None] * pitch + d[None, :]
    query, grad = tl.load(q + queries), tl.load(dout + queries)  # (BM, D)
    top, sums = tl.load(lse + row + m), tl.load(delta + row + m)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM if CAUSAL else T, BN):
        n = start + tl.arange(0, BN)
        at = base + n[:, None] * pitch + d[None, :]
        key = tl.load(k + at)  # (BN, D)
        p = tl.exp2(tl.dot(query, tl.trans(key)) * (scale * LOG2E) - top[:, None])  # (BM, BN)
        if CAUSAL:
            p = tl.where(m[:, None] >= n[None, :], p, 0.0)
        ds = p * (tl.dot(grad, tl.trans(tl.load(v + at))) - sums[:, None])
        acc = tl.dot(ds.to(key.dtype), key, acc)
    tl.store(dq + queries, (acc * scale).to(dq.dtype.element_ty))


@triton.jit
def layernorm(x, gamma, beta, out, mean, rstd, C, epsilon, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < C
    v = tl.load(x + row * C + c, mask=inside, other=0).to(tl.float32)
    mu = tl.sum(v, axis=0) / C
    centred = tl.where(inside, v - mu, 0.0)
    r = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / C + epsilon)
    tl.store(mean + row, mu)
    tl.store(rstd + row, r)
    y = centred * r * tl.load(gamma + c, mask=inside).to(tl.float32) + tl.load(beta + c, mask=inside).to(tl.float32)
    tl.store(out + row * C + c, y.to(out.dtype.element_ty), mask=inside)


@triton.jit
def cross_entropy(logits, targets, losses, V, pitch, scale, BLOCK: tl.constexpr):
    """One row: online maximum and sum, then the gradient in the logits' place."""
    row = logits + tl.program_id(0).to(tl.int64) * pitch
    target = tl.load(targets + tl.program_id(0))
    c = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -1.0e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, V, BLOCK):
        v = tl.load(row + start + c, mask=start + c < V, other=-1.0e30).to(tl.float32)
        higher = tl.maximum(top, v)
        total = total * tl.exp(top - higher) + tl.exp(v - higher)
        top = higher
    most = tl.max(top, axis=0)
    whole = tl.sum(total * tl.exp(top - most), axis=0)
    tl.store(losses + tl.program_id(0), most + tl.log(whole) - tl.load(row + target).to(tl.float32))
    tl.debug_barrier()
    for start in range(0, V, BLOCK):
        v = tl.load(row + start + c, mask=start + c < V).to(tl.float32)
        g = (tl.exp(v - most) / whole - tl.where(start + c == target, 1.0, 0.0)) * scale
        tl.store(row + start + c, g.to(logits.dtype.element_ty), mask=start + c < V)


# --- Problems --------------------------------------------------------------------------------------------------------

TYPES = {"f32": "*fp32", "bf16": "*bf16", "f16": "*fp16", "i8": "*i8"}


def pointers(names, kind):
    return dict.fromkeys(names.split(), TYPES[kind])


def numbers(names, kind="i32"):
    return dict.fromkeys(names.split(), kind)


def products():
    """(problem, kernel, signature, constants, options) of products."""
    many = [(128, 128, 32, 4, 4), (128, 128, 64, 4, 3), (128, 256, 64, 8, 3), (128, 128, 32, 8, 3), (128, 64, 32, 8, 4),
            (64, 64, 32, 4, 4)]
    few = [many[1], many[3], many[5]]
    for dtype, layouts, tiles in [("bf16", "nn nt tn", many), ("f16", "nn nt tn", few),
                                  ("f32", "nn nt tn", [(128, 64, 32, 4, 3), (128, 128, 32, 8, 3), (64, 64, 32, 4, 3)]),
                                  ("i8", "nn nt", [(128, 64, 64, 4, 3)])]:
        for layout in layouts.split():
            result = {"i8": "*i32", "f32": "*fp32"}.get(dtype, TYPES[dtype])
            signature = pointers("a b", dtype) | {"c": result} | numbers("M N K pitch_a pitch_b pitch_c")
            for bm, bn, bk, warps, stages in tiles:
                constants = dict(TA=layout == "tn", TB=layout == "nt", BM=bm, BN=bn, BK=bk,
                                 ACC=tl.int32 if dtype == "i8" else tl.float32)
                yield f"matmul {layout}", dtype, matmul, signature, constants, (warps, stages)


def attentions():
    common = numbers("T pitch") | {"scale": "fp32"}
    for dtype in ("bf16", "f16"):
        forward = pointers("q k v o", dtype) | pointers("lse", "f32") | common
        for d, bm, bn, causal, masked, warps, stages in [(64, 128, 64, False, False, 4, 3), (64, 128, 64, True, True, 4, 3),
                                                         (64, 64, 64, True, True, 4, 3), (128, 128, 64, False, False, 8, 3),
                                                         (128, 128, 64, True, True, 8, 3)]:
            if dtype == "bf16" or d == 64:
                yield (f"attention{' causal' if causal else ''} D={d}", dtype, attention, forward,
                       dict(D=d, BM=bm, BN=bn, CAUSAL=causal, MASKED=masked), (warps, stages))
        saved = pointers("q k v dout", dtype) | pointers("lse delta", "f32") | common
        for causal in (False, True):
            word = " causal" if causal else ""
            yield (f"attention_backward_keys{word} D=64", dtype, attention_backward_keys, saved | pointers("dk dv", dtype),
                   dict(D=64, BM=64, BN=64, CAUSAL=causal), (4, 2))
            yield (f"attention_backward_queries{word} D=64", dtype, attention_backward_queries, saved | pointers("dq", dtype),
                   dict(D=64, BM=64, BN=64, CAUSAL=causal), (4, 2))


def others():
    for dtype in ("bf16", "f32"):
        for c in (768, 1024, 1600):
            yield (f"layernorm C={c}", dtype, layernorm, pointers("x gamma beta out", dtype) | pointers("mean rstd", "f32")
                   | {"C": "i32", "epsilon": "fp32"}, dict(BLOCK=triton.next_power_of_2(c)), (4, 3))
        yield ("cross_entropy", dtype, cross_entropy, pointers("logits", dtype) | {"targets": "*i32"} | pointers("losses", "f32")
               | numbers("V pitch") | {"scale": "fp32"}, dict(BLOCK=4096), (8, 3))


# --- Compiling and counting ------------------------------------------------------------------------------------------


class NoGpu:
    """What Triton asks of a driver while it compiles."""

    def get_current_target(self):
        return GPUTarget("cuda", 80, 32)

    def get_current_device(self):
        return 0


def tool(name, *arguments):
    return subprocess.run([PROGRAMS / name, *arguments], capture_output=True, text=True, check=True).stdout


def compile_to_cubin(kernel, signature, constants, arch, warps, stages):
    types = {name: "constexpr" if name in constants else signature[name] for name in kernel.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel.arg_names)
               if types[name].startswith("*") or types[name] == "i32" and name != "V"}
    values = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(fn=kernel, signature=types, attrs=aligned, constexprs=values)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps, "num_stages": stages})


MOVES = re.compile(r"\b(ld\.global|st\.global|cp\.async\.c[ag]|mma\.sync|wgmma\.mma_async)")


def moves_of_loop(ptx):
    """Products, else accesses of global memory, of the innermost loop that has most of the former, then of the latter."""
    lines = ptx.splitlines()
    labels = {line.split(":")[0].strip(): i for i, line in enumerate(lines) if re.match(r"\$\w+:", line)}
    loops = []
    for i, line in enumerate(lines):
        target = re.search(r"\bbra(?:\.uni)?\s+(\$\w+)", line)
        if target and labels.get(target[1], i) < i:
            loops.append((labels[target[1]], i))
    inner = [loop for loop in loops if not any(loop != o and loop[0] <= o[0] and o[1] <= loop[1] for o in loops)]
    found = [MOVES.findall("\n".join(lines[begin:end])) for begin, end in inner]
    counts = [(sum("mma" in each for each in names), len(names) - sum("mma" in each for each in names)) for names in found]
    return max(counts, default=(0, 0))


def unrolled(ptx, loop):
    """How many rounds of Triton's loop one round of the machine code does, for ptxas unrolls."""
    products, accesses = moves_of_loop(ptx)
    if products:
        return loop.get("mma", 0) / products
    return sum(loop.get(name, 0) for name in ("ldg", "stg", "ldgsts")) / accesses if accesses else 1


def row(bench, arch, problem, dtype, kernel, signature, constants, options, elements=None):
    """`elements` is what a round of the main loop works on, or the program where there is no loop."""
    made = compile_to_cubin(kernel, signature, constants, arch, *options)
    tiles = {name.lower(): value for name, value in constants.items() if isinstance(value, int) and not isinstance(value, bool)}
    tiles |= {"warps": options[0], "stages": options[1]}
    with tempfile.TemporaryDirectory() as folder:
        cubin, text = Path(folder, "k.cubin"), Path(folder, "k.sass")
        cubin.write_bytes(made.asm["cubin"])
        usage = tool("cuobjdump", "--dump-resource-usage", cubin)
        text.write_text(tool("nvdisasm", "-c", cubin))
        counted = json.loads(subprocess.run([bench, "static", "--read", text], capture_output=True, text=True, check=True).stdout)
    if elements:
        counted |= {"elements": elements(constants), "unrolled": unrolled(made.asm["ptx"], counted["loop"]) if "loop" in counted else 1}
    return {"problem": problem, "dtype": dtype, "arch": f"sm_{arch}", "tiles": " ".join(f"{k}={v}" for k, v in tiles.items()), **tiles,
            "registers": int(re.search(r"REG:(\d+)", usage)[1]), "stack": int(re.search(r"STACK:(\d+)", usage)[1]),
            "shared": made.metadata.shared, **counted}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=["static", "users"])
    options.add_argument("--bench", default=Path(__file__).parents[2] / "build/bin/kiln-bench")
    options.add_argument("--only", default="", help="problems that contain this text")
    options.add_argument("--device", default="simulator:sm_80")
    chosen, flags = options.parse_known_args()
    driver.set_active(NoGpu())
    if chosen.what == "users":
        import triton_users
        problems = triton_users.problems()
    else:
        problems = [*products(), *attentions(), *others()]
    arch = 90 if re.search("sm_(90|1[01])", chosen.device) else 80
    rows = [row(chosen.bench, arch, *problem) for problem in problems if chosen.only in f"{problem[0]} {problem[1]}"]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as out:
        json.dump({"triton": triton.__version__, "rows": rows}, out)
        out.flush()
        sys.exit(subprocess.run([chosen.bench, chosen.what, "--device", chosen.device, "--triton", out.name, "--nvdisasm",
                                 PROGRAMS / "nvdisasm", *flags]).returncode)


if __name__ == "__main__":
    main()
