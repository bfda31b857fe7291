"""PyTorch as a peer of seed000.py and seed001.py: trains the model that the argument describes, on random tokens. See
children.Peer for what it reads and prints."""

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

model = json.loads(sys.argv[1])
device = "cuda" if torch.cuda.is_available() else "cpu"
if model["compile"] and device == "cpu" and not any(map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))):
    print("no C++ compiler", flush=True)  # which torch.compile calls
    sys.exit()
WIDTH, HEADS, CONTEXT, VOCAB = model["width"], model["heads"], model["context"], model["vocab"]


class Norm(torch.nn.Module):
    """LayerNorm; with an epsilon of 0 by the deviation over n - 1, as seed 001 has it."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(WIDTH)), torch.nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        if model["epsilon"] > 0:
            return F.layer_norm(x, (WIDTH,), self.weight, self.bias, model["epsilon"])
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * self.weight + self.bias


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = Norm(), Norm()
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=model["attention_bias"])
        self.out = torch.nn.Linear(WIDTH, WIDTH, bias=model["attention_bias"])
        self.up, self.down = torch.nn.Linear(WIDTH, model["inner"]), torch.nn.Linear(model["inner"], WIDTH)
        self.register_buffer("mask", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).tril())

    def attention(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        chance = model["attention_dropout"]
        if model["flash"]:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=chance)
        else:
            scores = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)).masked_fill(~self.mask, -math.inf)
            mixed = F.dropout(scores.softmax(-1), chance) @ v
        return self.out(mixed.transpose(1, 2).reshape(x.shape))

    def forward(self, x):
        x = x + F.dropout(self.attention(self.norm1(x)), model["dropout"])
        up = self.up(self.norm2(x))
        active = F.dropout(F.relu(up), model["dropout"]) if model["activation"] == "relu" else F.gelu(up, approximate="tanh")
        return x + F.dropout(self.down(active), model["dropout"])


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(VOCAB, WIDTH), torch.nn.Embedding(CONTEXT, WIDTH)
        self.blocks = torch.nn.ModuleList([Block() for _ in range(model["layers"])])
        self.last = Norm() if model["last_norm"] else torch.nn.Identity()
        self.head = torch.nn.Linear(WIDTH, VOCAB)
        if model["tied"]:
            self.head.weight = self.tokens.weight

    def forward(self, data):
        x = self.tokens(data[:, :-1]) * (math.sqrt(WIDTH) if model.get("scale") else 1)
        if model["shift"]:
            x = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:]], 1)
        x = F.dropout(x + self.positions.weight, model["dropout"])
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.last(x)).view(-1, VOCAB).float(), data[:, 1:].reshape(-1))


torch.manual_seed(1)
network = Network().to(device)
loss_of = torch.compile(network, dynamic=model["dynamic"]) if model["compile"] else network
adam = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=0.01)
dtype = getattr(torch, model["dtype"])
cast = torch.autocast(device, dtype) if dtype != torch.float32 else contextlib.nullcontext()
scaler = torch.amp.GradScaler(device, enabled=dtype == torch.float16)


def step():
    adam.zero_grad()
    for _ in range(model["micro"]):
        data = torch.randint(VOCAB, (model["batch"], CONTEXT + 1), device=device)
        with cast:
            loss = loss_of(data) / model["micro"]
        scaler.scale(loss).backward()
    scaler.step(adam)
    scaler.update()


step()  # compiles
step()
print("ready", flush=True)
for line in sys.stdin:
    begin = time.perf_counter()
    for _ in range(int(line)):
        step()
    if device == "cuda":
        torch.cuda.synchronize()
    print(time.perf_counter() - begin, flush=True)
