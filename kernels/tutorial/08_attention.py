"""Compares attention with its definition in double precision. The argument is a device; the default is cpu."""

import math
import random
import sys
from array import array

import kiln

random.seed(8)
attention = kiln.load("08_attention.cc").attention


def shaped(numbers, *shape):
    """An f32 tensor of these numbers: memoryview.cast() gives an array of the standard library a shape."""
    return memoryview(array("f", numbers)).cast("B").cast("f", shape)


def compare(H, T, D, **config):
    """The largest error of o and lse, and its bound."""
    q, k, v = (shaped([random.gauss(0, 1) for _ in range(H * T * D)], H, T, D) for _ in range(3))
    o, lse = shaped([math.nan] * (H * T * D), H, T, D), shaped([math.nan] * (H * T), H, T)
    attention[lambda fields: (-(-T // int(fields["bm"])), H)](q, k, v, o, lse, **config)
    Q, K, V = q.tolist(), k.tolist(), v.tolist()
    worst = most = 0
    for h in range(H):
        for i in range(T):
            products = [[a * b for a, b in zip(Q[h][i], K[h][j])] for j in range(i + 1)]
            p = [math.exp(sum(row) / math.sqrt(D)) for row in products]
            l_i = sum(p)
            errors = [abs(o[h, i, d] - sum(p_j * V[h][j][d] for j, p_j in enumerate(p)) / l_i) for d in range(D)]
            errors.append(abs(lse[h, i] - math.log(l_i)))
            # A score sums D products and an output T terms. Each operation rounds by 2⁻²⁴ of the terms' absolute values.
            scores = max(sum(map(abs, row)) for row in products) / math.sqrt(D)
            bound = 4 * (D * scores + T + 8) * 2**-24 * max(1, max(map(abs, sum(V[h], []))))
            assert all(error <= bound for error in errors), (H, T, D, config, h, i, errors, bound)  # false for NaN, too
            worst, most = max(worst, *errors), max(most, bound)
    return worst, most


with kiln.open(sys.argv[1] if sys.argv[1:] else "cpu"):
    worst, bound = compare(2, 70, 16)  # 70 queries are two blocks of 32 and a part of a third
    for T, bm, bn in ((1, 32, 32), (32, 32, 32), (37, 16, 64), (50, 64, 16)):
        compare(1, T, 8, bm=bm, bn=bn)
print(f"attention: the largest error is {worst:.1e}, its bound {bound:.1e}")
