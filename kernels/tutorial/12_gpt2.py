"""Compares the gain's kernels with double precision. The argument is a device; the default is cpu."""

import math
import random
import sys
from array import array

import kiln

N, C, ROWS = 37, 24, 16
P = -(-N // ROWS)
random.seed(12)


def shaped(numbers, *shape):
    """An f32 tensor of these numbers."""
    return memoryview(array("f", numbers)).cast("B").cast("f", shape)


def normal(*shape):
    return shaped([random.gauss(0, 1) for _ in range(math.prod(shape))], *shape)


x, dy, gain, before = normal(N, C), normal(N, C), normal(C), normal(C)
y, dx, parts, dgain = normal(N, C), normal(N, C), normal(P, C), shaped(before, C)
kernels = kiln.load("12_gpt2.cc")
with kiln.open(sys.argv[1] if sys.argv[1:] else "cpu"):
    kernels.gain[P](x, gain, y, rows=ROWS)
    kernels.gain_backward[P](dy, x, gain, dx, parts, rows=ROWS)
    kernels.gain_sum[1](parts, dgain, accumulate=True)

e = 2**-24  # a product is rounded once, a sum of n terms is off by n · e of their absolute values
for n in range(N):
    for c in range(C):
        assert abs(y[n, c] - x[n, c] * gain[c]) <= e * abs(y[n, c])
        assert abs(dx[n, c] - dy[n, c] * gain[c]) <= e * abs(dx[n, c])
for c in range(C):
    terms = [before[c], *(dy[n, c] * x[n, c] for n in range(N))]
    assert abs(dgain[c] - sum(terms)) <= (N + 2) * e * sum(map(abs, terms)), (c, dgain[c], sum(terms))
print("gain: y, dx and dgain agree")
