"""PyTorch and JAX as peers of seed003.py: one function on a batch, as a loop or by vmap. Prints a line of CSV as
kiln-vmap does, or `absent` where the library, or a GPU that it should run on, is not there."""

import argparse
import math
import statistics
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--how", choices=["torch loop", "torch.vmap", "jax.vmap", "jit(jax.vmap)"])
parser.add_argument("--function", choices=["dot", "attention"])
parser.add_argument("--device")
parser.add_argument("--batch", type=int)
parser.add_argument("--extents", type=lambda text: [int(part) for part in text.split(",")])
parser.add_argument("--calls", type=int)
options = parser.parse_args()
gpu = options.device.startswith("cuda")


def absent():
    print("absent")
    sys.exit()


def resident():
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * 4096


def torch_call():
    try:
        import torch
    except ImportError:
        absent()
    if gpu and not torch.cuda.is_available():
        absent()
    device = "cuda" if gpu else "cpu"

    def attention(q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v

    one, count = (torch.dot, 2) if options.function == "dot" else (attention, 3)
    tensors = [torch.rand(options.batch, *options.extents, device=device) - 0.5 for _ in range(count)]

    def call():
        if options.how == "torch.vmap":
            torch.func.vmap(one)(*tensors)
        else:
            for example in range(options.batch):
                one(*(tensor[example] for tensor in tensors))
        if gpu:
            torch.cuda.synchronize()

    return torch.no_grad()(call), lambda: torch.cuda.memory_allocated() if gpu else 0


def jax_call():
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        absent()
    if gpu and jax.default_backend() != "gpu":
        absent()

    def attention(q, k, v):
        return jax.nn.softmax(q @ k.T / math.sqrt(q.shape[-1]), -1) @ v

    one, count = (jnp.dot, 2) if options.function == "dot" else (attention, 3)
    keys = jax.random.split(jax.random.key(0), count)
    tensors = [jax.random.uniform(key, (options.batch, *options.extents)) - 0.5 for key in keys]
    mapped = jax.vmap(one)
    mapped = jax.jit(mapped) if options.how.startswith("jit") else mapped
    return lambda: jax.block_until_ready(mapped(*tensors)), lambda: 0


call, device_bytes = torch_call() if options.how.startswith("torch") else jax_call()
times, memory = [], []
for _ in range(options.calls + 1):
    begin = time.perf_counter()
    call()
    times.append(time.perf_counter() - begin)
    memory.append(resident())
cold, times, memory = times[0], times[1:], memory[1:]
ordered = sorted(times)
quantiles = [ordered[int(part * (len(ordered) - 1))] for part in (0.5, 0.99)]
print(options.how, options.function, options.device,
      *(f"{number:.4g}" for number in (statistics.fmean(times), statistics.pstdev(times), *quantiles)),
      *(f"{number:.0f}" for number in (statistics.fmean(memory), statistics.pstdev(memory))), device_bytes(),
      f"{cold:.4g}", sep=",")
