"""Losses of 20 steps of small translation models in PyTorch, for test/models/translate/translate_test.cc.

Two blocks of width 32 on either side, on pairs whose tokens a formula gives, in the forms of the models `small` and
`annotated`. Weights are drawn as Kiln draws them: by Philox 4x32-10 under seed 7, a lane for each parameter in the order
of its list. The test reads the file; it needs no library.

    pip install torch==2.4.1 numpy && python3 test/oracles/translation.py > test/models/translate/losses.json

All is in double precision.
"""

import json
import math

import torch
import torch.nn.functional as F

from draws import Parameters, normals, uniforms

LAYERS, HEADS, WIDTH, INNER, CONTEXT, BATCH, SOURCE, TARGET, VOCAB, STEPS, SEED = 2, 4, 32, 96, 12, 4, 9, 7, 23, 20, 7
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class Model:
    """One of a form: `small` has one table, which is the head, too, and attention by Xavier; the other one its own, and
    norms by the deviation over n - 1, to which epsilon is added."""

    def __init__(self, small):
        self.small = small
        self.parameters = Parameters(SEED)
        self.table("decoder")
        for layer in range(LAYERS):
            self.block(f"decoder.{layer}", cross=True)
        self.norm("decoder.last")
        if not small:
            self.parameters.add("head.w", (VOCAB, WIDTH), uniforms, 1 / math.sqrt(WIDTH))
        self.parameters.add("head.b", (VOCAB,), uniforms, 1 / math.sqrt(WIDTH))
        if small:
            self.sinusoids("encoder")
        else:
            self.table("encoder")
        for layer in range(LAYERS):
            self.block(f"encoder.{layer}", cross=False)
        self.norm("encoder.last")

    def sinusoids(self, side):
        self.parameters.add(side + ".positions", (CONTEXT, WIDTH))
        place = torch.arange(CONTEXT).double()[:, None]
        angle = place * 10000.0 ** (-torch.arange(0, WIDTH, 2).double() / WIDTH)
        table = torch.stack([torch.sin(angle), torch.cos(angle)], 2).view(CONTEXT, WIDTH)
        self.parameters[side + ".positions"] = table

    def table(self, side):
        self.parameters.add(side + ".tokens", (VOCAB, WIDTH), normals, 1 / math.sqrt(WIDTH) if self.small else 1)
        self.sinusoids(side)

    def norm(self, name):
        self.parameters.add(name + ".w", (WIDTH,), fill=1.0)
        self.parameters.add(name + ".b", (WIDTH,))

    def linear(self, name, inner, outer, into=False, out=False):
        """`into` attention and `out` of it `small` has no biases to begin with."""
        bound = math.sqrt(6 / (inner + outer)) if into and self.small else 1 / math.sqrt(inner)
        self.parameters.add(name + ".w", (inner, outer), uniforms, bound)
        if (into or out) and self.small:
            self.parameters.add(name + ".b", (outer,))
        else:
            self.parameters.add(name + ".b", (outer,), uniforms, 1 / math.sqrt(inner))

    def block(self, name, cross):
        self.norm(name + ".n1")
        self.linear(name + ".qkv", WIDTH, 3 * WIDTH, into=True)
        self.linear(name + ".mixed", WIDTH, WIDTH, out=True)
        self.norm(name + ".n2")
        self.linear(name + ".up", WIDTH, INNER)
        self.linear(name + ".down", INNER, WIDTH)
        if cross:
            self.norm(name + ".n3")
            self.linear(name + ".query", WIDTH, WIDTH, into=True)
            self.linear(name + ".memory", WIDTH, 2 * WIDTH, into=True)
            self.linear(name + ".looked", WIDTH, WIDTH, out=True)

    def normed(self, x, name):
        weight, bias = self.parameters[name + ".w"], self.parameters[name + ".b"]
        if self.small:
            return F.layer_norm(x, (WIDTH,), weight, bias, 1e-5)
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) * weight + bias

    def apply(self, x, name):
        return x @ self.parameters[name + ".w"] + self.parameters[name + ".b"]

    def attention(self, q, k, v, mask):
        split = lambda x: x.view(x.shape[0], x.shape[1], HEADS, -1).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(split(q), split(k), split(v), attn_mask=mask)
        return mixed.transpose(1, 2).reshape(q.shape)

    def embedded(self, tokens, side):
        table = self.parameters["decoder.tokens" if self.small else side + ".tokens"]
        return F.embedding(tokens, table) * math.sqrt(WIDTH) + self.parameters[side + ".positions"][: tokens.shape[1]]

    def stack(self, x, side, mask, memory=None, seen=None):
        for layer in range(LAYERS):
            name = f"{side}.{layer}"
            q, k, v = self.apply(self.normed(x, name + ".n1"), name + ".qkv").split(WIDTH, 2)
            x = x + self.apply(self.attention(q, k, v, mask), name + ".mixed")
            if memory is not None:
                q = self.apply(self.normed(x, name + ".n3"), name + ".query")
                k, v = self.apply(memory, name + ".memory").split(WIDTH, 2)
                x = x + self.apply(self.attention(q, k, v, seen), name + ".looked")
            up = F.relu(self.apply(self.normed(x, name + ".n2"), name + ".up"))
            x = x + self.apply(up, name + ".down")
        return self.normed(x, side + ".last")

    def loss(self, sources, lengths, tokens, targets, smoothing):
        there = (torch.arange(SOURCE)[None, :] < lengths[:, None])[:, None, None, :]
        memory = self.stack(self.embedded(sources, "encoder"), "encoder", there)
        causal = torch.ones(TARGET, TARGET, dtype=torch.bool).tril()
        x = self.stack(self.embedded(tokens, "decoder"), "decoder", causal, memory, there)
        weight = self.parameters["decoder.tokens" if self.small else "head.w"]
        logits = (x @ weight.T + self.parameters["head.b"]).view(-1, VOCAB)
        return F.cross_entropy(logits, targets.view(-1), ignore_index=-1, label_smoothing=smoothing)


def losses_of(small):
    model = Model(small)
    learnt = [p for name, p in model.parameters.items() if not name.endswith("positions")]
    adam = torch.optim.Adam(learnt, lr=1, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(STEPS):
        for group in adam.param_groups:  # Vaswani et al. 2017 (3), with a warm-up of 5 steps to 1e-2
            group["lr"] = 1e-2 * min((step + 1) / 5, math.sqrt(5 / (step + 1)))
        token = lambda count, shift: (lambda i: (i * i * 7 + i * 13) % VOCAB)(torch.arange(count) + step * 31 + shift)
        tokens = token(BATCH * TARGET, 3).view(BATCH, TARGET)
        targets = token(BATCH * TARGET, 4).view(BATCH, TARGET).clone()
        lengths = torch.tensor([SOURCE, 1 + step % SOURCE, 3, 5])
        for row in range(BATCH):
            targets[row, 2 + (row + step) % (TARGET - 1) :] = -1
        adam.zero_grad()
        loss = model.loss(token(BATCH * SOURCE, 0).view(BATCH, SOURCE), lengths, tokens, targets, 0.1 if small else 0.0)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses


print(json.dumps({"small": losses_of(True), "annotated": losses_of(False)}, indent=1))
