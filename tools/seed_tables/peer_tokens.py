"""tiktoken and Hugging Face's tokenizers as peers of tools/beside. Each line is what to do, as JSON; the answer is JSON,
too: the seconds that it took, and a hash of the tokens or the merges that came of it.

    {"do": "tiktoken" or "tokenizers", "file": a text}           # encodes it on one thread, by GPT-2's vocabulary
    {"do": "merges", "file": a text, "merges": a number}         # learns a vocabulary on all threads that rayon may use
"""

import array
import hashlib
import json
import os
import re
import sys
import time

from pairs import answer

try:
    import tiktoken
    import tokenizers
    from tiktoken.load import data_gym_to_mergeable_bpe_ranks
    from tokenizers import models, pre_tokenizers, trainers
except ImportError:
    print("absent", flush=True)
    sys.exit()

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def hashed(numbers):
    """Of tokens, as 32 bits each."""
    return hashlib.sha256(array.array("I", numbers).tobytes()).hexdigest()


def files(folder):
    names = [("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt")]
    return next([os.path.join(folder, name) for name in pair] for pair in names
                if all(os.path.exists(os.path.join(folder, name)) for name in pair))


class Encoders:
    def __init__(self, folder):
        vocabulary, merges = files(folder)
        ranks = data_gym_to_mergeable_bpe_ranks(merges, vocabulary)
        self.tiktoken = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})
        self.tokenizers = tokenizers.Tokenizer(models.BPE.from_file(vocabulary, merges))
        self.tokenizers.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)

    def __call__(self, which, text):
        begin = time.process_time()
        ids = self.tiktoken.encode_ordinary(text) if which == "tiktoken" else self.tokenizers.encode(text).ids
        return {"seconds": time.process_time() - begin, "hash": hashed(ids)}


def parts(text, size=1 << 20):
    """The text in parts that are cut into the same pieces, which end behind a line of visible letters."""
    begin = 0
    for end in re.finditer(r"(?<=[!-~]\n)(?=[!-~])", text):
        if end.start() - begin >= size:
            yield text[begin:end.start()]
            begin = end.start()
    yield text[begin:]


def learn(text, count):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=256 + count, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    begin = time.perf_counter()
    tokenizer.train_from_iterator(parts(text), trainer)
    seconds = time.perf_counter() - begin
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return {"seconds": seconds, "hash": hashlib.sha256(json.dumps(merges).encode()).hexdigest()}


def main():
    wanted = json.loads(sys.argv[1])
    encoders = Encoders(wanted["tokenizer"]) if wanted["tokenizer"] else None

    def act(line):
        task = json.loads(line)
        with open(task["file"], encoding="utf-8", newline="") as file:
            text = file.read()
        return learn(text, task["merges"]) if task["do"] == "merges" else encoders(task["do"], text)

    answer(act)


main()
