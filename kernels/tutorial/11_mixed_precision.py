"""Compares products and updates in narrow types with double precision. The argument is a device; the default is cpu."""

import math
import random
import sys
from array import array

import kiln

M, K, N = 40, 50, 33
random.seed(11)


def shaped(numbers, *shape):
    """An f32 tensor of these numbers."""
    return memoryview(array("f", numbers)).cast("B").cast("f", shape)


def numbers(rows, columns):
    """Random numbers that are normal in every format."""
    return shaped([random.choice((-1, 1)) * random.uniform(0.25, 2) for _ in range(rows * columns)], rows, columns)


a, b = numbers(M, K), numbers(K, N)
kernels = kiln.load("11_mixed_precision.cc")
device = kiln.open(sys.argv[1] if sys.argv[1:] else "cpu")
exact = [[[a[m, k] * b[k, n] for k in range(K)] for n in range(N)] for m in range(M)]

# Each operand is off by a relative u, and a sum of K terms by up to 3 K · 2⁻²⁴ of their absolute values.
for name, u, config in (("f32", 0, {"format": "f32"}), ("tf32", 0.65 * 2**-10, {"format": "f32", "precision": "tf32"}),
                        ("f16", 2**-11, {"format": "f16"}), ("bf16", 2**-8, {"format": "bf16"})):
    c = shaped([0] * (M * N), M, N)
    with device:
        kernels.product[lambda fields: tuple(-(-size // int(fields["block"])) for size in (M, N))](a, b, c, **config)
    bound = 2 * u + u * u + 3 * K * 2**-24
    errors = [abs(c[m, n] - math.fsum(exact[m][n])) / sum(map(abs, exact[m][n])) for m in range(M) for n in range(N)]
    assert all(error <= bound for error in errors), (name, max(errors), bound)  # false for NaN, too
    print(f"{name}: off by at most {max(errors):.1e} of the sum of absolute products")

# 1024 updates of 2⁻¹²: half a unit of bf16 above 1 is 2⁻⁸. Each stochastic step has a standard deviation below 2⁻⁸.
COUNT = 1024
for stochastic in (False, True):
    w = shaped([1.0] * 256, 256)
    with device:
        kernels.updates[256 // 32](w, 2**-12, COUNT, 1, stochastic=stochastic, block=32)
    mean = sum(w) / len(w)
    want, tolerance = (1 + COUNT * 2**-12, 5 * 2**-8 * math.sqrt(COUNT / len(w))) if stochastic else (1, 0)
    assert abs(mean - want) <= tolerance, (stochastic, mean)
    print(f"1 + {COUNT} · 2⁻¹² in bf16, rounded {'stochastically' if stochastic else 'to nearest'}: {mean:.3f}")
