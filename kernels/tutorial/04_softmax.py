"""Compares row_softmax with double precision. The argument is a device; the default is cpu."""

import random
import sys
from array import array
from math import exp

import kiln

N, C = 10, 1000
random.seed(1)
x = array("f", [100 + random.uniform(-5, 5) for _ in range(N * C)])  # e^100 overflows f32
out = array("f", [0.0] * (N * C))
row_softmax = kiln.load("04_softmax.cc").row_softmax
with kiln.open(sys.argv[1] if sys.argv[1:] else "cpu"):
    row_softmax[lambda config: kiln.cdiv(N, config["rows"])](*(memoryview(a).cast("B").cast("f", (N, C)) for a in (x, out)))

for n in range(N):
    row = x[n * C:(n + 1) * C]
    top = max(row)
    total = sum(exp(v - top) for v in row)
    for c in range(C):
        want = exp(row[c] - top) / total
        # In units of 2^-24: exp may be off by 5, above and below the line. The sum has C roundings and the division one.
        # The difference row - top, at most 10 in magnitude, is rounded, too.
        bound = (5 + 5 + C + 1 + 10 + 10) * 2**-24
        assert abs(out[n * C + c] - want) <= bound * want, (n, c, out[n * C + c], want)
print(f"row_softmax: {N} rows are within the bound")
