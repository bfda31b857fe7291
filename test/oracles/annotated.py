"""Losses of 50 steps of the GPT-2 preset `annotated` in PyTorch, for test/models/gpt2/annotated_test.cc.

Written from what that model is said to be, not from Kiln: blocks x + attention(norm(x)), then x + mlp(norm(x)); a norm
divides by the standard deviation over n - 1, with nothing added; rows of the token table are multiplied by the root of
the width before positions are added; attention's projections have no biases; the head is the token table, with a bias.
AdamW decays all but what begins at zero. Two layers of width 128, sequences of 64, two micro-batches of 4 a step, no
dropout. Tokens are a formula's; weights are Kiln's (draws.py).

    pip install torch==2.4.1 numpy && python3 test/oracles/annotated.py > test/models/gpt2/annotated.json

All is in double precision.
"""

import json
import math

import torch
import torch.nn.functional as F

from draws import Parameters, normals

LAYERS, HEADS, WIDTH, CONTEXT, VOCAB, BATCH, MICRO, STEPS, WARMUP, RATE = 2, 4, 128, 64, 300, 4, 2, 50, 10, 1e-3
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
parameters = Parameters(7)


def norm_parameters(name):
    parameters.add(name + ".gain", (WIDTH,), fill=1.0)
    parameters.add(name + ".bias", (WIDTH,))


small = 0.02 / math.sqrt(2 * LAYERS)
parameters.add("tokens", (VOCAB, WIDTH), normals, 0.02)
parameters.add("positions", (CONTEXT, WIDTH), normals, 0.02)
for layer in range(LAYERS):
    norm_parameters(f"{layer}.norm1")
    parameters.add(f"{layer}.qkv", (WIDTH, 3 * WIDTH), normals, 0.02)
    parameters.add(f"{layer}.out", (WIDTH, WIDTH), normals, small)
    norm_parameters(f"{layer}.norm2")
    parameters.add(f"{layer}.up", (WIDTH, 4 * WIDTH), normals, 0.02)
    parameters.add(f"{layer}.up.bias", (4 * WIDTH,))
    parameters.add(f"{layer}.down", (4 * WIDTH, WIDTH), normals, small)
    parameters.add(f"{layer}.down.bias", (WIDTH,))
norm_parameters("last")
parameters.add("head.bias", (VOCAB,))


def norm(x, name):
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * parameters[name + ".gain"] + parameters[name + ".bias"]


def attention(x, layer):
    q, k, v = (x @ parameters[f"{layer}.qkv"]).view(BATCH, CONTEXT, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
    scores = scores.masked_fill(~torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).tril(), -1e9)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape) @ parameters[f"{layer}.out"]


def mlp(x, layer):
    hidden = F.gelu(x @ parameters[f"{layer}.up"] + parameters[f"{layer}.up.bias"], approximate="tanh")
    return hidden @ parameters[f"{layer}.down"] + parameters[f"{layer}.down.bias"]


def loss_of(tokens, targets):
    x = parameters["tokens"][tokens] * math.sqrt(WIDTH) + parameters["positions"]
    for layer in range(LAYERS):
        x = x + attention(norm(x, f"{layer}.norm1"), layer)
        x = x + mlp(norm(x, f"{layer}.norm2"), layer)
    logits = norm(x, "last") @ parameters["tokens"].T + parameters["head.bias"]
    return F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))


def rate(step):
    if step < WARMUP:
        return RATE * (step + 1) / WARMUP
    return RATE * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


zeros = [p for name, p in parameters.items() if name.endswith(".bias")]
others = [p for name, p in parameters.items() if not name.endswith(".bias")]
adam = torch.optim.AdamW([{"params": others, "weight_decay": 0.01}, {"params": zeros, "weight_decay": 0.0}],
                         betas=(0.9, 0.98), eps=1e-8)
losses = []
for step in range(STEPS):
    for group in adam.param_groups:
        group["lr"] = rate(step)
    adam.zero_grad()
    total = 0
    for micro in range(MICRO):
        i = torch.arange(BATCH * CONTEXT + 1) + (step * MICRO + micro) * 31
        stream = (i * i * 7 + i * 13) % 293
        loss = loss_of(stream[:-1].view(BATCH, CONTEXT), stream[1:].view(BATCH, CONTEXT)) / MICRO
        loss.backward()
        total += loss.item()
    adam.step()
    losses.append(total)
print(json.dumps({"losses": losses}, indent=1))
