"""JAX as a peer, compiled by jit: the tasks `train`, without a scaled loss, `pairs`, for each shape and without translations, and
`vmap` of peer_torch.py."""

import json
import math
import sys
import time

from children import spread
from pairs import Training, answer

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    print("absent", flush=True)
    sys.exit()

model = json.loads(sys.argv[1])
WIDTH, HEADS, CONTEXT, VOCAB, INNER = (model.get(name) for name in ("width", "heads", "context", "vocab", "inner"))
DTYPE = getattr(jnp, model.get("dtype", "float32"))


def uniform(key, shape, bound):
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def linear(key, inner, outer, bias=True, xavier=False, zero=False):
    keys, bound = jax.random.split(key), 1 / math.sqrt(inner)
    weight = uniform(keys[0], (inner, outer), math.sqrt(6 / (inner + outer)) if xavier else bound)
    return {"w": weight, **({"b": jnp.zeros(outer) if zero else uniform(keys[1], (outer,), bound)} if bias else {})}


def first_norm():
    return {"w": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}


def first_block(key, cross):
    keys, bias, xavier = jax.random.split(key, 7), model["attention_bias"], model["xavier"]
    mixing = lambda k, outer: linear(k, WIDTH, outer, bias, xavier, zero=xavier)
    out = lambda k: linear(k, WIDTH, WIDTH, bias, zero=xavier)
    block = {"norm1": first_norm(), "qkv": mixing(keys[0], 3 * WIDTH), "mixed": out(keys[1]), "norm2": first_norm(),
             "up": linear(keys[2], WIDTH, INNER), "down": linear(keys[3], INNER, WIDTH)}
    if cross:
        block |= {"norm3": first_norm(), "query": mixing(keys[4], WIDTH), "memory": mixing(keys[5], 2 * WIDTH), "looked": out(keys[6])}
    return block


def first_parameters(key):
    keys, encoder = jax.random.split(key, 7), model["encoder_layers"]
    table = lambda k, rows=VOCAB: jax.random.normal(k, (rows, WIDTH)) / (math.sqrt(WIDTH) if model["xavier"] else 1)
    blocks = lambda k, count, cross: [first_block(one, cross) for one in jax.random.split(k, count)]
    parameters = {"tokens": table(keys[0]), "decoder": blocks(keys[2], model["layers"], encoder > 0), "decoder last": first_norm(),
                  "bias": uniform(keys[3], (VOCAB,), 1 / math.sqrt(WIDTH))}
    if encoder:
        parameters |= {"encoder": blocks(keys[1], encoder, False), "encoder last": first_norm()}
    if encoder and not model["tied"]:
        parameters["source tokens"] = table(keys[4])
    if not model["tied"]:
        parameters["head"] = uniform(keys[5], (VOCAB, WIDTH), 1 / math.sqrt(WIDTH))
    if not model["waves"]:
        parameters["positions"] = table(keys[6], CONTEXT)
    return parameters


def apply(p, x):
    y = x @ p["w"].astype(DTYPE)
    return y + p["b"].astype(DTYPE) if "b" in p else y


def norm(p, x):
    """With `bessel` by the deviation over n - 1, to which epsilon is added."""
    x, epsilon = x.astype(jnp.float32), model["norm_epsilon"]
    by = x.std(-1, keepdims=True, ddof=1) + epsilon if model["bessel"] else jnp.sqrt(x.var(-1, keepdims=True) + epsilon)
    return ((x - x.mean(-1, keepdims=True)) / by * p["w"] + p["b"]).astype(DTYPE)


def dropped(key, x, chance):
    if key is None or chance == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - chance, x.shape), x / (1 - chance), 0).astype(x.dtype)


def mixed(q, k, v, mask, key):
    heads = lambda x: x.reshape(*x.shape[:2], HEADS, -1).swapaxes(1, 2)
    scores = (heads(q) @ heads(k).swapaxes(-1, -2)).astype(jnp.float32) / math.sqrt(WIDTH // HEADS)
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9)).astype(DTYPE)
    return (dropped(key, weights, model["attention_dropout"]) @ heads(v)).swapaxes(1, 2).reshape(q.shape)


def stack(p, side, table, tokens, mask, key, memory=None, seen=None):
    """A side's blocks, from its tokens on."""
    take = iter([None] * (1 + 6 * len(p[side])) if key is None else jax.random.split(key, 1 + 6 * len(p[side])))
    drop = lambda y: dropped(next(take), y, model["dropout"])
    x = table[tokens] * (math.sqrt(WIDTH) if model["scale"] else 1)
    if model["shift"]:
        x = jnp.concatenate([jnp.zeros_like(x[:, :1]), x[:, 1:]], 1)
    x = drop((x + p.get("positions", WAVES)[: tokens.shape[1]]).astype(DTYPE))
    for block in p[side]:
        q, k, v = jnp.split(apply(block["qkv"], norm(block["norm1"], x)), 3, -1)
        x = x + drop(apply(block["mixed"], mixed(q, k, v, mask, next(take))))
        if memory is not None:
            k, v = jnp.split(apply(block["memory"], memory), 2, -1)
            query = apply(block["query"], norm(block["norm3"], x))
            x = x + drop(apply(block["looked"], mixed(query, k, v, seen, next(take))))
        up = apply(block["up"], norm(block["norm2"], x))
        x = x + drop(apply(block["down"], drop(jax.nn.relu(up)) if model["activation"] == "relu" else jax.nn.gelu(up)))
    return norm(p[f"{side} last"], x) if model["last_norm"] else x


def logits_of(p, key, tokens, sources=None, lengths=None):
    keys, memory, there = (None, None) if key is None else jax.random.split(key), None, None
    if sources is not None:
        there = (jnp.arange(sources.shape[1])[None, :] < lengths[:, None])[:, None, None, :]
        memory = stack(p, "encoder", p.get("source tokens", p["tokens"]), sources, there, keys[0])
    causal = jnp.tril(jnp.ones((tokens.shape[1], tokens.shape[1]), bool))
    x = stack(p, "decoder", p["tokens"], tokens, causal, keys[1], memory, there)
    return (x @ p.get("head", p["tokens"]).astype(DTYPE).T).astype(jnp.float32) + p["bias"]


def loss_of(p, key, tokens, targets, *sources):
    logs = jax.nn.log_softmax(logits_of(p, key, tokens, *sources))
    share = model["smoothing"]
    right = jnp.take_along_axis(logs, jnp.maximum(targets, 0)[..., None], -1)[..., 0]
    return -jnp.where(targets >= 0, (1 - share) * right + share * logs.mean(-1), 0).sum() / (targets >= 0).sum()


def adam(state, gradient, count, rate, betas, epsilon, decay=0.0):
    """Parameters and moments after a step."""
    (p, first, second), (b1, b2) = state, betas
    first = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, first, gradient)
    second = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, second, gradient)
    change = lambda w, m, v: w - rate * (m / (1 - b1**count) / (jnp.sqrt(v / (1 - b2**count)) + epsilon) + decay * w)
    return jax.tree.map(change, p, first, second), first, second


def first_state():
    global WAVES
    angles = jnp.arange(CONTEXT)[:, None] * 10000.0 ** (-jnp.arange(0, WIDTH, 2) / WIDTH)
    WAVES = jnp.stack([jnp.sin(angles), jnp.cos(angles)], 2).reshape(CONTEXT, WIDTH)
    parameters = first_parameters(jax.random.key(model["seed"]))
    return parameters, jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters)


def train():
    state, count = first_state(), 0

    @jax.jit
    def step(state, count, key):
        keys = jax.random.split(key, 2 * model["micro"])
        gradient = jax.tree.map(jnp.zeros_like, state[0])
        for draw, drop in zip(keys[::2], keys[1::2]):
            data = jax.random.randint(draw, (model["batch"], CONTEXT + 1), 0, VOCAB)
            more = jax.grad(loss_of)(state[0], drop, data[:, :-1], data[:, 1:])
            gradient = jax.tree.map(lambda a, b: a + b / model["micro"], gradient, more)
        return adam(state, gradient, count, 1e-4, (0.9, 0.999), 1e-8, 0.01)

    def steps(number):
        nonlocal state, count
        begin = time.perf_counter()
        for _ in range(int(number)):
            count += 1
            state = step(state, float(count), jax.random.key(count))
        jax.block_until_ready(state)
        return time.perf_counter() - begin

    steps(2)  # compiles
    answer(steps)


def pairs():
    state, training, compiles = first_state(), Training(model), 0
    arrays = lambda batch: [jnp.asarray(part, dtype=jnp.int32) for part in batch]

    @jax.jit
    def stepped(state, count, rate, key, sources, lengths, tokens, targets):
        nonlocal compiles
        compiles += 1  # when it is traced
        loss, gradient = jax.value_and_grad(loss_of)(state[0], key, tokens, targets, sources, lengths)
        return adam(state, gradient, count, rate, model["betas"], model["epsilon"]), loss

    @jax.jit
    def sums(p, sources, lengths, tokens, targets):
        logits = logits_of(p, None, tokens, sources, lengths)
        right = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(targets, 0)[..., None], -1)[..., 0]
        here = targets >= 0
        return here.sum(), ((logits.argmax(-1) == targets) & here).sum(), -jnp.where(here, right, 0).sum()

    def step(rate, batch):
        nonlocal state
        state, loss = stepped(state, float(training.steps), rate, jax.random.key(training.steps), *arrays(batch))
        return float(loss)

    answer(lambda what: training(what, step, lambda batch: map(float, sums(state[0], *arrays(batch))), lambda: compiles))


def vmap():
    if model["device"].startswith("cuda") and jax.default_backend() != "gpu":
        print("absent", flush=True)
        sys.exit()
    attention = lambda q, k, v: jax.nn.softmax(q @ k.T / math.sqrt(q.shape[-1]), -1) @ v
    one, count = (jnp.dot, 2) if model["function"] == "dot" else (attention, 3)
    keys = jax.random.split(jax.random.key(0), count)
    tensors = [jax.random.uniform(key, (model["batch"], *model["extents"])) - 0.5 for key in keys]
    mapped = jax.vmap(one)
    mapped = jax.jit(mapped) if model["how"].startswith("jit") else mapped
    print(spread(model, lambda: jax.block_until_ready(mapped(*tensors))))


if __name__ == "__main__":
    {"train": train, "pairs": pairs, "vmap": vmap}[model["task"]]()
