"""BLEU of made-up lines by sacrebleu, for test/models/generate/bleu_test.cc.

    pip install sacrebleu==2.6.0 && python3 test/oracles/bleu.py > test/models/generate/bleu.json

Lines are words drawn from a list with punctuation, numbers, entities and letters of other alphabets; references are
these with some words left out, put in or exchanged. For each corpus its lines, and score, precisions, brevity penalty
and lengths for each way to make words. The test reads the file; it needs no library.
"""

import json
import random

from sacrebleu.metrics import BLEU

WORDS = ["a", "man", "Man", "in", "the", "red", "Ärmel", "ÉCOLE", "öl", "house.", "3.14", "1,000", "x,y", "..", "-",
         "10-year-old", "well-known", "don't", "&quot;so&quot;", "A&amp;B", "&lt;b&gt;", "<skipped>", "(see", "no.5)",
         "[1]", "50%", "$3.50", "e.g.,", "и", "家", "…", "it's", "5.", ".5", "2-", "«да»", "~", "`", "a/b", "U.S.A."]
random.seed(1)


def other(words):
    out = []
    for word in words:
        fate = random.random()
        if fate < 0.1:
            continue
        out.append(random.choice(WORDS) if fate < 0.25 else word)
        if fate > 0.92:
            out.append(random.choice(WORDS))
    return out


def corpus(count, longest):
    lines = [[random.choice(WORDS) for _ in range(random.randint(0, longest))] for _ in range(count)]
    return [" ".join(line) for line in lines], [" ".join(other(line)) for line in lines]


corpora = [corpus(200, 20), corpus(1, 12), corpus(3, 2), corpus(4, 5), (["a b c d"], ["e f g h"]),
           (["the man"], ["the man in the red house"]), ([""], ["a"]), (["a b c d e"], ["a x c y e"])]
corpora += [([line], [reference]) for line, reference in zip(*corpus(40, 14))]
cases = []
for lines, references in corpora:
    scores = []
    for lower in (True, False):
        for tokens in ("13a", "none"):
            result = BLEU(lowercase=lower, tokenize=tokens, force=True).corpus_score(lines, [references])
            scores.append({"lower": lower, "tokens": tokens, "score": result.score, "precisions": result.precisions,
                           "brevity": result.bp, "length": result.sys_len, "reference_length": result.ref_len})
    cases.append({"lines": lines, "references": references, "scores": scores})
print("[" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "]")
