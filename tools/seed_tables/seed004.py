"""A transformer on one device: mixed precision, recomputed activations, and steps that are cut into
micro-batches: loss, memory and time. The seed's losses are of its own text."""

import os
import statistics
import sys

from children import program, train
from tables import table

RECOMPUTED = {"": "nothing", "mlp": "MLP", "attention,qkv": "attention", "mlp,attention,qkv": "MLP, attention",
              "block": "whole blocks"}


def run(options, folder):
    if not options.data:
        sys.exit("tools/seeds: expected --data FILE of seed 004, a text or files of tokens")
    model, context, sequences, steps = ("mlp-first-small", 64, 16, 20) if options.quick else ("mlp-first", 512, 64, 3)
    tokens = ["--tokens", options.tokens] if options.tokens else [] if options.quick else ["--vocab", "256"]
    ours = [program("gpt2"), "train", "--data", options.data, "--device", options.device, "--model", model, *tokens,
            "--evaluate-sequences", "1", "--warmup", "0"]

    def measured(*flags, cut=4):
        """Loss of the last step, bytes at the peak, seconds a step without the first."""
        log, peak = train([*ours, "--batch", str(sequences // cut), "--accumulate", str(cut), "--steps", str(steps), *flags],
                          os.path.join(folder, "run"))
        return log[-1]["loss"], peak, statistics.median(sequences * context / row["tokens_per_s"] for row in log[1:])

    text = "# Seed 004: a transformer on one device\n\n## Steps cut into micro-batches\n\n"
    text += f"Loss of step {steps}, {sequences} sequences of {context} each.\n\n"
    cuts = (1, 4, 8, 16)
    losses = {drop: [measured("--dropout", drop, cut=cut)[0] for cut in cuts] for drop in ("0", "0.1")}
    text += table(os.path.join(folder, "accumulation.csv"),
                  ["", *(f"{cut} micro-batches" for cut in cuts), "largest difference, relative"], [
        ["seed, dropout 0", 4.0532846, 4.053285, 4.0532846, 4.0532846, f"{4e-7 / 4.05:.0e}"],
        ["seed, dropout 0.1", 4.0698, "…", "…", 4.0875, f"{(4.0875 - 4.0698) / 4.0698:.0e}"],
        *([f"Kiln, dropout {drop}", *(f"{loss:.7f}" for loss in row), f"{(max(row) - min(row)) / min(row):.0e}"]
          for drop, row in losses.items())])

    rows = []
    for dtype in ("fp32", "bf16", "fp16"):
        for names, words in RECOMPUTED.items():
            loss, peak, seconds = measured("--dtype", dtype, *(["--recompute", names] if names else []))
            rows.append([dtype, words, f"{loss:.7f}", f"{peak / 2**20:.0f}", f"{seconds:.3f}"])
    text += "\n## Recomputed activations\n\nFour micro-batches a step, dropout 0.1. Recomputation changes no bit of a loss.\n\n"
    text += table(os.path.join(folder, "recompute.csv"),
                  ["dtype", "recomputed", f"loss of step {steps}", "peak memory, MiB", "seconds a step"], rows)

    if options.tokens:
        rows = []
        for batching, words in (("stream", "causal"), ("padded", "causal and padding"), ("packed", "one's own document")):
            loss, peak, seconds = measured("--batching", batching)
            rows.append([words, f"`--batching {batching}`", f"{loss:.4f}", f"{peak / 2**20:.0f}", f"{seconds:.3f}"])
        text += "\n## Masks\n\n"
        text += table(os.path.join(folder, "masks.csv"),
                      ["a place sees", "", f"loss of step {steps}", "peak memory, MiB", "seconds a step"], rows)
    else:
        text += "\nMasks are not measured: bytes have no documents, `--tokens` names a tokenizer.\n"
    if options.quick:
        text += "\nThis was `--quick`: a small model, whose losses, memory and times are not the seed's.\n"
    return text
