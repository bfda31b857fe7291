"""Which tokens Hugging Face's processors leave, for test/models/generate/sampling_test.cc.

Logits, tokens that are there already, and settings follow from a generator of numbers that the test has too. The test
reads the file; it needs no library.

    pip install torch transformers && python3 test/oracles/sampling.py > test/models/generate/sampling.json

For each case: the tokens that are left, the likeliest first, as text, and the probability of the first.
"""

import json

import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

CASES, VOCAB = 1000, 26
state = 1


def draw(bound):
    """A number below `bound`: the upper half of a linear congruential generator (Knuth, MMIX)."""
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 33) % bound


cases = []
for case in range(CASES):
    # Multiples of 1/256, all different, so that no order depends on rounding.
    order = list(range(VOCAB))
    for i in range(VOCAB - 1, 0, -1):
        j = draw(i + 1)
        order[i], order[j] = order[j], order[i]
    logits = torch.tensor([[(rank * 61 + draw(60) - 800) / 256 for rank in order]], dtype=torch.float32)
    seen = [draw(VOCAB) for _ in range(6)]
    penalty = [1.0, 1.237, 1.71][draw(3)]
    temperature = [0.5, 1.0, 1.75][draw(3)]
    top_k = [0, 1, 5, 12][draw(4)]
    top_p = [1.0, 0.3, 0.7, 0.93][draw(4)]
    min_p = [0.0, 0.06, 0.4][draw(3)]
    scores = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([seen]), logits)
    scores = TemperatureLogitsWarper(temperature)(None, scores)
    if top_k:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p < 1:
        scores = TopPLogitsWarper(top_p)(None, scores)
    if min_p:
        scores = MinPLogitsWarper(min_p)(None, scores)
    chances = torch.softmax(scores.double(), -1)[0]
    left = sorted((t for t in range(VOCAB) if chances[t] > 0), key=lambda t: -float(chances[t]))
    cases.append(["".join(chr(97 + t) for t in left), round(float(chances.max()), 9)])

lines = [", ".join(json.dumps(c) for c in cases[i : i + 20]) for i in range(0, CASES, 20)]
print("[" + ",\n".join(lines) + "]")
