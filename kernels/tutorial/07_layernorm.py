"""Compares LayerNorm, forward and backward, with double precision. The argument is a device; the default is cpu."""

import math
import random
import sys
from array import array

import kiln

N, C, ROWS, EPSILON = 37, 48, 16, 1e-5  # 37 rows: two programs of the backward pass and a part of a third
P = -(-N // ROWS)
random.seed(7)


def shaped(numbers, *shape):
    """An f32 tensor of these numbers."""
    return memoryview(array("f", numbers)).cast("B").cast("f", shape)


def normal(mean, *shape):
    return shaped([random.gauss(mean, 1) for _ in range(math.prod(shape))], *shape)


def empty(*shape):
    return shaped([math.nan] * math.prod(shape), *shape)


x, dout, gamma, beta = normal(1, N, C), normal(0, N, C), normal(1, C), normal(0, C)
out, mean, rstd, dx = empty(N, C), empty(N), empty(N), empty(N, C)
kernels = kiln.load("07_layernorm.cc")


def gradients():
    """dgamma and dbeta, by two launches."""
    parts, result = empty(2, P, C), empty(2, C)
    kernels.layernorm_backward[P](dout, x, gamma, mean, rstd, dx, parts, rows=ROWS)
    kernels.sum_parts[lambda config: (kiln.cdiv(C, config["columns"]), 2)](parts, result)
    return result


with kiln.open(sys.argv[1] if sys.argv[1:] else "cpu"):
    kernels.layernorm[lambda config: kiln.cdiv(N, config["block"])](x, gamma, beta, out, mean, rstd, EPSILON)
    dgamma, dbeta = (first := gradients()).tolist()
    assert bytes(first) == bytes(gradients()), "two runs agree to the bit"

# The formulas in double precision. A sum of n terms is off by n · 2⁻²⁴ of their absolute values; eta is the part of x̂
# that this makes, by the sums of the mean and of the variance.
e, worst, dgamma_want, dbeta_want, share = 2**-24, {}, [0] * C, [0] * C, [0] * C


def compare(name, got, want, bound):
    errors = [abs(a - b) for a, b in zip(got, want)]
    assert all(error <= bound for error in errors), (name, errors, bound)  # false for NaN, too
    worst[name] = max(worst.get(name, 0), *errors)


for row, d, row_out, row_dx in zip(x.tolist(), dout.tolist(), out.tolist(), dx.tolist()):
    mu = sum(row) / C
    r = 1 / math.sqrt(sum((a - mu) ** 2 for a in row) / C + EPSILON)
    xhat, g = [(a - mu) * r for a in row], [a * w for a, w in zip(d, gamma)]
    g_mean, gx_mean = sum(g) / C, sum(a * b for a, b in zip(g, xhat)) / C
    X, G, g_size = max(map(abs, xhat)), max(map(abs, g)), sum(map(abs, g)) / C
    eta = e * (C + 6) * (1 + X) * (1 + sum(map(abs, row)) / C * r)
    compare("out", row_out, [a * w + b for a, w, b in zip(xhat, gamma, beta)],
            2 * eta * (1 + max(map(abs, [*gamma, *beta]))))
    compare("dx", row_dx, [(a - g_mean - b * gx_mean) * r for a, b in zip(g, xhat)],
            eta * (2 * G + g_size * (1 + X) * (2 + X)) * r)
    dgamma_want = [a + b * c for a, b, c in zip(dgamma_want, d, xhat)]
    dbeta_want = [a + b for a, b in zip(dbeta_want, d)]
    share = [a + abs(b) * (eta + N * e * (1 + X)) for a, b in zip(share, d)]
compare("dgamma", dgamma, dgamma_want, max(share))
compare("dbeta", dbeta, dbeta_want, max(share))
for name, error in worst.items():
    print(f"{name}: the largest error is {error:.1e}")
