"""Compares series_sums with double precision. The argument is a device; the default is cpu."""

import random
import sys
from array import array

import kiln

M, N = 10, 100
random.seed(1)
x = array("f", [random.uniform(-1, 1) for _ in range(M * N)])
out = array("f", [0.0] * M)
series_sums = kiln.load("03_compiler.cc").series_sums
with kiln.open(sys.argv[1] if sys.argv[1:] else "cpu"):
    series_sums[lambda config: kiln.cdiv(M, config["bm"])](memoryview(x).cast("B").cast("f", (M, N)), out)

for m in range(M):
    row = x[m * N:(m + 1) * N]
    want = sum(v + v**2 / 2 + v**3 / 6 for v in row)
    terms = sum(abs(v) + v**2 / 2 + abs(v)**3 / 6 for v in row)
    # Each term meets at most 8 roundings in series() and N in the sum, each of a relative 2^-24.
    assert abs(out[m] - want) <= (N + 8) * 2**-24 * terms, (m, out[m], want)
print(f"series_sums: {M} sums are within the bound")
