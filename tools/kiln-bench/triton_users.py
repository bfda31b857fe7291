"""Users' kernels in Triton, for triton_static.py: the same problems as in tools/kiln-bench/users, each with four configs."""

from triton_static import TYPES, numbers, pointers
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)

# --- Rows ------------------------------------------------------------------------------------------------------------


@triton.jit
def rms_norm(x, gamma, y, C, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < C
    v = tl.load(x + row * C + c, mask=inside, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / C + 1e-6)
    tl.store(y + row * C + c, (v * scale * tl.load(gamma + c, mask=inside, other=0).to(tl.float32)).to(y.dtype.element_ty), mask=inside)


@triton.jit
def user_softmax(x, y, C, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < C
    v = tl.load(x + row * C + c, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * C + c, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=inside)


@triton.jit
def group_norm(x, gamma, beta, y, C, S, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    c, s = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS), tl.arange(0, BLOCK)
    at = (tl.program_id(1) * C + c)[:, None] * S + s[None, :]
    inside = (s < S)[None, :]
    v = tl.load(x + at, mask=inside, other=0).to(tl.float32)
    count = CHANNELS * S
    centred = tl.where(inside, v - tl.sum(v) / count, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred) / count + 1e-5)
    factor, shift = tl.load(gamma + c).to(tl.float32), tl.load(beta + c).to(tl.float32)
    tl.store(y + at, (centred * scale * factor[:, None] + shift[:, None]).to(y.dtype.element_ty), mask=inside)


@triton.jit
def kl_loss(p, q, losses, gradient, scale, C, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, C, BLOCK):
        at, inside = row * C + start + c, start + c < C
        lp = tl.load(p + at, mask=inside, other=0).to(tl.float32)
        lq = tl.load(q + at, mask=inside, other=-float("inf")).to(tl.float32)
        weight = tl.exp(lq)
        total += tl.where(lq > -float("inf"), weight * (lq - lp), 0.0)
        tl.store(gradient + at, (weight * -scale).to(gradient.dtype.element_ty), mask=inside)
    tl.store(losses + row, tl.sum(total, axis=0))


@triton.jit
def largest(x, values, places, C, K: tl.constexpr, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * C + c, mask=c < C, other=-float("inf"))
    for i in tl.static_range(K):
        top, place = tl.max(v, axis=0, return_indices=True)
        tl.store(values + row * K + i, top)
        tl.store(places + row * K + i, place)
        v = tl.where(c == place, -float("inf"), v)


# --- Elements and their neighbours -----------------------------------------------------------------------------------


@triton.jit
def dropout(x, y, seed, rate, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    stays = tl.rand(seed, i) >= rate
    v = tl.load(x + i, mask=i < n, other=0).to(tl.float32)
    tl.store(y + i, tl.where(stays, v * (1 / (1 - rate)), 0.0).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def rope(x, cosines, sines, y, T, H, HALF: tl.constexpr, BT: tl.constexpr):
    t, d = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, HALF)
    inside = (t < T)[:, None]
    turn = t[:, None] * HALF + d[None, :]
    at = ((tl.program_id(2) * H + tl.program_id(1)) * T + t)[:, None] * (2 * HALF) + d[None, :]
    c, s = tl.load(cosines + turn, mask=inside), tl.load(sines + turn, mask=inside)
    left, right = tl.load(x + at, mask=inside).to(tl.float32), tl.load(x + at + HALF, mask=inside).to(tl.float32)
    tl.store(y + at, (left * c - right * s).to(y.dtype.element_ty), mask=inside)
    tl.store(y + at + HALF, (right * c + left * s).to(y.dtype.element_ty), mask=inside)


@triton.jit
def stencil(x, y, centre, side, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i, j = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None], (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    at = x + i * N + j
    inside = (i < M) & (j < N)
    up = tl.load(at - N, mask=inside & (i > 0), other=0)
    down = tl.load(at + N, mask=(i < M - 1) & (j < N), other=0)
    left = tl.load(at - 1, mask=inside & (j > 0), other=0)
    right = tl.load(at + 1, mask=(i < M) & (j < N - 1), other=0)
    middle = tl.load(at, mask=inside, other=0)
    tl.store(y + i * N + j, middle * centre + (up + down + left + right) * side, mask=inside)


@triton.jit
def convolve(x, w, bias, y, T, D, BT: tl.constexpr, BD: tl.constexpr):
    d, t = tl.program_id(0) * BD + tl.arange(0, BD), tl.program_id(1) * BT + tl.arange(0, BT)
    inside = d < D
    base = tl.program_id(2) * T * D
    acc = tl.zeros((BT, BD), tl.float32) + tl.load(bias + d, mask=inside).to(tl.float32)[None, :]
    for i in tl.static_range(4):
        at = t + (i - 3)
        v = tl.load(x + base + at[:, None] * D + d[None, :], mask=((at >= 0) & (at < T))[:, None] & inside[None, :], other=0)
        acc += v.to(tl.float32) * tl.load(w + i * D + d, mask=inside).to(tl.float32)[None, :]
    acc = acc / (1 + tl.exp(-acc))
    tl.store(y + base + t[:, None] * D + d[None, :], acc.to(y.dtype.element_ty), mask=(t < T)[:, None] & inside[None, :])


# --- Products --------------------------------------------------------------------------------------------------------


@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def tanh(x):
    return 2 * sigmoid(2 * x) - 1


@triton.jit
def swiglu(x, gate, up, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = (tl.program_id(0) * BM + tl.arange(0, BM)) % M, (tl.program_id(1) * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    at_x, at_w = x + m[:, None] * K + k[None, :], k[:, None] * N + n[None, :]
    g = tl.zeros((BM, BN), tl.float32)
    u = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        left = K - step * BK
        v = tl.load(at_x, mask=k[None, :] < left, other=0)
        g = tl.dot(v, tl.load(gate + at_w, mask=k[:, None] < left, other=0), g)
        u = tl.dot(v, tl.load(up + at_w, mask=k[:, None] < left, other=0), u)
        at_x += BK
        at_w += BK * N
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    result = g * sigmoid(g) * u
    tl.store(y + m[:, None] * N + n[None, :], result.to(y.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def scaled_product(x, w, scales, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = (tl.program_id(0) * BM + tl.arange(0, BM)) % M, (tl.program_id(1) * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    at_x, at_w = x + m[:, None] * K + k[None, :], w + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        left = K - step * BK
        v = tl.load(at_x, mask=k[None, :] < left, other=0)
        scale = tl.load(scales + step * N + n)
        weights = tl.load(at_w, mask=k[:, None] < left, other=0).to(tl.float32) * scale[None, :]
        acc = tl.dot(v, weights.to(v.dtype), acc)
        at_x += BK
        at_w += BK * N
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    tl.store(y + m[:, None] * N + n[None, :], acc.to(y.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def gates(x, w, m, n, k, M, H, K, i, f, c, o, BK: tl.constexpr):
    at_x, at_w = x + m[:, None] * K + k[None, :], w + k[:, None] * H + n[None, :]
    for step in range(0, tl.cdiv(K, BK)):
        left = K - step * BK
        v = tl.load(at_x, mask=k[None, :] < left, other=0)
        i = tl.dot(v, tl.load(at_w, mask=k[:, None] < left, other=0), i)
        f = tl.dot(v, tl.load(at_w + K * H, mask=k[:, None] < left, other=0), f)
        c = tl.dot(v, tl.load(at_w + 2 * K * H, mask=k[:, None] < left, other=0), c)
        o = tl.dot(v, tl.load(at_w + 3 * K * H, mask=k[:, None] < left, other=0), o)
        at_x += BK
        at_w += BK * H
    return i, f, c, o


@triton.jit
def lstm_step(x, h, cell, wx, wh, bias, h_next, cell_next, M, X, H, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    m, n, k = rm % M, rn % H, tl.arange(0, BK)
    zero = tl.zeros((BM, BN), tl.float32)
    i, f = zero + tl.load(bias + n)[None, :], zero + tl.load(bias + H + n)[None, :]
    c, o = zero + tl.load(bias + 2 * H + n)[None, :], zero + tl.load(bias + 3 * H + n)[None, :]
    i, f, c, o = gates(x, wx, m, n, k, M, H, X, i, f, c, o, BK)
    i, f, c, o = gates(h, wh, m, n, k, M, H, H, i, f, c, o, BK)
    at, inside = rm[:, None] * H + rn[None, :], (rm < M)[:, None] & (rn < H)[None, :]
    now = sigmoid(f) * tl.load(cell + at, mask=inside) + sigmoid(i) * tanh(c)
    tl.store(cell_next + at, now, mask=inside)
    tl.store(h_next + at, (sigmoid(o) * tanh(now)).to(h_next.dtype.element_ty), mask=inside)


@triton.jit
def persistent_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(N, BN)
    k = tl.arange(0, BK)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0)):
        rm, rn = tile // columns * BM + tl.arange(0, BM), tile % columns * BN + tl.arange(0, BN)
        m, n = rm % M, rn % N
        at_a, at_b = a + m[:, None] * K + k[None, :], b + k[:, None] * N + n[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(0, tl.cdiv(K, BK)):
            left = K - step * BK
            acc = tl.dot(tl.load(at_a, mask=k[None, :] < left, other=0), tl.load(at_b, mask=k[:, None] < left, other=0), acc)
            at_a += BK
            at_b += BK * N
        tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


# --- Attention -------------------------------------------------------------------------------------------------------


@triton.jit
def window_attention(q, k, v, slopes, o, scale, T, H, D: tl.constexpr, WINDOW: tl.constexpr, GROUP: tl.constexpr,
                     BM: tl.constexpr, BN: tl.constexpr):
    head, batch = tl.program_id(1), tl.program_id(2)
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    slope, unit = tl.load(slopes + head) * LOG2E, scale * LOG2E
    rows = (batch * H + head) * T * D + m[:, None] * D + d[None, :]
    keys = (batch * (H // GROUP) + head // GROUP) * T * D
    query = tl.load(q + rows, mask=(m < T)[:, None], other=0)
    top = tl.full((BM,), -1.0e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    first = tl.maximum(tl.program_id(0) * BM - WINDOW + 1, 0) // BN * BN
    for start in range(first, tl.minimum(tl.program_id(0) * BM + BM, T), BN):
        n = start + tl.arange(0, BN)
        at = keys + n[:, None] * D + d[None, :]
        far = m[:, None] - n[None, :]
        s = tl.dot(query, tl.trans(tl.load(k + at, mask=(n < T)[:, None], other=0))) * unit - far.to(tl.float32) * slope
        s = tl.where((far >= 0) & (far < WINDOW), s, -float("inf"))
        higher = tl.maximum(top, tl.max(s, axis=1))
        p, shrink = tl.exp2(s - higher[:, None]), tl.exp2(top - higher)
        total = total * shrink + tl.sum(p, axis=1)
        value = tl.load(v + at, mask=(n < T)[:, None], other=0)
        acc = tl.dot(p.to(value.dtype), value, acc * shrink[:, None])
        top = higher
    tl.store(o + rows, (acc / total[:, None]).to(o.dtype.element_ty), mask=(m < T)[:, None])


@triton.jit
def paged_attention(q, k, v, table, lengths, o, scale, H, pages, D: tl.constexpr, BM: tl.constexpr, PAGE: tl.constexpr,
                    BN: tl.constexpr):
    head, batch = tl.program_id(0), tl.program_id(1)
    length, unit = tl.load(lengths + batch), scale * LOG2E
    m, d, j = tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    rows = ((batch * H + head) * BM + m)[:, None] * D + d[None, :]
    query = tl.load(q + rows)
    top = tl.full((BM,), -1.0e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        n = start + j
        block = tl.load(table + batch * pages + n // PAGE, mask=n < length, other=0)
        at = (((block.to(tl.int64) * H + head) * PAGE + n % PAGE) * D)[:, None] + d[None, :]
        key = tl.load(k + at, mask=(n < length)[:, None], other=0)
        s = tl.where((n < length)[None, :], tl.dot(query, tl.trans(key)) * unit, -float("inf"))
        higher = tl.maximum(top, tl.max(s, axis=1))
        p, shrink = tl.exp2(s - higher[:, None]), tl.exp2(top - higher)
        total = total * shrink + tl.sum(p, axis=1)
        value = tl.load(v + at, mask=(n < length)[:, None], other=0)
        acc = tl.dot(p.to(value.dtype), value, acc * shrink[:, None])
        top = higher
    tl.store(o + rows, (acc / total[:, None]).to(o.dtype.element_ty))


# --- Sequences -------------------------------------------------------------------------------------------------------


@triton.jit
def selective_scan(x, delta, a, b, c, y, T, D, S: tl.constexpr, BD: tl.constexpr):
    d, s = tl.program_id(0) * BD + tl.arange(0, BD), tl.arange(0, S)
    inside = d < D
    decay = tl.load(a + d[:, None] * S + s[None, :], mask=inside[:, None], other=0)
    state = tl.zeros((BD, S), tl.float32)
    row = tl.program_id(1) * T
    for t in range(0, T):
        step = tl.load(delta + (row + t) * D + d, mask=inside, other=0)[:, None]
        value = tl.load(x + (row + t) * D + d, mask=inside, other=0)[:, None]
        state = state * tl.exp2(step * decay) + step * value * tl.load(b + (row + t) * S + s)[None, :]
        tl.store(y + (row + t) * D + d, tl.sum(state * tl.load(c + (row + t) * S + s)[None, :], axis=1), mask=inside)


@triton.jit
def running_sum(x, y, T, D, BLOCK: tl.constexpr):
    d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = d < D
    total = tl.zeros((BLOCK,), tl.float32)
    for t in range(0, T):
        at = (tl.program_id(1) * T + t) * D + d
        total += tl.load(x + at, mask=inside, other=0).to(tl.float32)
        tl.store(y + at, total.to(y.dtype.element_ty), mask=inside)


@triton.jit
def sort_rows(x, y, C: tl.constexpr):
    at = tl.program_id(0) * C + tl.arange(0, C)
    tl.store(y + at, tl.sort(tl.load(x + at)))


# --- Lookups ---------------------------------------------------------------------------------------------------------


@triton.jit
def sparse_rows(starts, columns, values, x, y, D, BLOCK: tl.constexpr):
    row, d = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for e in range(tl.load(starts + row), tl.load(starts + row + 1)):
        acc += tl.load(values + e) * tl.load(x + tl.load(columns + e).to(tl.int64) * D + d, mask=d < D, other=0)
    tl.store(y + row * D + d, acc, mask=d < D)


@triton.jit
def bags(ids, table, y, B, L, D: tl.constexpr, BAGS: tl.constexpr):
    b, d = tl.program_id(0) * BAGS + tl.arange(0, BAGS), tl.arange(0, D)
    inside = b < B
    acc = tl.zeros((BAGS, D), tl.float32)
    for i in range(0, L):
        row = tl.load(ids + b * L + i, mask=inside, other=0).to(tl.int64)
        acc += tl.load(table + row[:, None] * D + d[None, :], mask=inside[:, None], other=0).to(tl.float32)
    tl.store(y + b[:, None] * D + d[None, :], (acc / L).to(y.dtype.element_ty), mask=inside[:, None])


@triton.jit
def histogram(x, counts, n, CHUNK: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    begin = tl.program_id(0) * CHUNK
    bins = tl.arange(0, BINS)
    total = tl.zeros((BINS,), tl.int32)
    for start in range(begin, min(begin + CHUNK, n), BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n, other=-1)
        total += tl.sum((v[:, None] == bins[None, :]).to(tl.int32), axis=0)
    tl.atomic_add(counts + bins, total)


# --- Problems --------------------------------------------------------------------------------------------------------


def over(warps, **constants):
    return [(constants, each) for each in warps]


def blocks(fn, pairs):
    return [({"BLOCK": block}, warps) for block, warps in pairs]


def tiles(several, **more):
    return [(dict(zip(("BM", "BN", "BK"), tile[:-1])) | more, tile[-1]) for tile in several]


def configured():
    """(kernel, signature, [(constants, (warps, stages) or warps)], elements of a round or program by the constants)."""
    b16, f32, i32 = (lambda names: pointers(names, "bf16")), (lambda names: pointers(names, "f32")), lambda names: dict.fromkeys(names.split(), "*i32")
    yield rms_norm, b16("x gamma y") | numbers("C"), over([1, 2, 4, 8], BLOCK=1024), lambda c: 1024
    yield user_softmax, b16("x y") | numbers("C"), over([1, 2, 4, 8], BLOCK=1024), lambda c: 1000
    yield (group_norm, b16("x gamma beta y") | numbers("C S"), over([1, 2, 4, 8], CHANNELS=8, BLOCK=256), lambda c: 8 * 256)
    yield (kl_loss, b16("p q gradient") | f32("losses") | numbers("scale", "fp32") | numbers("C"),
           [({"BLOCK": 1024}, 4), ({"BLOCK": 2048}, 4), ({"BLOCK": 4096}, 8), ({"BLOCK": 2048}, 8)], lambda c: c["BLOCK"])
    yield (largest, f32("x values") | i32("places") | numbers("C"), over([1, 2, 4, 8], K=8, BLOCK=1024), lambda c: 1024)
    yield (dropout, b16("x y") | {"seed": "i32", "rate": "fp32", "n": "i32"},
           [({"BLOCK": 512}, 4), ({"BLOCK": 1024}, 4), ({"BLOCK": 2048}, 4), ({"BLOCK": 2048}, 8)], lambda c: c["BLOCK"])
    yield (rope, b16("x y") | f32("cosines sines") | numbers("T H"),
           [({"BT": bt, "HALF": 64}, warps) for bt, warps in ((16, 4), (32, 4), (64, 4), (32, 8))], lambda c: c["BT"] * 128)
    yield (stencil, f32("x y") | numbers("centre side", "fp32") | numbers("M N"),
           tiles([(8, 128, 4), (16, 128, 4), (16, 256, 4), (1, 1024, 4)]), lambda c: c["BM"] * c["BN"])
    yield (convolve, b16("x w bias y") | numbers("T D"),
           [({"BT": bt, "BD": bd}, warps) for bt, bd, warps in ((16, 128, 4), (32, 128, 4), (16, 256, 4), (32, 64, 4))],
           lambda c: c["BT"] * c["BD"])
    wide = [(128, 64, 64, (4, 3)), (128, 64, 32, (4, 3)), (128, 128, 32, (8, 3)), (64, 64, 64, (4, 3))]
    square = [(128, 128, 64, (4, 3)), (128, 128, 32, (4, 4)), (128, 64, 64, (4, 3)), (64, 64, 64, (4, 3))]
    yield swiglu, b16("x gate up y") | numbers("M N K"), tiles(wide), lambda c: 2 * c["BM"] * c["BN"] * c["BK"]
    yield (scaled_product, b16("x y") | pointers("w", "i8") | f32("scales") | numbers("M N K"), tiles(square),
           lambda c: c["BM"] * c["BN"] * c["BK"])
    yield (lstm_step, b16("x h wx wh h_next") | f32("cell bias cell_next") | numbers("M X H"),
           tiles([(64, 32, 64, (4, 3)), (64, 32, 32, (4, 3)), (128, 32, 32, (4, 3)), (64, 64, 32, (4, 3))]),
           lambda c: 4 * c["BM"] * c["BN"] * c["BK"])
    yield persistent_product, b16("a b c") | numbers("M N K"), tiles(square), lambda c: c["BM"] * c["BN"] * c["BK"]
    yield (window_attention, b16("q k v o") | f32("slopes") | numbers("scale", "fp32") | numbers("T H"),
           tiles([(128, 64, (4, 3)), (64, 64, (4, 3)), (128, 32, (4, 3)), (128, 128, (8, 3))], D=64, WINDOW=1024, GROUP=4),
           lambda c: c["BM"] * c["BN"])
    yield (paged_attention, b16("q k v o") | i32("table lengths") | numbers("scale", "fp32") | numbers("H pages"),
           [({"D": 64, "BM": 16, "PAGE": 16, "BN": bn}, (warps, 3)) for bn, warps in ((64, 4), (64, 1), (32, 2), (128, 4))],
           lambda c: c["BM"] * c["BN"])
    yield (selective_scan, f32("x delta a b c y") | numbers("T D"),
           [({"S": 16, "BD": bd}, warps) for bd, warps in ((64, 4), (64, 1), (32, 1), (128, 4))], lambda c: 16 * c["BD"])
    yield (running_sum, b16("x y") | numbers("T D"),
           [({"BLOCK": block}, warps) for block, warps in ((1024, 4), (512, 4), (256, 1), (1024, 8))], lambda c: c["BLOCK"])
    yield sort_rows, f32("x y"), over([1, 2, 4, 8], C=256), lambda c: 256
    yield (sparse_rows, i32("starts columns") | f32("values x y") | numbers("D"),
           [({"BLOCK": block}, warps) for block, warps in ((1024, 4), (512, 4), (256, 1), (1024, 8))], lambda c: c["BLOCK"])
    yield (bags, i32("ids") | b16("table y") | numbers("B L"),
           [({"D": 256, "BAGS": bags}, warps) for bags, warps in ((4, 4), (8, 4), (1, 1), (16, 8))], lambda c: c["BAGS"] * 256)
    yield (histogram, i32("x counts") | numbers("n"),
           [({"CHUNK": 65536, "BINS": 256, "BLOCK": block}, warps) for block, warps in ((256, 4), (128, 4), (64, 4), (256, 8))],
           lambda c: c["BLOCK"] * 256)


def problems():
    """As triton_static.py's: (problem, type, kernel, signature, constants, (warps, stages), elements)."""
    for kernel, signature, configs, elements in configured():
        dtype = next((name for name in ("bf16", "f32") if TYPES[name] in signature.values()), "i32")
        for constants, how in configs:
            yield (kernel.fn.__name__, dtype, kernel, signature, constants, how if isinstance(how, tuple) else (how, 3), elements)
