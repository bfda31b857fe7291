"""PyTorch on the products, the attention, the row kernels and the training step that kiln-bench measures: a JSON object a
line on standard output, {"name", "ms", a rate}, or {"name", "outcome": "absent"} for what is not there.

Inputs are random numbers; times are medians of the device's own events after a warm-up.
"""

import json
import statistics
import sys


def note(name, **more):
    print(json.dumps({"name": name, **more}), flush=True)


def absent(name, error):
    note(name, outcome="absent", reason=str(error).splitlines()[0] if str(error) else type(error).__name__)


try:
    import torch
    import torch.nn.functional as F

    torch.zeros(1, device="cuda")
except Exception as error:  # no PyTorch, or one without a GPU
    absent("all", error)
    sys.exit(0)


def milliseconds(run, repeats=30, warmup=5):
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def randn(*shape, dtype=torch.float32, grad=False):
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def copy():
    source = randn(64 << 20)
    target = torch.empty_like(source)
    ms = milliseconds(lambda: target.copy_(source))
    note("copy 256 MB", ms=ms, gb_per_s=2 * source.nbytes / ms / 1e6)


def matmul():
    """The twelve products of GPT-2 124M's layers, and those of its output layer, by cuBLAS."""
    layers = (("qkv", 768, 2304), ("proj", 768, 768), ("fc", 768, 3072), ("fcproj", 3072, 768), ("lm head", 768, 50304))
    for dtype, tf32 in ((torch.float32, False), (torch.float32, True), (torch.bfloat16, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        kind = "tf32" if tf32 else str(dtype).split(".")[1]
        for tokens in (256, 1024, 65536):
            for name, inner, outer in layers:
                if tokens == 65536 and name == "lm head" and dtype == torch.float32:
                    continue  # its result alone has 13 GB
                x, w, dy = (randn(*s, dtype=dtype) for s in ((tokens, inner), (inner, outer), (tokens, outer)))
                for what, run in (("fwd", lambda: x @ w), ("dX", lambda: dy @ w.t()), ("dW", lambda: x.t() @ dy)):
                    ms = milliseconds(run, repeats=10)
                    note(f"matmul {name} {what} {tokens}x{outer}x{inner} {kind}", ms=ms,
                         gflops=2 * tokens * inner * outer / ms / 1e6)


def attention():
    for batch, length in ((4, 64), (1, 256), (1, 1024), (64, 1024)):
        q, k, v = (randn(batch, 12, length, 64, dtype=torch.bfloat16, grad=True) for _ in range(3))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        gradient = torch.randn_like(out)
        useful = 4 * 64 * length * (length + 1) / 2 * batch * 12
        shape = f"B={batch} T={length} H=12 D=64 bfloat16"
        ms = milliseconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        note("attention forward " + shape, ms=ms, gflops=useful / ms / 1e6)
        ms = milliseconds(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
        note("attention backward " + shape, ms=ms, gflops=2.5 * useful / ms / 1e6)


def rows():
    x, w, b = randn(8192, 768, grad=True), randn(768, grad=True), randn(768, grad=True)
    y = F.layer_norm(x, (768,), w, b)
    gradient = torch.randn_like(y)
    ms = milliseconds(lambda: F.layer_norm(x, (768,), w, b))
    note("layernorm forward 8192x768", ms=ms, gb_per_s=2 * x.nbytes / ms / 1e6)
    ms = milliseconds(lambda: torch.autograd.grad(y, (x, w, b), gradient, retain_graph=True))
    note("layernorm backward 8192x768", ms=ms, gb_per_s=4 * x.nbytes / ms / 1e6)
    logits, target = randn(256, 50257, grad=True), torch.randint(0, 50257, (256,), device="cuda")
    ms = milliseconds(lambda: torch.autograd.grad(F.cross_entropy(logits, target), logits))
    note("cross-entropy forward and backward 256x50257", ms=ms, gb_per_s=2 * logits.nbytes / ms / 1e6)
    value = torch.zeros(124439808, device="cuda").requires_grad_()
    value.grad = torch.randn_like(value)
    step = torch.optim.AdamW([value], lr=1e-4, fused=True).step
    ms = milliseconds(step)
    note("adamw 124439808", ms=ms, gb_per_s=28 * value.numel() / ms / 1e6)


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.projection = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).split(width, 2)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self, layers=12, width=768, heads=12, context=1024, vocabulary=50304):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = torch.nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.last(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def step():
    torch.set_float32_matmul_precision("high")
    for batch, length, narrow in ((4, 64, False), (1, 1024, False), (32, 1024, True)):
        model = Gpt2().cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        compiled = torch.compile(model)
        text = torch.randint(0, 50257, (batch, length + 1), device="cuda")

        def train():
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=narrow):
                loss = compiled(text[:, :-1], text[:, 1:])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        ms = milliseconds(train, repeats=10)
        note(f"step 124M B={batch} T={length} {'bfloat16' if narrow else 'tf32'}, torch.compile", ms=ms,
             tokens_per_s=1e3 * batch * length / ms)


for section in (copy, matmul, attention, rows, step):
    try:
        section()
    except Exception as error:  # the others go on
        absent(section.__name__, error)
