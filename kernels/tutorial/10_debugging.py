"""Compares count_zeros with Python on random arrays. Arguments: a device (default cpu), and the seed of the arrays."""

import random
import sys
from array import array

import kiln

device = kiln.open(sys.argv[1] if sys.argv[1:] else "cpu")
random.seed(int(sys.argv[2]) if sys.argv[2:] else 10)
count_zeros = kiln.load("10_debugging.cc").count_zeros
cases = 0
for block in (1, 3, 32, 100):  # each block size is compiled once; lengths need no compilation
    for N in (1, block, block + 1, random.randint(1, 500)):
        x = array("f", [random.choice((-1.0, 0.0, -0.0, float("inf"))) for _ in range(N)])
        count = array("i", [0])
        with device:
            count_zeros[-(-N // block)](x, count, block=block)
        assert count[0] == x.count(0), f"N={N}, block={block}: expected {x.count(0)}, but got {count[0]}"
        cases += 1
print(f"count_zeros: {cases} random arrays agree")
