"""Compares matmul with double precision. The argument is a device; the default is cpu."""

import random
import sys
from array import array

import kiln

M, N, K = 70, 90, 100
random.seed(1)
a, b = (array("f", [random.uniform(-1, 1) for _ in range(count)]) for count in (M * K, K * N))
c = array("f", [0.0] * (M * N))


def matrix(data, rows, columns):
    return memoryview(data).cast("B").cast("f", (rows, columns))


matmul = kiln.load("05_matmul.cc").matmul
with kiln.open(sys.argv[1] if sys.argv[1:] else "cpu"):
    grid = lambda config: (kiln.cdiv(M, config["bm"]), kiln.cdiv(N, config["bn"]))  # noqa: E731
    matmul[grid](matrix(a, M, K), matrix(b, K, N), matrix(c, M, N))

for m in range(M):
    for n in range(N):
        products = [a[m * K + k] * b[k * N + n] for k in range(K)]
        bound = K * 2**-24 * sum(abs(p) for p in products)  # K products and K sums, each rounded once
        assert abs(c[m * N + n] - sum(products)) <= bound, (m, n, c[m * N + n], sum(products))
print(f"matmul: {M} x {N} elements are within the bound")
