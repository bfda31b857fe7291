"""Losses of llm.c's CPU program on a small model, for test/models/gpt2/llmc_test.cc.

Writes a model and tokens in llm.c's files, from the description of these files and not by Kiln, builds train_gpt2.c of
the folder that is named and runs it there: 4 sequences of 64 a step, AdamW at 1e-4 without decay, 41 steps. Weights and
tokens are a formula's. Beside the losses it prints a hash (FNV-1a) of the model's file.

    git clone https://github.com/karpathy/llm.c && pip install numpy
    python3 test/oracles/llmc.py llm.c > test/models/gpt2/llmc.json
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

LAYERS, HEADS, WIDTH, CONTEXT, VOCAB, ROWS = 2, 4, 64, 64, 300, 384


def header(*numbers):
    return np.array(list(numbers) + [0] * (256 - len(numbers)), np.int32).tobytes()


def numbers(number, shape, gain=False):
    """Of parameter `number` in the order of a network, as (in, out): 201 values, all of them exact."""
    i = np.arange(np.prod(shape), dtype=np.int64)
    return (((i * 37 + number * 101 + i * i % 61) % 201 - 100) / 1024 + gain).astype(np.float32).reshape(shape)


def tokens(count):
    i = np.arange(count, dtype=np.int64)
    return ((i * i * 7 + i * 13) % 293).astype(np.uint16)


def model():
    parts = {"wte": numbers(0, (VOCAB, WIDTH)), "wpe": numbers(1, (CONTEXT, WIDTH))}
    kinds = [("ln1w", (WIDTH,)), ("ln1b", (WIDTH,)), ("qkvw", (WIDTH, 3 * WIDTH)), ("qkvb", (3 * WIDTH,)),
             ("projw", (WIDTH, WIDTH)), ("projb", (WIDTH,)), ("ln2w", (WIDTH,)), ("ln2b", (WIDTH,)),
             ("fcw", (WIDTH, 4 * WIDTH)), ("fcb", (4 * WIDTH,)), ("downw", (4 * WIDTH, WIDTH)), ("downb", (WIDTH,))]
    text = np.concatenate([parts["wte"], np.zeros((ROWS - VOCAB, WIDTH), np.float32)]).tobytes() + parts["wpe"].tobytes()
    for k, (name, shape) in enumerate(kinds):
        for layer in range(LAYERS):
            part = numbers(2 + layer * len(kinds) + k, shape, gain=name in ("ln1w", "ln2w"))
            text += np.ascontiguousarray(part.T).tobytes()
    last = 2 + LAYERS * len(kinds)
    text += numbers(last, (WIDTH,), gain=True).tobytes() + numbers(last + 1, (WIDTH,)).tobytes()
    return header(20240326, 3, CONTEXT, VOCAB, LAYERS, HEADS, WIDTH, ROWS) + text


def hash_of(data):
    result = 0xCBF29CE484222325
    for byte in data:
        result = (result ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{result:016x}"


source = os.path.abspath(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "train")
    subprocess.run(["gcc", "-O3", "-w", "train_gpt2.c", "-o", program, "-lm"], cwd=source, check=True)
    data = os.path.join(folder, "dev/data/tinyshakespeare")
    os.makedirs(data)
    with open(os.path.join(folder, "gpt2_124M.bin"), "wb") as out:
        out.write(model())
    for name, count in (("train", 5000), ("val", 1400)):
        with open(os.path.join(data, f"tiny_shakespeare_{name}.bin"), "wb") as out:
            out.write(header(20240520, 1, count) + tokens(count).tobytes())
    said = subprocess.run([program], cwd=folder, check=True, capture_output=True, text=True).stdout
losses = [float(loss) for loss in re.findall(r"train loss ([0-9.]+)", said)]
held = [float(loss) for loss in re.findall(r"val loss ([0-9.]+)", said)]
print(json.dumps({"model": hash_of(model()), "losses": losses, "held": held}))
