"""JAX as a peer of seed000.py and seed001.py, compiled by jit: trains the model that the argument describes, on random
tokens, without a scaled loss. See children.Peer for what it reads and prints."""

import json
import math
import sys
import time

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    print("absent", flush=True)
    sys.exit()

model = json.loads(sys.argv[1])
WIDTH, HEADS, CONTEXT, VOCAB, INNER = (model[name] for name in ("width", "heads", "context", "vocab", "inner"))
DTYPE = getattr(jnp, model["dtype"])


def linear(key, inner, outer, bias=True):
    return {"w": jax.random.uniform(key, (inner, outer), minval=-1, maxval=1) / math.sqrt(inner),
            **({"b": jnp.zeros(outer)} if bias else {})}


def norm_parameters():
    return {"w": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}


def block_parameters(key):
    keys = jax.random.split(key, 4)
    return {"norm1": norm_parameters(), "qkv": linear(keys[0], WIDTH, 3 * WIDTH, model["attention_bias"]),
            "out": linear(keys[1], WIDTH, WIDTH, model["attention_bias"]), "norm2": norm_parameters(),
            "up": linear(keys[2], WIDTH, INNER), "down": linear(keys[3], INNER, WIDTH)}


def first_parameters(key):
    keys = jax.random.split(key, model["layers"] + 3)
    head = {} if model["tied"] else {"head": jax.random.normal(keys[2], (VOCAB, WIDTH)) / math.sqrt(WIDTH)}
    return {"tokens": 0.02 * jax.random.normal(keys[0], (VOCAB, WIDTH)), "bias": jnp.zeros(VOCAB),
            "positions": 0.02 * jax.random.normal(keys[1], (CONTEXT, WIDTH)), "last": norm_parameters(), **head,
            "blocks": [block_parameters(k) for k in keys[3:]]}


def apply(p, x):
    y = x @ p["w"].astype(DTYPE)
    return y + p["b"].astype(DTYPE) if "b" in p else y


def norm(p, x):
    x = x.astype(jnp.float32)
    ddof = 1 if model["epsilon"] == 0 else 0
    y = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True, ddof=ddof) + model["epsilon"])
    return (y * p["w"] + p["b"]).astype(DTYPE)


def dropped(key, x, chance):
    return x if chance == 0 else jnp.where(jax.random.bernoulli(key, 1 - chance, x.shape), x / (1 - chance), 0).astype(x.dtype)


def block(p, x, key):
    keys = jax.random.split(key, 4)
    q, k, v = apply(p["qkv"], norm(p["norm1"], x)).reshape(*x.shape[:2], 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
    scores = (q @ k.swapaxes(-1, -2)).astype(jnp.float32) / math.sqrt(WIDTH // HEADS)
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool)), scores, -1e9)).astype(DTYPE)
    mixed = (dropped(keys[0], weights, model["attention_dropout"]) @ v).swapaxes(1, 2).reshape(x.shape)
    x = x + dropped(keys[1], apply(p["out"], mixed), model["dropout"])
    up = apply(p["up"], norm(p["norm2"], x))
    active = dropped(keys[2], jax.nn.relu(up), model["dropout"]) if model["activation"] == "relu" else jax.nn.gelu(up)
    return x + dropped(keys[3], apply(p["down"], active), model["dropout"])


def loss_of(p, data, key):
    keys = jax.random.split(key, model["layers"] + 1)
    x = p["tokens"][data[:, :-1]] * (math.sqrt(WIDTH) if model.get("scale") else 1)
    if model["shift"]:
        x = jnp.concatenate([jnp.zeros_like(x[:, :1]), x[:, 1:]], 1)
    x = dropped(keys[0], (x + p["positions"]).astype(DTYPE), model["dropout"])
    for parameters, k in zip(p["blocks"], keys[1:]):
        x = block(parameters, x, k)
    if model["last_norm"]:
        x = norm(p["last"], x)
    logits = (x @ p["tokens" if model["tied"] else "head"].astype(DTYPE).T).astype(jnp.float32) + p["bias"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), data[:, 1:, None], -1).mean()


@jax.jit
def step(p, first, second, count, key):
    """A step of AdamW."""
    keys = jax.random.split(key, 2 * model["micro"])
    gradient = jax.tree.map(jnp.zeros_like, p)
    for draw, drop in zip(keys[::2], keys[1::2]):
        data = jax.random.randint(draw, (model["batch"], CONTEXT + 1), 0, VOCAB)
        gradient = jax.tree.map(lambda a, b: a + b / model["micro"], gradient, jax.grad(loss_of)(p, data, drop))
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    change = lambda w, m, v: w - 1e-4 * (m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8) + 0.01 * w)
    return jax.tree.map(change, p, first, second), first, second


parameters = first_parameters(jax.random.key(1))
state = parameters, jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters)
count = 0


def steps(number):
    global state, count
    for _ in range(number):
        count += 1
        state = step(*state, float(count), jax.random.key(count))
    jax.block_until_ready(state)


steps(2)  # compiles
print("ready", flush=True)
for line in sys.stdin:
    begin = time.perf_counter()
    steps(int(line))
    print(time.perf_counter() - begin, flush=True)
