"""GPT-2: micro-batches of 8 x 512 a second, memory, and validation loss over steps and over time. The seed's rows are of an
A10G."""

import os
import sys

from children import TORCH, Ours, Peer, measured, program, rate, train
from tables import curves, table


def run(options, folder):
    if not options.data:
        sys.exit("tools/seeds: expected --data FILE of seed 001, a text or files of tokens")
    model = "annotated-small" if options.quick else "annotated"
    layers, heads, width, context, vocab, batch, micro = (2, 4, 128, 64, 256, 4, 2) if options.quick else \
        (12, 12, 768, 512, 35374 if options.tokens else 256, 8, 32)
    tokens = ["--tokens", options.tokens] if options.tokens else [] if options.quick else ["--vocab", "256"]
    ours = [program("gpt2"), "train", "--data", options.data, "--device", options.device, "--model", model, *tokens]
    what = {"layers": layers, "heads": heads, "width": width, "inner": 4 * width, "context": context, "vocab": vocab,
            "batch": batch, "micro": micro, "activation": "gelu", "attention_bias": False, "dropout": 0.1, "attention_dropout": 0.1,
            "bessel": True, "norm_epsilon": 0, "scale": True, "dtype": "float32"}
    short = [*ours, *(["--accumulate", "2"] if not options.quick else [])]  # a step is long; its micro-batches are alike
    columns = {"kiln": Ours(short, os.path.join(folder, "rates"), batch * context)}
    for peer in options.peers.split(","):
        columns[peer] = Peer(options, peer, {**what, "micro": 2}, 2)
    measured(options, columns, 10 if options.quick else 2)

    # A peer that is not there has no memory either.
    memory = lambda name: f"{columns[name].peak / 1e9:.2f}" if name in columns and columns[name].rates else "absent"
    names = ("jax", *TORCH, "kiln")
    text = "# Seed 001: GPT-2\n\n"
    text += table(os.path.join(folder, "speed.csv"), [
        "", "seed: JAX", "seed: torch.func", "seed: Triton", "jax here", "torch here", "torch.compile here",
        "torch.compile dynamic here", "Kiln here"], [
            [f"micro-batches of {batch} × {context} a second", 4.7, 4.06, 3.15, *(rate(columns.get(n), 3) for n in names)],
            ["peak memory, GB", "", 18.8, 5.8, *(memory(n) for n in names)]])
    length = ["--steps", "100", "--evaluate-every", "20", "--evaluate-sequences", "16"] if options.quick else \
        ["--evaluate-sequences", "800"]
    lines = {}
    for dtype in ("fp32", "bf16"):
        log, _ = train([*ours, "--samples", "4", "--dtype", dtype, *length], os.path.join(folder, dtype))
        lines[f"Kiln {dtype}"] = [row for row in log if "val_loss" in row]
    rows = [[name, row["step"], f"{row['seconds']:.1f}", f"{row['val_loss']:.4f}", f"{row['val_accuracy']:.4f}"]
            for name, log in lines.items() for row in log]
    text += "\n## Validation\n\n"
    text += table(os.path.join(folder, "validation.csv"), ["run", "step", "seconds", "loss", "accuracy"], rows)
    for file, across, key in (("steps", "steps", "step"), ("time", "seconds", "seconds")):
        curves(os.path.join(folder, f"{file}.svg"), across, "validation loss",
               {name: [(row[key], row["val_loss"]) for row in log] for name, log in lines.items()})
        text += f"\n![validation loss over {across}]({file}.svg)\n"
    if options.quick:
        text += "\nThis was `--quick`: a small model, whose rates and memory are not the seed's.\n"
    return text
