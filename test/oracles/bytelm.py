"""Losses of 20 steps of the byte model in PyTorch, for test/models/bytelm/network_test.cc.

Two blocks of width 32 on sequences whose bytes a formula gives. Weights are drawn as Kiln draws them: by Philox 4x32-10
under seed 7, a lane for each parameter in the order of the list below. Run as

    python test/oracles/bytelm.py > test/models/bytelm/losses.json

Written with PyTorch 2.4.1, in double precision.
"""

import json
import math

import numpy as np
import torch
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, INNER, CONTEXT, BATCH, STEPS, SEED = 2, 4, 32, 96, 24, 5, 20, 7
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def philox(index, lane):
    """Four words for each index: counter (low, high, lane, stream 1), key SEED."""
    c = [index & np.uint64(0xFFFFFFFF), index >> np.uint64(32), np.full_like(index, lane), np.full_like(index, 1)]
    k0, k1 = SEED & 0xFFFFFFFF, SEED >> 32
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]  # below 2^64, as unsigned numbers
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & np.uint64(0xFFFFFFFF),
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & np.uint64(0xFFFFFFFF)]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def normals(count, deviation, lane):
    words = philox(np.arange((count + 1) // 2, dtype=np.uint64), lane)
    unit = lambda high, low: ((high << np.uint64(32) | low) >> np.uint64(11)).astype(np.float64)
    radius = np.sqrt(-2 * np.log((unit(words[0], words[1]) + 1) * 2.0**-53))
    angle = 2 * np.pi * (unit(words[2], words[3]) * 2.0**-53)
    return (deviation * np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[:count]).astype(np.float32)


def uniforms(count, bound, lane):
    words = np.stack(philox(np.arange((count + 3) // 4, dtype=np.uint64), lane), 1).ravel()[:count]
    return (bound * (words.astype(np.float64) * 2.0**-31 - 1)).astype(np.float32)


parameters = {}


def add(name, shape, draw=None, size=0.0, fill=0.0):
    count = math.prod(shape)
    lane = len(parameters)
    numbers = draw(count, size, lane) if draw else np.full(count, fill, np.float32)
    parameters[name] = torch.tensor(numbers.astype(np.float64).reshape(shape), requires_grad=True)


def linear(name, inner, outer):
    add(name + ".w", (inner, outer), uniforms, 1 / math.sqrt(inner))
    add(name + ".b", (outer,), uniforms, 1 / math.sqrt(inner))


def norm(name):
    add(name + ".w", (WIDTH,), fill=1.0)
    add(name + ".b", (WIDTH,))


add("bytes", (256, WIDTH), normals, 1)
add("positions", (CONTEXT, WIDTH), normals, 1)
for layer in range(LAYERS):
    norm(f"{layer}.n1")
    linear(f"{layer}.qkv", WIDTH, 3 * WIDTH)
    linear(f"{layer}.mixed", WIDTH, WIDTH)
    norm(f"{layer}.n2")
    linear(f"{layer}.up", WIDTH, INNER)
    linear(f"{layer}.down", INNER, WIDTH)
add("head.w", (256, WIDTH), uniforms, 1 / math.sqrt(WIDTH))
add("head.b", (256,), uniforms, 1 / math.sqrt(WIDTH))


def layer_norm(x, name):
    return F.layer_norm(x, (WIDTH,), parameters[name + ".w"], parameters[name + ".b"], 1e-5)


def apply(x, name):
    return x @ parameters[name + ".w"] + parameters[name + ".b"]


def loss_of(data):
    embedded = F.embedding(data[:, :-1], parameters["bytes"])
    x = torch.cat([torch.zeros(len(data), 1, WIDTH), embedded], 1) + parameters["positions"]
    for layer in range(LAYERS):
        qkv = apply(layer_norm(x, f"{layer}.n1"), f"{layer}.qkv")
        q, k, v = (part.view(len(data), CONTEXT, HEADS, -1).transpose(1, 2) for part in qkv.split(WIDTH, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + apply(mixed, f"{layer}.mixed")
        x = x + apply(F.relu(apply(layer_norm(x, f"{layer}.n2"), f"{layer}.up")), f"{layer}.down")
    logits = x @ parameters["head.w"].T + parameters["head.b"]
    return F.cross_entropy(logits.view(-1, 256), data.reshape(-1))


adam = torch.optim.Adam(parameters.values(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
losses = []
for step in range(STEPS):
    numbers = torch.arange(BATCH * CONTEXT) + step * 31
    data = ((numbers * numbers * 7 + numbers * 13) % 251).view(BATCH, CONTEXT)
    adam.zero_grad()
    loss = loss_of(data)
    loss.backward()
    adam.step()
    losses.append(loss.item())
print(json.dumps({"losses": losses}, indent=1))
