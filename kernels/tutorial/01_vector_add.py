"""Compares vector_add with a loop in Python. The argument is a device; the default is cpu."""

import sys
from array import array

import kiln

N = 1000
x = array("f", range(N))
y = array("f", [0.5] * N)
out = array("f", [-1.0] * N)
vector_add = kiln.load("01_vector_add.cc").vector_add
with kiln.open(sys.argv[1] if sys.argv[1:] else "cpu"):
    vector_add[lambda config: kiln.cdiv(N, config["block"])](x, y, out)

for i in range(N):
    assert out[i] == x[i] + y[i], (i, out[i], x[i] + y[i])
print(f"vector_add: {N} sums are exact")
