"""PyTorch as a peer of seed002.py: trains the encoder and decoder that the argument describes on pairs. See
seed002.PairPeer for what it reads and prints."""

import contextlib
import json
import math
import os
import shutil
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("absent", flush=True)
    sys.exit()

from pairs import Batches, read

model = json.loads(sys.argv[1])
device = "cuda" if torch.cuda.is_available() else "cpu"
if model["compile"] and device == "cpu" and not any(map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))):
    print("no C++ compiler", flush=True)  # which torch.compile calls
    sys.exit()
if model["compile"]:
    torch._dynamo.config.cache_size_limit = torch._dynamo.config.accumulated_cache_size_limit = 100000  # no shape in eager
WIDTH, HEADS, INNER, CONTEXT, VOCAB = (model[name] for name in ("width", "heads", "inner", "context", "vocab"))
SMALL = model["name"] == "small"  # else seed002: tables and a head of its own, PyTorch's weights to begin with


class Norm(torch.nn.Module):
    """LayerNorm; in seed 002 by the deviation over n - 1, to which epsilon is added."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(WIDTH)), torch.nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        if SMALL:
            return F.layer_norm(x, (WIDTH,), self.weight, self.bias, 1e-5)
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) * self.weight + self.bias


class Attention(torch.nn.Module):
    """Of one's own places, or of a memory's."""

    def __init__(self, cross):
        super().__init__()
        self.query = torch.nn.Linear(WIDTH, WIDTH if cross else 3 * WIDTH)
        self.memory = torch.nn.Linear(WIDTH, 2 * WIDTH) if cross else None
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        if SMALL:
            for linear in filter(None, (self.query, self.memory)):
                torch.nn.init.xavier_uniform_(linear.weight)
            for linear in filter(None, (self.query, self.memory, self.out)):
                torch.nn.init.zeros_(linear.bias)

    def forward(self, x, memory=None, mask=None):
        parts = self.query(x).chunk(3, -1) if self.memory is None else (self.query(x), *self.memory(memory).chunk(2, -1))
        q, k, v = (part.view(*part.shape[:2], HEADS, -1).transpose(1, 2) for part in parts)
        chance = model["attention_dropout"] if self.training else 0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, dropout_p=chance)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Block(torch.nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.norm1, self.own, self.norm2 = Norm(), Attention(False), Norm()
        self.norm3, self.cross = (Norm(), Attention(True)) if cross else (None, None)
        self.up, self.down = torch.nn.Linear(WIDTH, INNER), torch.nn.Linear(INNER, WIDTH)

    def forward(self, x, mask, memory=None, seen=None):
        drop = lambda y: F.dropout(y, model["dropout"], self.training)
        x = x + drop(self.own(self.norm1(x), mask=mask))
        if memory is not None:
            x = x + drop(self.cross(self.norm3(x), memory, seen))
        return x + drop(self.down(drop(F.relu(self.up(self.norm2(x))))))


class Side(torch.nn.Module):
    def __init__(self, blocks, cross):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCAB, WIDTH)
        if SMALL:
            torch.nn.init.normal_(self.tokens.weight, std=1 / math.sqrt(WIDTH))
        self.blocks, self.last = torch.nn.ModuleList([Block(cross) for _ in range(blocks)]), Norm()
        angle = torch.arange(CONTEXT)[:, None] * 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], 2).view(CONTEXT, WIDTH))

    def forward(self, tokens, mask, memory=None, seen=None):
        x = self.tokens(tokens) * math.sqrt(WIDTH) + self.positions[: tokens.shape[1]]
        x = F.dropout(x, model["dropout"], self.training)
        for block in self.blocks:
            x = block(x, mask, memory, seen)
        return self.last(x)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Side(model["encoder_layers"], False), Side(model["layers"], True)
        self.head = torch.nn.Linear(WIDTH, VOCAB)
        if SMALL:
            self.encoder.tokens.weight = self.head.weight = self.decoder.tokens.weight

    def encode(self, sources, lengths):
        there = (torch.arange(sources.shape[1], device=sources.device)[None, :] < lengths[:, None])[:, None, None, :]
        return self.encoder(sources, there), there

    def forward(self, sources, lengths, tokens):
        memory, there = self.encode(sources, lengths)
        return self.head(self.decoder(tokens, None, memory, there))


def loss_of(sources, lengths, tokens, targets):
    logits = network(sources, lengths, tokens)
    smoothing = model["smoothing"] if network.training else 0
    return F.cross_entropy(logits.view(-1, VOCAB).float(), targets.view(-1), ignore_index=-1, label_smoothing=smoothing)


torch.manual_seed(model["seed"])
data = read(model["data"])
batches = {name: Batches(data[name], data["begin"], data["end"], model["batch"], model["places"]) for name in ("train", "val")}
network = Network().to(device)
compiled = torch.compile(loss_of, dynamic=model["dynamic"]) if model["compile"] else loss_of
adam = torch.optim.Adam(network.parameters(), lr=model["rate"], betas=model["betas"], eps=model["epsilon"])
dtype = getattr(torch, model["dtype"])
cast = lambda: torch.autocast(device, dtype) if dtype != torch.float32 else contextlib.nullcontext()
tensors = lambda batch: [torch.tensor(part, device=device) for part in batch]
done = {"steps": 0, "epochs": 0}


def rate():
    count, warmup = done["steps"], min(model["warmup"], model["epochs"] * len(batches["train"]))
    return model["rate"] * (min(count / warmup, math.sqrt(warmup / count)) if warmup else 1)


def epoch():
    network.train()
    begin, tokens, losses = time.perf_counter(), 0, []
    for batch in batches["train"].epoch(done["epochs"]):
        done["steps"] += 1
        for group in adam.param_groups:
            group["lr"] = rate()
        batch = tensors(batch)
        adam.zero_grad()
        with cast():
            loss = compiled(*batch)
        loss.backward()
        adam.step()
        losses.append(loss.item())
        tokens += int((batch[3] >= 0).sum())
    done["epochs"] += 1
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"] if model["compile"] else 0
    return {"seconds": time.perf_counter() - begin, "tokens": tokens, "loss": sum(losses) / len(losses), "compiles": graphs,
            "shapes": len(batches["train"].shapes())}


@torch.no_grad()
def validate():
    network.eval()
    count = right = loss = 0
    for batch in batches["val"].all():
        *inputs, targets = tensors(batch)
        with cast():
            logits = network(*inputs).float()
        here = targets >= 0
        count += int(here.sum())
        right += int((logits.argmax(-1) == targets)[here].sum())
        loss += F.cross_entropy(logits.view(-1, VOCAB), targets.view(-1), ignore_index=-1, reduction="sum").item()
    return {"loss": loss / count, "accuracy": right / count}


@torch.no_grad()
def translate(side_by_side=50):
    """The likeliest token each time for the sources of `test`."""
    network.eval()
    lines = [None] * len(data["test"])
    order = sorted(range(len(lines)), key=lambda i: len(data["test"][i][0]))
    for first in range(0, len(order), side_by_side):
        some = order[first : first + side_by_side]
        sources = [[*data["test"][i][0], data["end"]] for i in some]
        width = max(map(len, sources))
        lengths = torch.tensor([len(source) for source in sources], device=device)
        memory, there = network.encode(
            torch.tensor([source + [data["end"]] * (width - len(source)) for source in sources], device=device), lengths)
        tokens = torch.full((len(some), 1), data["begin"], device=device)
        ended = torch.zeros(len(some), dtype=torch.bool, device=device)
        while tokens.shape[1] < CONTEXT and not ended.all():
            following = network.head(network.decoder(tokens, None, memory, there)[:, -1]).argmax(-1)
            tokens = torch.cat([tokens, following[:, None]], 1)
            ended |= following == data["end"]
        for i, row in zip(some, tokens[:, 1:].tolist()):
            lines[i] = row[: row.index(data["end"])] if data["end"] in row else row
    return {"tokens": lines}


print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps({"epoch": epoch, "validate": validate, "translate": translate}[line.strip()]()), flush=True)
