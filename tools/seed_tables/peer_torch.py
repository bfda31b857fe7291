"""PyTorch as a peer: a child that gets a task and what belongs to it as JSON, says `ready`, or why it is not, and answers lines.

    train     seed000.py's and seed001.py's model on random tokens; a line is a number of steps, the answer their seconds
    pairs     seed002.py's encoder and decoder on pairs; seed002.PairPeer says what it answers
    vmap      seed003.py's functions on a batch; prints what children.spread() makes, and ends
    generate  Hugging Face's `generate` with a GPT-2 from a folder, always the likeliest token. A line is two numbers, tokens to
              begin with and tokens to write; the answer is the seconds of each but the first, whose time reads the others
"""

import contextlib
import json
import math
import os
import shutil
import sys
import time

from children import spread
from pairs import Training, answer

try:
    import torch
    import torch.nn.functional as F

    if json.loads(sys.argv[1])["task"] == "generate":
        from transformers import GPT2LMHeadModel
except ImportError:
    print("absent", flush=True)
    sys.exit()

model = json.loads(sys.argv[1])
device = "cuda" if torch.cuda.is_available() else "cpu"


class Norm(torch.nn.Module):
    """LayerNorm; with `bessel` by the deviation over n - 1, to which epsilon is added."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(model["width"]))
        self.bias = torch.nn.Parameter(torch.zeros(model["width"]))

    def forward(self, x):
        if not model["bessel"]:
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, model["norm_epsilon"])
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + model["norm_epsilon"]) * self.weight + self.bias


class Attention(torch.nn.Module):
    """Of one's own places, or of a memory's."""

    def __init__(self, cross):
        super().__init__()
        width, bias = model["width"], model["attention_bias"]
        self.query = torch.nn.Linear(width, width if cross else 3 * width, bias)
        self.memory = torch.nn.Linear(width, 2 * width, bias) if cross else None
        self.out = torch.nn.Linear(width, width, bias)
        if model["xavier"]:
            for linear in filter(None, (self.query, self.memory)):
                torch.nn.init.xavier_uniform_(linear.weight)
            for linear in filter(None, (self.query, self.memory, self.out)):
                torch.nn.init.zeros_(linear.bias)

    def forward(self, x, memory=None, mask=None):
        parts = self.query(x).chunk(3, -1) if self.memory is None else (self.query(x), *self.memory(memory).chunk(2, -1))
        q, k, v = (part.view(*part.shape[:2], model["heads"], -1).transpose(1, 2) for part in parts)
        chance = model["attention_dropout"] if self.training else 0
        if model["flash"]:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, dropout_p=chance)
        else:
            causal = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=x.device).tril()
            scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~causal, -math.inf)
            mixed = F.dropout(scores.softmax(-1), chance) @ v
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Block(torch.nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.norm1, self.own, self.norm2 = Norm(), Attention(False), Norm()
        self.norm3, self.cross = (Norm(), Attention(True)) if cross else (None, None)
        self.up, self.down = torch.nn.Linear(model["width"], model["inner"]), torch.nn.Linear(model["inner"], model["width"])

    def forward(self, x, mask, memory=None, seen=None):
        drop = lambda y: F.dropout(y, model["dropout"], self.training)
        x = x + drop(self.own(self.norm1(x), mask=mask))
        if memory is not None:
            x = x + drop(self.cross(self.norm3(x), memory, seen))
        up = self.up(self.norm2(x))
        return x + drop(self.down(drop(F.relu(up)) if model["activation"] == "relu" else F.gelu(up, approximate="tanh")))


class Side(torch.nn.Module):
    """Tokens and positions, which are learned or waves, blocks, and a norm."""

    def __init__(self, blocks, cross):
        super().__init__()
        width, context = model["width"], model["context"]
        self.tokens = torch.nn.Embedding(model["vocab"], width)
        if model["xavier"]:
            torch.nn.init.normal_(self.tokens.weight, std=1 / math.sqrt(width))
        self.blocks = torch.nn.ModuleList([Block(cross) for _ in range(blocks)])
        self.last = Norm() if model["last_norm"] else torch.nn.Identity()
        if model["waves"]:
            angle = torch.arange(context)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
            self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], 2).view(context, width))
        else:
            self.positions = torch.nn.Parameter(torch.randn(context, width))

    def forward(self, tokens, mask, memory=None, seen=None):
        x = self.tokens(tokens) * (math.sqrt(model["width"]) if model["scale"] else 1)
        if model["shift"]:
            x = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:]], 1)
        x = F.dropout(x + self.positions[: tokens.shape[1]], model["dropout"], self.training)
        for block in self.blocks:
            x = block(x, mask, memory, seen)
        return self.last(x)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Side(model["encoder_layers"], False) if model["encoder_layers"] else None
        self.decoder = Side(model["layers"], self.encoder is not None)
        self.head = torch.nn.Linear(model["width"], model["vocab"])
        if model["tied"]:
            for side in filter(None, (self.decoder, self.encoder)):
                side.tokens.weight = self.head.weight

    def encode(self, sources, lengths):
        there = (torch.arange(sources.shape[1], device=sources.device)[None, :] < lengths[:, None])[:, None, None, :]
        return self.encoder(sources, there), there

    def forward(self, tokens, sources=None, lengths=None):
        memory = self.encode(sources, lengths) if sources is not None else ()
        return self.head(self.decoder(tokens, None, *memory))


def made():
    """The network, the loss of tokens, targets and sources, and how numbers are cast."""
    if model["compile"] and device == "cpu" and not any(map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))):
        print("no C++ compiler", flush=True)  # which torch.compile calls
        sys.exit()
    torch.manual_seed(model["seed"])
    network, dtype = Network().to(device), getattr(torch, model["dtype"])

    def loss_of(tokens, targets, *sources):
        smoothing = model["smoothing"] if network.training else 0
        logits = network(tokens, *sources).view(-1, model["vocab"]).float()
        return F.cross_entropy(logits, targets.reshape(-1), ignore_index=-1, label_smoothing=smoothing)

    cast = lambda: torch.autocast(device, dtype) if dtype != torch.float32 else contextlib.nullcontext()
    return network, torch.compile(loss_of, dynamic=model["dynamic"]) if model["compile"] else loss_of, cast


def train():
    network, loss_of, cast = made()
    adam = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=0.01)
    scaler = torch.amp.GradScaler(device, enabled=model["dtype"] == "float16")

    def steps(count):
        begin = time.perf_counter()
        for _ in range(int(count)):
            adam.zero_grad()
            for _ in range(model["micro"]):
                data = torch.randint(model["vocab"], (model["batch"], model["context"] + 1), device=device)
                with cast():
                    loss = loss_of(data[:, :-1], data[:, 1:]) / model["micro"]
                scaler.scale(loss).backward()
            scaler.step(adam)
            scaler.update()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    steps(2)  # compiles
    answer(steps)


def pairs():
    if model["compile"]:
        torch._dynamo.config.cache_size_limit = torch._dynamo.config.accumulated_cache_size_limit = 100000  # no shape in eager
    (network, loss_of, cast), training = made(), Training(model)
    adam = torch.optim.Adam(network.parameters(), lr=model["rate"], betas=model["betas"], eps=model["epsilon"])
    tensors = lambda batch: [torch.tensor(part, device=device) for part in batch]

    def step(rate, batch):
        network.train()
        for group in adam.param_groups:
            group["lr"] = rate
        sources, lengths, tokens, targets = tensors(batch)
        adam.zero_grad()
        with cast():
            loss = loss_of(tokens, targets, sources, lengths)
        loss.backward()
        adam.step()
        return loss.item()

    @torch.no_grad()
    def judged(batch):
        network.eval()
        sources, lengths, tokens, targets = tensors(batch)
        with cast():
            logits = network(tokens, sources, lengths).float()
        here = targets >= 0
        return int(here.sum()), int((logits.argmax(-1) == targets)[here].sum()), F.cross_entropy(
            logits.view(-1, model["vocab"]), targets.view(-1), ignore_index=-1, reduction="sum").item()

    @torch.no_grad()
    def translated(some):
        """The likeliest token each time for these sources."""
        network.eval()
        end, width = training.data["end"], max(map(len, some)) + 1
        memory = network.encode(torch.tensor([source + [end] * (width - len(source)) for source in some], device=device),
                                torch.tensor([len(source) + 1 for source in some], device=device))
        tokens = torch.full((len(some), 1), training.data["begin"], device=device)
        ended = torch.zeros(len(some), dtype=torch.bool, device=device)
        while tokens.shape[1] < model["context"] and not ended.all():
            following = network.head(network.decoder(tokens, None, *memory)[:, -1]).argmax(-1)
            tokens = torch.cat([tokens, following[:, None]], 1)
            ended |= following == end
        return [row[: row.index(end)] if end in row else row for row in tokens[:, 1:].tolist()]

    graphs = lambda: torch._dynamo.utils.counters["stats"]["unique_graphs"] if model["compile"] else 0
    answer(lambda what: training(what, step, judged, graphs, translated))


def vmap():
    gpu = model["device"].startswith("cuda")
    if gpu and device != "cuda":
        print("absent", flush=True)
        sys.exit()
    attention = lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v
    one, count = (torch.dot, 2) if model["function"] == "dot" else (attention, 3)
    tensors = [torch.rand(model["batch"], *model["extents"], device="cuda" if gpu else "cpu") - 0.5 for _ in range(count)]

    @torch.no_grad()
    def call():
        if model["how"] == "torch.vmap":
            torch.func.vmap(one)(*tensors)
        else:
            for example in range(model["batch"]):
                one(*(tensor[example] for tensor in tensors))
        if gpu:
            torch.cuda.synchronize()

    print(spread(model, call))


@torch.inference_mode()
def generate():
    torch.set_num_threads(model["threads"])
    torch.manual_seed(1)
    gpt2 = GPT2LMHeadModel.from_pretrained(model["folder"], dtype=getattr(torch, model["dtype"])).eval()
    gpt2.generation_config.eos_token_id = None

    def seconds(tokens, count):
        begin = time.perf_counter()
        gpt2.generate(tokens, attention_mask=torch.ones_like(tokens), min_new_tokens=count, max_new_tokens=count,
                      do_sample=False, pad_token_id=0)
        return time.perf_counter() - begin

    def each(line):
        behind, count = map(int, line.split())
        tokens = torch.randint(gpt2.config.vocab_size, (1, behind))
        return (seconds(tokens, count) - seconds(tokens, 1)) / (count - 1)

    answer(each)


if __name__ == "__main__":
    {"train": train, "pairs": pairs, "vmap": vmap, "generate": generate}[model["task"]]()
