"""Writes test/models/tokens/golden.json: what Hugging Face's tokenizers learn from a made-up text, and what tiktoken
makes of made-up texts with it. The tests read the file; they need neither library.

    pip install tiktoken tokenizers && python3 test/oracles/tokens.py test/models/tokens/golden.json
"""

import json
import random
import sys

import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

EXPRESSIONS = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "gpt4": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"""
            r"""\s*[\r\n]|\s+(?!\S)|\s""",
    "llama3": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"""
              r"""\s*[\r\n]+|\s+(?!\S)|\s+""",
}
PARTS = ["'s", "'T", "'re", "'LL", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u180e", "\u0085",
         "\u200b", "123", "4567", "½", "٣", "é", "e\u0301", "日本", "ß", "İ", "ſ", "😀", ".", "...", "--", "_",
         "\x00", "=" * 40, " " * 30, "ana" * 12, "the", " The", "ing"]


def letters():
    """GPT-2's letter of each byte, as Hugging Face's library writes tokens."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def main():
    random.seed(1)
    syllables = ["".join(random.choice("bdfglmnrst") + random.choice("aeiou")) for _ in range(40)]
    words = ["".join(random.choices(syllables, k=random.randint(1, 4))) for _ in range(150)]
    words += ["é" + words[0], "日本", "naïve", "123", "aaaa", "--"]
    text = "".join(random.choices(words, weights=[1 / (i + 1) for i in range(len(words))])[0] +
                   random.choice([" ", " ", " ", ", ", ".\n", "\n\n", "'s "]) for _ in range(1500))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=556, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    byte = {letter: number for number, letter in letters().items()}
    ranks = {bytes(byte[letter] for letter in token): number for token, number in model["vocab"].items()}
    cases = ["", "a", text[:200]]
    cases += ["".join(random.choice(PARTS + words[:20]) for _ in range(random.randint(1, 12))) for _ in range(60)]
    golden = {"text": text, "merges": model["merges"], "cases": cases, "ids": {}}
    for name, expression in EXPRESSIONS.items():
        encoding = tiktoken.Encoding(name, pat_str=expression, mergeable_ranks=ranks, special_tokens={})
        golden["ids"][name] = [encoding.encode_ordinary(case) for case in cases]
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, separators=(",", ":"))
        out.write("\n")


main()
