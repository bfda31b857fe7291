"""Translation: what compiling for lengths costs, and passes over the pairs: time, loss, accuracy and BLEU. The seed's rows
are of its own pairs, and its accuracies count padding."""

import gzip
import json
import os
import re
import shutil
import statistics
import sys

from children import Child, library, output, program, train
from tables import curves, table

# The models of presets.cc, in the form that peers need.
MODELS = {
    "small": {"encoder_layers": 3, "layers": 3, "heads": 8, "width": 256, "inner": 1024, "context": 128, "batch": 1024,
              "places": 2048, "rate": 1e-3, "warmup": 400, "betas": [0.9, 0.98], "epsilon": 1e-9, "dropout": 0.1,
              "attention_dropout": 0, "smoothing": 0.1},
    "annotated": {"encoder_layers": 2, "layers": 2, "heads": 8, "width": 512, "inner": 2048, "context": 128, "batch": 32,
                "places": 0, "rate": 3e-4, "warmup": 0, "betas": [0.9, 0.999], "epsilon": 1e-8, "dropout": 0.1,
                "attention_dropout": 0.1, "smoothing": 0},
}


class PairPeer(Child):
    """A peer that trains on pairs: `epoch` trains for a pass over the pairs (seconds, tokens, mean loss, compilations so far and
    shapes), `validate` gives loss and accuracy, `translate` the tokens of the test's translations, which JAX does not."""

    def __init__(self, options, name, model):
        small = model["name"] == "small"  # else tables and a head of its own, PyTorch's weights to begin with
        more = {"task": "pairs", "waves": True, "scale": True, "xavier": small, "tied": small}
        more |= {} if small else {"bessel": True, "norm_epsilon": 1e-6}
        # Earlier compilation is not counted.
        super().__init__(options.python, *library(name, {**model, **more}), TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")


class Pairs:
    """The files of a folder, train.de, train.en, val.… and test….…, packed or not, as lines and as tokens of one tokenizer."""

    def __init__(self, options, folder, share):
        self.folder = folder
        for part in ("train", "val", "test"):
            for side in ("de", "en"):
                lines = self.lines(options.data, part, side)[:: 1 if part == "val" else share]
                with open(self.path(part, side), "w", encoding="utf-8") as out:
                    out.writelines(line + "\n" for line in lines)
        self.tokens = os.path.join(folder, "tokens")
        output(program("tokens"), "train", self.path("train", "de"), self.path("train", "en"), "--out", self.tokens, "--style",
               "words", "--merges", "8000", "--min-count", "2")
        with open(os.path.join(self.tokens, "tokenizer.json"), encoding="utf-8") as read:
            vocab = json.load(read)
        special = {token["content"]: token["id"] for token in vocab["added_tokens"]}
        data = {"begin": special["<s>"], "end": special["</s>"]}
        for part in ("train", "val", "test"):
            sides = [self.encoded(part, side) for side in ("de", "en")]
            data[part] = [[source, target] for source, target in zip(*sides) if part == "test" or source and target]
        self.vocab = len({*vocab["model"]["vocab"].values(), *special.values()})
        self.data = os.path.join(folder, "pairs.json")
        with open(self.data, "w", encoding="utf-8") as out:
            json.dump(data, out)

    def path(self, part, side):
        return os.path.join(self.folder, f"{part}.{side}")

    @staticmethod
    def lines(folder, part, side):
        names = [name for name in sorted(os.listdir(folder)) if re.fullmatch(rf"{part}.*\.{side}(\.gz)?", name)]
        if not names:
            sys.exit(f"tools/seeds: expected {part}.{side} in '{folder}', or {part}.{side}.gz, but there is none")
        path = os.path.join(folder, names[0])
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="\n") as read:
            return read.read().removesuffix("\n").split("\n")

    def encoded(self, part, side):
        """Of each line, by way of a file of a JSON text a line."""
        path = os.path.join(self.folder, "lines.jsonl")
        with open(self.path(part, side), encoding="utf-8", newline="\n") as lines, open(path, "w", encoding="utf-8") as out:
            out.writelines(json.dumps({"text": line.rstrip("\r\n")}) + "\n" for line in lines)
        text = output(program("tokens"), "encode", path, "--tokens", self.tokens, "--begin", "", "--end", "")
        return [[int(number) for number in line.split()] for line in text.split("\n")[:-1]]

    def bleu(self, made):
        """Of a translation of each line of the test, as tokens."""
        path = os.path.join(self.folder, "translations")
        with open(path, "w", encoding="utf-8") as out:
            for tokens in made:
                text = output(program("tokens"), "decode", "--tokens", self.tokens, input=" ".join(map(str, tokens)))
                out.write(" ".join(text.split()) + "\n")
        return self.score("--translations", path)

    def score(self, *what):
        said = output(program("translate"), "eval", "--target", self.path("test", "en"), *what)
        return float(re.match(r"BLEU +([\d.]+)", said)[1])


class Ours:
    """Runs of `translate train`, whose first one finds no compiled kernel. A pass is a run of its own."""

    def __init__(self, options, pairs, name, folder, dtype):
        both = lambda flags, part: [word for flag, side in zip(flags, ("de", "en")) for word in (flag, pairs.path(part, side))]
        self.command = [program("translate"), "train", *both(("--source", "--target"), "train"),
                        *both(("--validation-source", "--validation-target"), "val"), "--tokens", pairs.tokens, "--model", name,
                        "--device", options.device, "--dtype", dtype]
        self.folder, self.why = folder, "ready"
        self.cache = os.path.join(folder, "cache")
        shutil.rmtree(self.cache, ignore_errors=True)

    def train(self, *flags):
        """The log of a run, and what it said."""
        os.environ["KILN_CACHE"] = self.cache
        log, _ = train([*self.command, *flags], self.folder)
        with open(os.path.join(self.folder, "output"), encoding="utf-8") as said:
            return log, said.read()

    def __call__(self, what):
        log, said = self.train("--epochs", "1", "--evaluate-sequences", "1")
        seconds, compiles = re.search(r"ready after ([\d.]+) s, (\d+) of them compiled", said).groups()
        shapes = re.search(r"micro-batches of (\d+) shapes", said)[1]
        return {"seconds": float(seconds) + spent(log), "tokens": sum(row["tokens"] for row in log), "compiles": int(compiles),
                "shapes": int(shapes)}

    def end(self):
        pass


def spent(log):
    """Seconds of the steps of a log."""
    return sum(row["tokens"] / row["tokens_per_s"] for row in log)


TYPES = {"fp32": "float32", "bf16": "bfloat16"}
NAMES = {"kiln": "Kiln", "eager": "torch", "compile": "torch.compile", "dynamic": "torch.compile dynamic", "jax": "jax.jit"}


def compiling(options, columns, folder):
    """Passes in turns: the first with what it compiles, and the others. Columns are by (name, type)."""
    there = [key for key, column in columns.items() if column.why == "ready"]
    first = {key: columns[key]("epoch") for key in there}
    later = {key: [] for key in there}
    for _ in range(options.rounds):
        for key in there:
            later[key].append(columns[key]("epoch")["seconds"])
    seconds = {key: statistics.median(times) for key, times in later.items()}
    rows = [[NAMES[name], dtype, row["compiles"], f"{row['seconds']:.1f}", f"{seconds[name, dtype]:.1f}",
             f"{row['tokens'] / seconds[name, dtype]:.0f}", f"{seconds[name, dtype] / seconds['kiln', dtype]:.2f}"]
            for (name, dtype), row in first.items()]
    rows += [[NAMES[name], dtype, column.why or "failed", "", "", "", ""]
             for (name, dtype), column in columns.items() if column.why != "ready"]
    row = first["kiln", "fp32"]
    return f"{row['tokens']:.0f} targets in micro-batches of {row['shapes']} shapes.\n\n" + table(
        os.path.join(folder, "compiling.csv"), ["", "dtype", "compilations of the first pass", "its seconds",
                                                "seconds of a later pass", "targets a second", "times Kiln's seconds"], rows)


def kilns(ours, pairs, epochs):
    """Points of a run by passes, (seconds, loss, loss and accuracy of the pairs that validate), and its BLEU."""
    log, _ = ours.train("--epochs", str(epochs))
    length, points = len(log) // epochs, []
    for end in range(length, len(log) + 1, length):
        loss = statistics.mean(row["loss"] for row in log[end - length : end])
        points.append((spent(log[:end]), loss, log[end - 1]["val_loss"], log[end - 1]["val_accuracy"]))
    return points, pairs.score("--out", ours.folder, "--source", pairs.path("test", "de"))


def peers(peer, pairs, epochs):
    points, seconds = [], 0
    for _ in range(epochs):
        row, held = peer("epoch"), peer("validate")
        seconds += row["seconds"]
        points.append((seconds, row["loss"], held["loss"], held["accuracy"]))
    return points, pairs.bleu(peer("translate")["tokens"])


def run(options, folder):
    if not options.data or not os.path.isdir(options.data):
        sys.exit("tools/seeds: expected --data FOLDER of seed 002, with train.de, train.en, and the same of val and test, but "
                 f"got {options.data or 'none'}")
    name = options.model or ("small" if options.quick else "annotated")
    epochs, share = (2, 20) if options.quick else (10, 1)
    pairs = Pairs(options, folder, share)
    what = {**MODELS[name], "name": name, "vocab": pairs.vocab, "data": pairs.data, "epochs": epochs, "seed": 1}
    wanted = options.peers.split(",")
    columns = {("kiln", dtype): Ours(options, pairs, name, os.path.join(folder, dtype), dtype) for dtype in TYPES}
    columns |= {(peer, dtype): PairPeer(options, peer, {**what, "dtype": TYPES[dtype]})
                for dtype in TYPES for peer in wanted if dtype == "fp32" or peer == "eager"}
    text = f"# Seed 002: translation, the model `{name}`\n\n## What compiling for lengths costs\n\n"
    text += compiling(options, columns, folder)
    for column in columns.values():
        column.end()

    runs = {f"Kiln {dtype}": kilns(columns["kiln", dtype], pairs, epochs) for dtype in TYPES}
    if "eager" in wanted and columns["eager", "fp32"].why == "ready":
        peer = PairPeer(options, "eager", {**what, "dtype": "float32"})
        runs["torch here, fp32"] = peers(peer, pairs, epochs)
        peer.end()
    rows = [["seed: torch, 10 passes", "3 h 25", "2.20", "2.94", "0.62", ""], ["seed: JAX, 10 passes", "~ 1600 h", "", "", "", ""]]
    for run_name, (points, bleu) in runs.items():
        seconds, loss, held, accuracy = points[-1]
        rows.append([f"{run_name}, {epochs} passes", f"{seconds:.0f} s", f"{loss:.2f}", f"{held:.2f}", f"{accuracy:.3f}", f"{bleu:.2f}"])
    text += "\n## Training\n\n" + table(os.path.join(folder, "training.csv"), [
        "", "time", "loss of the last pass", "validation loss", "validation accuracy", "BLEU of the test"], rows)
    for file, across, key in (("passes", "passes", lambda number, point: number), ("time", "seconds", lambda _, point: point[0])):
        curves(os.path.join(folder, f"{file}.svg"), across, "validation loss",
               {run_name: [(key(number + 1, point), point[2]) for number, point in enumerate(points)]
                for run_name, (points, _) in runs.items()})
        text += f"\n![validation loss over {across}]({file}.svg)\n"
    if options.quick:
        text += f"\nThis was `--quick`: each {share}th pair of training and test, and {epochs} passes.\n"
    return text
