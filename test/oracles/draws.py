"""Random weights as Kiln draws them, for scripts that record what others compute with the same: by Philox 4x32-10 under
a seed, with a lane for each parameter in the order of a model's list."""

import math

import numpy as np
import torch


def philox(index, lane, seed):
    """Four words for each index: counter (low, high, lane, stream 1), key `seed`."""
    c = [index & np.uint64(0xFFFFFFFF), index >> np.uint64(32), np.full_like(index, lane), np.full_like(index, 1)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]  # below 2^64, as unsigned numbers
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & np.uint64(0xFFFFFFFF),
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & np.uint64(0xFFFFFFFF)]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def normals(count, deviation, lane, seed):
    words = philox(np.arange((count + 1) // 2, dtype=np.uint64), lane, seed)
    unit = lambda high, low: ((high << np.uint64(32) | low) >> np.uint64(11)).astype(np.float64)
    radius = np.sqrt(-2 * np.log((unit(words[0], words[1]) + 1) * 2.0**-53))
    angle = 2 * np.pi * (unit(words[2], words[3]) * 2.0**-53)
    return (deviation * np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[:count]).astype(np.float32)


def uniforms(count, bound, lane, seed):
    words = np.stack(philox(np.arange((count + 3) // 4, dtype=np.uint64), lane, seed), 1).ravel()[:count]
    return (bound * (words.astype(np.float64) * 2.0**-31 - 1)).astype(np.float32)


class Parameters(dict):
    """Tensors of double precision by name, in the order of their making."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def add(self, name, shape, draw=None, size=0.0, fill=0.0):
        count = math.prod(shape)
        numbers = draw(count, size, len(self), self.seed) if draw else np.full(count, fill, np.float32)
        self[name] = torch.tensor(numbers.astype(np.float64).reshape(shape), requires_grad=True)
