"""Losses of 20 steps of the byte model in PyTorch, for test/models/bytelm/bytelm_test.cc.

Two blocks of width 32 on sequences whose bytes a formula gives. Weights are drawn as Kiln draws them: by Philox 4x32-10
under seed 7, a lane for each parameter in the order of the list below. The test reads the file; it needs no library.

    pip install torch==2.4.1 numpy && python3 test/oracles/bytelm.py > test/models/bytelm/losses.json

All is in double precision.
"""

import json
import math

import torch
import torch.nn.functional as F

from draws import Parameters, normals, uniforms

LAYERS, HEADS, WIDTH, INNER, CONTEXT, BATCH, STEPS, SEED = 2, 4, 32, 96, 24, 5, 20, 7
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


parameters = Parameters(SEED)
add = parameters.add


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
