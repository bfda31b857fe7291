"""Hugging Face's `generate` as a peer of tools/beside: a GPT-2 from a folder, which goes on from tokens drawn at random,
always with the likeliest one. Each line is two numbers, tokens to begin with and tokens to write; the answer is the seconds
that each but the first of these took, whose time is mostly that of reading the others."""

import json
import sys
import time

try:
    import torch
    from transformers import GPT2LMHeadModel
except ImportError:
    print("absent", flush=True)
    sys.exit()

wanted = json.loads(sys.argv[1])
torch.set_num_threads(wanted["threads"])
torch.manual_seed(1)
model = GPT2LMHeadModel.from_pretrained(wanted["folder"], dtype=getattr(torch, wanted["dtype"])).eval()
model.generation_config.eos_token_id = None


def seconds(tokens, count):
    begin = time.perf_counter()
    model.generate(tokens, attention_mask=torch.ones_like(tokens), min_new_tokens=count, max_new_tokens=count,
                   do_sample=False, pad_token_id=0)
    return time.perf_counter() - begin


print("ready", flush=True)
with torch.inference_mode():
    for line in sys.stdin:
        behind, count = map(int, line.split())
        tokens = torch.randint(model.config.vocab_size, (1, behind))
        print((seconds(tokens, count) - seconds(tokens, 1)) / (count - 1), flush=True)
