"""Scores of HellaSwag's endings by Hugging Face's GPT-2, one sequence at a time. Writes those of made-up tasks by a tiny
model with made-up weights to test/models/gpt2/hellaswag.json, which a test reads; or prints what a trained model answers,
and how many answers are those of SCORES, a file that gpt2 eval --scores wrote, wherever scores lie 1e-4 apart:

    pip install torch transformers && python3 test/oracles/hellaswag.py test/models/gpt2/hellaswag.json
    python3 test/oracles/hellaswag.py --answers RUN TASKS.jsonl [SCORES]
"""

import json
import random
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel


torch.set_num_threads(1)


def drawn(name, count, scale):
    """Numbers in [-scale, scale) that any language makes again: a linear congruence begun with FNV-1a of the name."""
    state = 0x811c9dc5
    for byte in name.encode():
        state = (state ^ byte) * 0x01000193 % 2**32
    numbers = []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        numbers.append(((state >> 8) / 2**23 - 1) * scale)
    return numbers


def tiny():
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=16, n_positions=48, vocab_size=256)).eval()
    with torch.no_grad():
        for name, parameter in model.transformer.named_parameters():
            values = torch.tensor(drawn(name, parameter.numel(), 0.4)).reshape(parameter.shape)
            parameter.copy_(values + 1 if ".ln_" in "." + name and name.endswith("weight") else values)
    return model


@torch.no_grad()
def score(model, encode, task):
    """The loss of each ending behind the context: of the last tokens that the model sees."""
    length, sums, counts = model.config.n_positions, [], []
    context = encode(task["ctx"])
    for ending in task["endings"]:
        own = encode(" " + ending)
        seen = (context + own)[-(length + 1):]
        judged = min(len(own), len(seen) - 1)
        ids = torch.tensor(seen)
        losses = torch.nn.functional.cross_entropy(model(ids[None, :-1]).logits[0].double(), ids[1:], reduction="none")
        sums.append(losses[-judged:].sum().item())
        counts.append(judged)
    return sums, counts


def least(numbers):
    return min(range(len(numbers)), key=lambda i: numbers[i])


def compare(theirs, ours):
    """Prints how many of our answers are theirs, by sum and by mean, and the largest relative difference of a sum."""
    if [counts for _, counts in theirs] != [row["tokens"] for row in ours]:
        sys.exit("expected as many tokens of each ending in both, but they differ")
    for name, of in (("mean loss", lambda sums, counts: [s / n for s, n in zip(sums, counts)]),
                     ("sum", lambda sums, counts: sums)):
        same = close = 0
        for (sums, counts), row in zip(theirs, ours):
            scores = of(sums, counts)
            same += least(scores) == least(of(row["sums"], counts))
            close += sorted(scores)[1] - min(scores) <= 1e-4 and least(scores) != least(of(row["sums"], counts))
        print(f"by {name}: {same} of {len(ours)} answers equal, {close} of the others within 1e-4 of a second ending")
    worst = max(abs(a - b) / a for (sums, _), row in zip(theirs, ours) for a, b in zip(sums, row["sums"]))
    print(f"sums differ by {worst:.1e} of theirs at most")


def answers(folder, path, scores=None):
    model = GPT2LMHeadModel.from_pretrained(folder).eval()
    encode = lambda text: list(text.encode())
    if model.config.vocab_size != 256:
        from transformers import PreTrainedTokenizerFast
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
        encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]
    with open(path, encoding="utf-8") as file:
        tasks = [json.loads(line) for line in file]
    by_sum = by_mean = 0
    theirs = [score(model, encode, task) for task in tasks]
    for task, (sums, counts) in zip(tasks, theirs):
        by_sum += least(sums) == int(task["label"])
        by_mean += least([total / count for total, count in zip(sums, counts)]) == int(task["label"])
    print(f"hellaswag {by_mean / len(tasks):.4f} by mean loss, {by_sum / len(tasks):.4f} by its sum, of {len(tasks)} tasks")
    if scores:
        with open(scores, encoding="utf-8") as file:
            compare(theirs, [json.loads(line) for line in file])


def main():
    if sys.argv[1] == "--answers":
        return answers(*sys.argv[2:])
    random.seed(3)
    words = ["the", "a", "man", "dog", "runs", "jumps", "over", "then", "looks", "café", "up", "and", "down", "slowly"]
    text = lambda most: " ".join(random.choice(words) for _ in range(random.randint(1, most)))
    tasks = [{"ctx": text(9), "endings": [text(4) for _ in range(4)], "label": random.randrange(4)} for _ in range(40)]
    tasks[7]["endings"][2] = text(4) + " over" * 20  # longer than all that the model sees
    model = tiny()
    for task in tasks:
        task["sums"], task["judged"] = score(model, lambda words: list(words.encode()), task)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"tasks": tasks}, out, separators=(",", ":"))
        out.write("\n")


main()
