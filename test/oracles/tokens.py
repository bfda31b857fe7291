"""Writes test/models/tokens/golden.json: what Hugging Face's tokenizers learn from a made-up text, and what tiktoken
makes of made-up texts with it, and of real ones with GPT-2's vocabulary. The tests read the file; they need neither
library. DATA has gpt2-bpe (encoder.json and vocab.bpe), tinyshakespeare.txt and multi30k/train.de.gz.

    pip install tiktoken tokenizers && python3 test/oracles/tokens.py test/models/tokens/golden.json DATA
"""

import gzip
import json
import os
import random
import sys

import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
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

CODE = """#include <map>
template <typename T, int N = 0x1F> struct Ring { // it's a ring; they'll wrap: i % N == 0
\tT items[N]{};\r
\tconstexpr T &operator[](size_t i) noexcept { return items[i % N]; }
};
#define MAX(a, b)   ((a) > (b) ? (a) : (b))

int main(int argc, char **argv) {
    std::map<std::string, double> größe = {{"π≈", 3.14159e+00}, {u8"日本", -1'000'000.5}};
    for (auto &&[name, x] : größe) printf("%s:\\t%.3f\\n", name.c_str(), x);   /* 😀 ...... */
    return !(argc <<= 2) || ~0ULL >> 63 && *argv[0]--->*f != '\\0';
}
"""


def letters():
    """GPT-2's letter of each byte, as Hugging Face's library writes tokens."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def bytesOf(tokens):
    """The bytes of tokens in letters."""
    byte = {letter: number for number, letter in letters().items()}
    return [bytes(byte[letter] for letter in token) for token in tokens]


def randomStrings(parts, count):
    """Strings of up to 12 parts that any language makes again: a linear congruence."""
    state = 1

    def below(bound):
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return (state >> 8) % bound

    for _ in range(count):
        yield "".join(parts[below(len(parts))] for _ in range(1 + below(12)))


def hashed(lists):
    """FNV-1a of 64 bits, a number at a time, and one more behind each list."""
    state = 0xcbf29ce484222325
    for ids in lists:
        for number in (*ids, 0xffffffff):
            state = (state ^ number) * 0x100000001b3 % 2**64
    return f"{state:016x}"


def realTexts(data):
    """Numbers and hashes of tokens by GPT-2's own vocabulary."""
    ranks = data_gym_to_mergeable_bpe_ranks(os.path.join(data, "gpt2-bpe", "vocab.bpe"),
                                            os.path.join(data, "gpt2-bpe", "encoder.json"))
    encoding = tiktoken.Encoding("gpt2", pat_str=EXPRESSIONS["gpt2"], mergeable_ranks=ranks, special_tokens={})
    texts = {"code": CODE, "tinyshakespeare.txt": open(os.path.join(data, "tinyshakespeare.txt"), encoding="utf-8").read(),
             "multi30k/train.de.gz": gzip.open(os.path.join(data, "multi30k", "train.de.gz"), "rt",
                                               encoding="utf-8", newline="").read()}
    ids = {name: encoding.encode_ordinary(text) for name, text in texts.items()}
    return {name: {"count": len(found), "hash": hashed([found])} for name, found in ids.items()}


def learn(pieces, merges, cuts):
    """Merges that Hugging Face's library learns, and its vocabulary as tiktoken takes it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cuts)
    tokenizer.train_from_iterator(pieces, trainers.BpeTrainer(
        vocab_size=256 + merges, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    return model["merges"], {bytesOf([token])[0]: number for token, number in model["vocab"].items()}


def main():
    random.seed(1)
    syllables = ["".join(random.choice("bdfglmnrst") + random.choice("aeiou")) for _ in range(40)]
    words = ["".join(random.choices(syllables, k=random.randint(1, 4))) for _ in range(150)]
    words += ["é" + words[0], "日本", "naïve", "123", "aaaa", "--"]
    text = "".join(random.choices(words, weights=[1 / (i + 1) for i in range(len(words))])[0] +
                   random.choice([" ", " ", " ", ", ", ".\n", "\n\n", "'s "]) for _ in range(1500))
    cases = ["", "a", text[:200], CODE]
    cases += ["".join(random.choice(PARTS + words[:20]) for _ in range(random.randint(1, 12))) for _ in range(60)]
    parts = PARTS + words[:20]
    merges, _ = learn([text], 300, True)
    # Whole strings are merged, so that tokens show where an expression cuts: nearly any two parts would be one token.
    crossing, ranks = learn(list(randomStrings(parts, 2000)) + [CODE], 3000, False)
    golden = {"text": text, "merges": merges, "cases": cases, "ids": {}, "parts": parts, "strings": 100000,
              "learnt_from": 2000, "crossing": hashed([ranks[token] for token in bytesOf(pair)] for pair in crossing),
              "hashes": {}, "code": CODE, "real": realTexts(sys.argv[2])}
    for name, expression in EXPRESSIONS.items():
        encoding = tiktoken.Encoding(name, pat_str=expression, mergeable_ranks=ranks, special_tokens={})
        golden["ids"][name] = [encoding.encode_ordinary(case) for case in cases]
        golden["hashes"][name] = hashed(encoding.encode_ordinary(some) for some in
                                        randomStrings(parts, golden["strings"]))
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, separators=(",", ":"))
        out.write("\n")


main()
