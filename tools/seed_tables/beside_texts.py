"""Texts to tokens and vocabularies from texts, ours in turns with tiktoken's and Hugging Face's tokenizers."""

import array
import hashlib
import itertools
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time

import children
from tables import markdown


class Peer(children.Child):
    """A child that does what it is told."""

    def __init__(self, options, tokenizer=None):
        super().__init__(options.python, "peer_tokens.py", {"tokenizer": tokenizer}, RAYON_NUM_THREADS=str(options.threads),
                         TOKENIZERS_PARALLELISM="true")
        if self.why != "ready":
            wanted = "tiktoken and tokenizers" if self.why == "absent" else f"tokenizers that read '{tokenizer}'"
            sys.exit(f"tools/beside: expected {wanted} in {options.python}, but got none")

    def __call__(self, **task):
        return super().__call__(json.dumps(task))


def ran(arguments):
    """A run of our program `tokens`: seconds of its processor and of the clock."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    children.output(children.program("tokens"), *arguments)
    clock, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def hashOfTokens(path):
    """Of a file of tokens of 16 bits behind 256 numbers of 32, as the peers hash theirs."""
    with open(path, "rb") as file:
        return hashlib.sha256(array.array("I", array.array("H", file.read()[1024:])).tobytes()).hexdigest()


def encode(options):
    """Megabytes of text a second of processor time on one thread. Ours is that of a run less that of one without a text,
    which reads the vocabulary."""
    peer, rows = Peer(options, options.tokenizer), []
    with tempfile.TemporaryDirectory() as folder:
        empty, out = os.path.join(folder, "empty"), os.path.join(folder, "tokens.bin")
        with open(empty, "w", encoding="utf-8"):
            pass

        def ours(file):
            seconds, _ = ran(["encode", file, "--tokens", options.tokenizer, "--threads", "1", "--begin", "", "-o", out])
            return seconds

        for file in options.data:
            seconds = {"kiln": [], "empty": [], "tiktoken": [], "tokenizers": []}
            for _ in range(options.rounds):
                seconds["empty"].append(ours(empty))
                seconds["kiln"].append(ours(file))
                own = hashOfTokens(out)
                for name in ("tiktoken", "tokenizers"):
                    answer = peer(do=name, file=os.path.abspath(file))
                    seconds[name].append(answer["seconds"])
                    if answer["hash"] != own:
                        sys.exit(f"tools/beside: expected the tokens of {name} for '{file}', but they differ")
            middle = {name: statistics.median(times) for name, times in seconds.items()}
            middle["kiln"] -= middle["empty"]
            size = os.path.getsize(file) / 1e6
            rows.append([os.path.basename(file), *(f"{size / middle[name]:.1f}" for name in ("kiln", "tiktoken",
                                                                                             "tokenizers")),
                         *(f"{middle[name] / middle['kiln']:.2f}" for name in ("tiktoken", "tokenizers"))])
            print("tools/beside:", *rows[-1], file=sys.stderr)
    print(markdown(["text", "Kiln, MB/s", "tiktoken", "tokenizers", "times tiktoken", "times tokenizers"], rows))


def made(path, size):
    """A text of random words, of which the one of rank r occurs as 1 / r^0.9: half a million words of one to five
    syllables."""
    drawn = random.Random(1)
    syllables = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "ou")]
    words = list(dict.fromkeys("".join(drawn.choices(syllables, k=drawn.randint(1, 5))) for _ in range(500000)))
    weights = list(itertools.accumulate((i + 1) ** -0.9 for i in range(len(words))))
    with open(path, "w", encoding="utf-8") as out:
        while out.tell() < size:
            out.write(" ".join(drawn.choices(words, cum_weights=weights, k=100000)) + ".\n")


def merges(options):
    """Seconds of learning so many merges on so many threads."""
    peer, rows = Peer(options), []
    with tempfile.TemporaryDirectory() as folder:
        files = options.data or [os.path.join(folder, "made")]
        if not options.data:
            made(files[0], options.megabytes * 1000000)
        for file in files:
            seconds, learnt = {"kiln": [], "tokenizers": []}, os.path.join(folder, "learnt")
            for _ in range(options.rounds):
                _, clock = ran(["train", file, "--out", learnt, "--merges", str(options.merges), "--threads",
                                str(options.threads)])
                with open(os.path.join(learnt, "tokenizer.json"), encoding="utf-8") as tokenizer:
                    own = hashlib.sha256(json.dumps(json.load(tokenizer)["model"]["merges"]).encode()).hexdigest()
                answer = peer(do="merges", file=os.path.abspath(file), merges=options.merges)
                seconds["kiln"].append(clock)
                seconds["tokenizers"].append(answer["seconds"])
                if answer["hash"] != own:
                    sys.exit(f"tools/beside: expected the merges of tokenizers for '{file}', but they differ")
            ours, theirs = (statistics.median(times) for times in seconds.values())
            rows.append([os.path.basename(file), f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f}"])
            print("tools/beside:", *rows[-1], file=sys.stderr)
    print(markdown(["text", "Kiln, s", "tokenizers, s", "ratio"], rows))
