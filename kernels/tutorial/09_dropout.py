"""Compares dropout with Philox-4x32-10 in Python, bit for bit. The argument is a device; the default is cpu."""

import struct
import sys
from array import array

import kiln

N, C, SEED, P = 10, 70, 2**40 + 9, 0.25
dropout = kiln.load("09_dropout.cc").dropout


def philox(seed, counter):
    """Four words of 32 bits, by ten rounds."""
    x = [counter % 2**32, counter >> 32, 0, 0]
    key = [seed % 2**32, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [b >> 32 ^ x[1] ^ key[0], b % 2**32, a >> 32 ^ x[3] ^ key[1], a % 2**32]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return x


def run(numbers, **config):
    """dropout of an (N, C) tensor, in tiles of the config."""
    x, y = (memoryview(array("f", values)).cast("B").cast("f", (N, C)) for values in (numbers, [0] * (N * C)))
    dropout[lambda fields: (-(-N // int(fields["rows"])), -(-C // int(fields["columns"])))](x, y, P, SEED, **config)
    return [value for row in y.tolist() for value in row]


def f32(number):
    return struct.unpack("f", struct.pack("f", number))[0]


ones, slopes = [1.0] * (N * C), [float(i) for i in range(1, N * C + 1)]
with kiln.open(sys.argv[1] if sys.argv[1:] else "cpu"):
    for four in (False, True):
        y = run(ones, four=four)
        for n in range(N):
            for c in range(C):
                word = philox(SEED, n * -(-C // 4) + c // 4)[c % 4] if four else philox(SEED, n * C + c)[0]
                want = f32(1 / (1 - P)) if word % 2**24 >= P * 2**24 else 0
                assert y[n * C + c] == want, (four, n, c, y[n * C + c], want)
        assert y == run(ones, four=four, rows=3, columns=16), "the mask does not depend on tiles"
        dx = run(slopes, four=four)
        assert all((a == 0) == (b == 0) for a, b in zip(y, dx)), "the backward pass drops the same elements"
        print(f"four={four}: {y.count(0)} of {N * C} dropped, as Philox says")
