"""JAX as a peer of seed002.py, compiled by jit for each shape: trains the encoder and decoder that the argument describes on
pairs. See seed002.PairPeer for what it reads and prints; it does not translate."""

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

from pairs import Batches, read

model = json.loads(sys.argv[1])
WIDTH, HEADS, INNER, CONTEXT, VOCAB = (model[name] for name in ("width", "heads", "inner", "context", "vocab"))
SMALL = model["name"] == "small"  # else seed002: tables and a head of its own, PyTorch's weights to begin with
DTYPE = getattr(jnp, model["dtype"])


def uniform(key, shape, bound):
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def linear(key, inner, outer, attention=False, out=False):
    """`attention` and what comes `out` of it `small` begins with by Xavier, and without biases."""
    keys, bound = jax.random.split(key), 1 / math.sqrt(inner)
    weight = uniform(keys[0], (inner, outer), math.sqrt(6 / (inner + outer)) if SMALL and attention else bound)
    return {"w": weight, "b": jnp.zeros(outer) if SMALL and (attention or out) else uniform(keys[1], (outer,), bound)}


def first_norm():
    return {"w": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}


def first_block(key, cross):
    keys = jax.random.split(key, 7)
    block = {"norm1": first_norm(), "qkv": linear(keys[0], WIDTH, 3 * WIDTH, attention=True),
             "mixed": linear(keys[1], WIDTH, WIDTH, out=True), "norm2": first_norm(),
             "up": linear(keys[2], WIDTH, INNER), "down": linear(keys[3], INNER, WIDTH)}
    if cross:
        block |= {"norm3": first_norm(), "query": linear(keys[4], WIDTH, WIDTH, attention=True),
                  "memory": linear(keys[5], WIDTH, 2 * WIDTH, attention=True),
                  "looked": linear(keys[6], WIDTH, WIDTH, out=True)}
    return block


def first_parameters(key):
    keys = jax.random.split(key, 6)
    table = lambda k: jax.random.normal(k, (VOCAB, WIDTH)) / (math.sqrt(WIDTH) if SMALL else 1)
    blocks = lambda k, count, cross: [first_block(one, cross) for one in jax.random.split(k, count)]
    parameters = {"tokens": table(keys[0]), "encoder": blocks(keys[1], model["encoder_layers"], False),
                  "decoder": blocks(keys[2], model["layers"], True), "encoder last": first_norm(),
                  "decoder last": first_norm(), "bias": uniform(keys[3], (VOCAB,), 1 / math.sqrt(WIDTH))}
    if not SMALL:
        parameters |= {"source tokens": table(keys[4]), "head": uniform(keys[5], (VOCAB, WIDTH), 1 / math.sqrt(WIDTH))}
    return parameters


def apply(p, x):
    return x @ p["w"].astype(DTYPE) + p["b"].astype(DTYPE)


def norm(p, x):
    """By the deviation over n - 1 in seed 002, to which epsilon is added."""
    x = x.astype(jnp.float32)
    away = x - x.mean(-1, keepdims=True)
    by = jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) if SMALL else x.std(-1, keepdims=True, ddof=1) + 1e-6
    return (away / by * p["w"] + p["b"]).astype(DTYPE)


def dropped(key, x, chance):
    if key is None or chance == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - chance, x.shape), x / (1 - chance), 0).astype(x.dtype)


def mixed(q, k, v, mask, key):
    heads = lambda x: x.reshape(*x.shape[:2], HEADS, -1).swapaxes(1, 2)
    scores = (heads(q) @ heads(k).swapaxes(-1, -2)).astype(jnp.float32) / math.sqrt(WIDTH // HEADS)
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9)).astype(DTYPE)
    return (dropped(key, weights, model["attention_dropout"]) @ heads(v)).swapaxes(1, 2).reshape(q.shape)


def stack(blocks, last, x, mask, key, memory=None, seen=None):
    take = iter([None] * (1 + 6 * len(blocks)) if key is None else jax.random.split(key, 1 + 6 * len(blocks)))
    drop = lambda y: dropped(next(take), y, model["dropout"])
    x = drop(x)
    for p in blocks:
        q, k, v = jnp.split(apply(p["qkv"], norm(p["norm1"], x)), 3, -1)
        x = x + drop(apply(p["mixed"], mixed(q, k, v, mask, next(take))))
        if memory is not None:
            k, v = jnp.split(apply(p["memory"], memory), 2, -1)
            query = apply(p["query"], norm(p["norm3"], x))
            x = x + drop(apply(p["looked"], mixed(query, k, v, seen, next(take))))
        x = x + drop(apply(p["down"], drop(jax.nn.relu(apply(p["up"], norm(p["norm2"], x))))))
    return norm(last, x)


angles = jnp.arange(CONTEXT)[:, None] * 10000.0 ** (-jnp.arange(0, WIDTH, 2) / WIDTH)
POSITIONS = jnp.stack([jnp.sin(angles), jnp.cos(angles)], 2).reshape(CONTEXT, WIDTH)


def logits_of(p, sources, lengths, tokens, key):
    keys = (None, None) if key is None else jax.random.split(key)
    embedded = lambda table, rows: (table[rows] * math.sqrt(WIDTH) + POSITIONS[: rows.shape[1]]).astype(DTYPE)
    there = (jnp.arange(sources.shape[1])[None, :] < lengths[:, None])[:, None, None, :]
    memory = stack(p["encoder"], p["encoder last"], embedded(p.get("source tokens", p["tokens"]), sources), there, keys[0])
    causal = jnp.tril(jnp.ones((tokens.shape[1], tokens.shape[1]), bool))
    x = stack(p["decoder"], p["decoder last"], embedded(p["tokens"], tokens), causal, keys[1], memory, there)
    return (x @ p.get("head", p["tokens"]).astype(DTYPE).T).astype(jnp.float32) + p["bias"]


def loss_of(p, sources, lengths, tokens, targets, key):
    logs = jax.nn.log_softmax(logits_of(p, sources, lengths, tokens, key))
    share = model["smoothing"]
    right = jnp.take_along_axis(logs, jnp.maximum(targets, 0)[..., None], -1)[..., 0]
    return -jnp.where(targets >= 0, (1 - share) * right + share * logs.mean(-1), 0).sum() / (targets >= 0).sum()


compiles = 0


@jax.jit
def step(p, first, second, count, rate, key, *batch):
    """A step of Adam."""
    global compiles
    compiles += 1  # when it is traced
    loss, gradient = jax.value_and_grad(loss_of)(p, *batch, key)
    (b1, b2), epsilon = model["betas"], model["epsilon"]
    first = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, first, gradient)
    second = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, second, gradient)
    change = lambda w, m, v: w - rate * (m / (1 - b1**count)) / (jnp.sqrt(v / (1 - b2**count)) + epsilon)
    return jax.tree.map(change, p, first, second), first, second, loss


@jax.jit
def judged(p, sources, lengths, tokens, targets):
    logits = logits_of(p, sources, lengths, tokens, None)
    right = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(targets, 0)[..., None], -1)[..., 0]
    here = targets >= 0
    return here.sum(), ((logits.argmax(-1) == targets) & here).sum(), -jnp.where(here, right, 0).sum()


data = read(model["data"])
batches = {name: Batches(data[name], data["begin"], data["end"], model["batch"], model["places"]) for name in ("train", "val")}
parameters = first_parameters(jax.random.key(model["seed"]))
state = parameters, jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters)
done = {"steps": 0, "epochs": 0}
arrays = lambda batch: [jnp.asarray(part, dtype=jnp.int32) for part in batch]


def epoch():
    global state
    begin, tokens, losses = time.perf_counter(), 0, []
    for batch in batches["train"].epoch(done["epochs"]):
        done["steps"] += 1
        count, warmup = done["steps"], min(model["warmup"], model["epochs"] * len(batches["train"]))
        rate = model["rate"] * (min(count / warmup, math.sqrt(warmup / count)) if warmup else 1)
        *state, loss = step(*state, float(count), rate, jax.random.key(count), *arrays(batch))
        losses.append(float(loss))
        tokens += sum(target >= 0 for row in batch[3] for target in row)
    done["epochs"] += 1
    return {"seconds": time.perf_counter() - begin, "tokens": tokens, "loss": sum(losses) / len(losses), "compiles": compiles,
            "shapes": len(batches["train"].shapes())}


def validate():
    sums = [judged(state[0], *arrays(batch)) for batch in batches["val"].all()]
    count, right, loss = (float(sum(column)) for column in zip(*sums))
    return {"loss": loss / count, "accuracy": right / count}


print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps({"epoch": epoch, "validate": validate}[line.strip()]()), flush=True)
