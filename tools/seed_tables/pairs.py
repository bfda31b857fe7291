"""Pairs of token sequences as micro-batches, cut as `translate train` cuts them: pairs of like lengths are put together, as
many as a number of places allows. For peers of seed002.py, which need nothing but Python for it."""

import json
import math
import random
import sys
import time


def read(path):
    """What seed002.py wrote: {"begin": …, "end": …, "train": [[source, target], …], "val": …, "test": …}."""
    with open(path, encoding="utf-8") as data:
        return json.load(data)


class Batches:
    """`longest` sequences and `places` of either side at most, marks included (0: any)."""

    def __init__(self, pairs, begin, end, longest, places):
        self.begin, self.end = begin, end
        self.pairs = sorted((([*source, end], target) for source, target in pairs), key=self.lengths)
        self.begins, source = [], 0
        for number, pair in enumerate(self.pairs):
            source = max(source, len(pair[0]))
            count = number + 1 - self.begins[-1] if self.begins else 0
            if not self.begins or count > longest or places and count * max(source, len(pair[1]) + 1) > places:
                self.begins.append(number)
                source = len(pair[0])

    @staticmethod
    def lengths(pair):
        return len(pair[1]), len(pair[0])

    def parts(self, pairs):
        return [pairs[begin:end] for begin, end in zip(self.begins, [*self.begins[1:], len(pairs)])]

    def __len__(self):
        return len(self.begins)

    def shapes(self):
        return {(len(part), max(len(s) for s, _ in part), len(part[-1][1]) + 1) for part in self.parts(self.pairs)}

    def batch(self, part):
        """Sources, their lengths, tokens, and targets, -1 where there is none: lists of as many rows as pairs."""
        width, height = max(len(source) for source, _ in part), max(len(target) for _, target in part) + 1
        pad = lambda row, to, value: row + [value] * (to - len(row))
        return ([pad(source, width, self.end) for source, _ in part], [len(source) for source, _ in part],
                [pad([self.begin, *target], height, self.end) for _, target in part],
                [pad([*target, self.end], height, -1) for _, target in part])

    def epoch(self, number):
        """The micro-batches of a pass: pairs of the same lengths, and the batches, in an order of its own."""
        chance, pairs = random.Random(number), list(self.pairs)
        chance.shuffle(pairs)
        parts = self.parts(sorted(pairs, key=self.lengths))
        chance.shuffle(parts)
        return map(self.batch, parts)

    def all(self):
        return map(self.batch, self.parts(self.pairs))


class Training:
    """What a peer does with the model and the pairs that it is told: a pass over the pairs, a look at others, translations."""

    def __init__(self, model):
        self.model, self.data = model, read(model["data"])
        self.batches = {name: Batches(self.data[name], self.data["begin"], self.data["end"], model["batch"], model["places"])
                        for name in ("train", "val")}
        self.steps = self.epochs = 0

    def rate(self):
        warmup = min(self.model["warmup"], self.model["epochs"] * len(self.batches["train"]))
        return self.model["rate"] * (min(self.steps / warmup, math.sqrt(warmup / self.steps)) if warmup else 1)

    def __call__(self, what, step, judged, compiles, translated=None):
        """`step` gives the loss of a rate and a micro-batch, `judged` its targets, those that are right, and the sum of their
        losses, `compiles` how many there were, `translated` the tokens for a few sources."""
        if what == "validate":
            count, right, loss = (sum(column) for column in zip(*map(judged, self.batches["val"].all())))
            return {"loss": loss / count, "accuracy": right / count}
        if what == "translate":
            sources = [source for source, _ in self.data["test"]]
            order, lines = sorted(range(len(sources)), key=lambda i: len(sources[i])), {}
            for some in (order[first : first + 50] for first in range(0, len(order), 50)):
                lines |= zip(some, translated([sources[i] for i in some]))
            return {"tokens": [lines[i] for i in range(len(sources))]}
        begin, tokens, losses = time.perf_counter(), 0, []
        for batch in self.batches["train"].epoch(self.epochs):
            self.steps += 1
            losses.append(step(self.rate(), batch))
            tokens += sum(target >= 0 for row in batch[3] for target in row)
        self.epochs += 1
        return {"seconds": time.perf_counter() - begin, "tokens": tokens, "loss": sum(losses) / len(losses),
                "compiles": compiles(), "shapes": len(self.batches["train"].shapes())}


def answer(act):
    """Says that the peer is ready, and answers each line."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(act(line.strip())), flush=True)
