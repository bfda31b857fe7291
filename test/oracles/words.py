"""Writes test/models/tokens/words.json: byte pair encoding of words as a few lines of Python have it, learnt from a
made-up text and applied to made-up words. The tests read the file. It needs Python's own library alone; with Hugging
Face's `tokenizers` it also shows that these read what `tokens train` writes, and make the same tokens:

    python3 test/oracles/words.py test/models/tokens/words.json
    tokens train TEXT --style words --out DIR && python3 test/oracles/words.py --compare DIR TEXT
"""

import collections
import json
import random
import subprocess
import sys

END = "\u2581"
SPECIALS = ["<s>", "</s>", "<unk>"]


def words_of(text):
    return text.replace(END, "\ufffd").lower().split()


def learn(text, merges, least):
    """All pairs are counted anew for each merge, the most frequent is merged, of several the smaller two tokens."""
    words = collections.Counter(words_of(text))
    tokens = ["<pad>", *sorted({character for word in words for character in word}), END]
    ids = {token: number for number, token in enumerate(tokens)}
    split = {word: [ids[character] for character in word] + [ids[END]] for word in words}
    learnt = []
    for _ in range(merges):
        pairs = collections.Counter()
        for word, symbols in split.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += words[word]
        if not pairs:
            break
        pair, count = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        if count < least:
            break
        made = tokens[pair[0]] + tokens[pair[1]]
        if made not in ids:
            ids[made] = len(tokens)
            tokens.append(made)
        learnt.append((pair, ids[made]))
        split = {word: merged(symbols, pair, ids[made]) for word, symbols in split.items()}
    return tokens + SPECIALS, learnt


def merged(symbols, pair, result):
    made, at = [], 0
    while at < len(symbols):
        meets = tuple(symbols[at:at + 2]) == pair
        made.append(result if meets else symbols[at])
        at += 2 if meets else 1
    return made


def encode(text, tokens, learnt):
    ids = {token: number for number, token in enumerate(tokens)}
    result = []
    for word in words_of(text):
        symbols = [ids.get(character, ids["<unk>"]) for character in word] + [ids[END]]
        for pair, made in learnt:
            symbols = merged(symbols, pair, made)
        result += symbols
    return result


def learn_whole(text, most, least):
    counts = collections.Counter(words_of(text))
    known = sorted((word for word in counts if counts[word] >= least), key=lambda word: (-counts[word], word))
    return ["<pad>", *known[:most], *SPECIALS]


def compare(folder, path):
    from tokenizers import Tokenizer
    with open(path, encoding="utf-8") as file:
        text = file.read()
    theirs = Tokenizer.from_file(folder + "/tokenizer.json").encode(text).ids
    ours = subprocess.run(["tokens", "encode", path, "--tokens", folder], capture_output=True, check=True, text=True)
    print("equal" if theirs == [int(number) for number in ours.stdout.split()] else "different", len(theirs))


def main():
    if sys.argv[1] == "--compare":
        return compare(sys.argv[2], sys.argv[3])
    random.seed(2)
    syllables = ["".join(random.choice("bdfglmnrst") + random.choice("aeiou")) for _ in range(30)]
    names = ["".join(random.choices(syllables, k=random.randint(1, 4))) for _ in range(120)]
    names += ["ΣΊΣΥΦΟΣ", "ΟΔΟΣ.", "İstanbul", "STRASSE", "Straße", "日本", "don't", "aaaaa", "--", "x" + END]
    spaces = [" ", " ", " ", "\n", "\t", "\u3000", "\x1c", "  "]
    text = "".join(random.choice([str, str.title, str.upper])(
        random.choices(names, weights=[1 / (i + 1) for i in range(len(names))])[0]) + random.choice(spaces)
        for _ in range(1500))
    tokens, learnt = learn(text, 200, 2)
    whole = learn_whole(text, 60, 2)
    cases = ["", " ", "a", text[:200], "ΣΣ Σ ΑΣ ΑΣ' ΑΣ'Α Α\u0301Σ ΑΣΑΣ", "qzq " + END + " 日本語", "\u1e9e ǅ Ⅷ ΐ Ⓐ"]
    cases += ["".join(random.choice(names + syllables) + random.choice(spaces + [""]) for _ in range(6))
              for _ in range(40)]
    whole_ids = {token: number for number, token in enumerate(whole)}
    golden = {
        "text": text, "tokens": tokens, "merges": [[*pair, made] for pair, made in learnt], "whole": whole,
        "cases": cases, "words": [words_of(case) for case in cases],
        "ids": [encode(case, tokens, learnt) for case in cases],
        "whole_ids": [[whole_ids.get(word, whole_ids["<unk>"]) for word in words_of(case)] for case in cases],
    }
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, separators=(",", ":"))
        out.write("\n")


main()
