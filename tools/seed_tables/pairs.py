"""Pairs of token sequences as micro-batches, cut as `translate train` cuts them: pairs of like lengths are put together, as
many as a number of places allows. For peers of seed002.py, which need nothing but Python for it."""

import json
import random


def read(path):
    """What seed002.py wrote: {"begin": …, "end": …, "train": [[source, target], …], "val": …, "test": …}."""
    with open(path, encoding="utf-8") as data:
        return json.load(data)


class Batches:
    """`longest` sequences and `places` of either side at most, marks included (0: any)."""

    def __init__(self, pairs, begin, end, longest, places):
        self.begin, self.end = begin, end
        pairs = sorted(([*source, end], target) for source, target in pairs)
        pairs.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
        self.parts, source = [], 0
        for pair in pairs:
            source = max(source, len(pair[0]))
            count = len(self.parts[-1]) + 1 if self.parts else 0
            if not self.parts or count > longest or places and count * max(source, len(pair[1]) + 1) > places:
                self.parts.append([])
                source = len(pair[0])
            self.parts[-1].append(pair)

    def __len__(self):
        return len(self.parts)

    def shapes(self):
        return {(len(part), max(len(s) for s, _ in part), len(part[-1][1]) + 1) for part in self.parts}

    def batch(self, part):
        """Sources, their lengths, tokens, and targets, -1 where there is none: lists of as many rows as pairs."""
        width, height = max(len(source) for source, _ in part), max(len(target) for _, target in part) + 1
        pad = lambda row, to, value: row + [value] * (to - len(row))
        return ([pad(source, width, self.end) for source, _ in part], [len(source) for source, _ in part],
                [pad([self.begin, *target], height, self.end) for _, target in part],
                [pad([*target, self.end], height, -1) for _, target in part])

    def epoch(self, number):
        """The micro-batches of a pass, in an order of its own."""
        order = list(range(len(self.parts)))
        random.Random(number).shuffle(order)
        return (self.batch(self.parts[i]) for i in order)

    def all(self):
        return (self.batch(part) for part in self.parts)
