"""Compares SwiGLU's kernels with double precision and with PyTorch. Arguments: a device (cpu), the file of the kernels."""

import importlib.util
import math
import random
import sys
from array import array

import kiln

device = sys.argv[1] if sys.argv[1:] else "cpu"
kernels = kiln.load(sys.argv[2] if sys.argv[2:] else "13_pytorch.cc")

# 1. The formulas in double precision, on arrays of the standard library.
N = 3000
random.seed(13)
gate, up, dout = (array("f", [random.gauss(0, 2) for _ in range(N)]) for _ in range(3))
out, dgate, dup = (array("f", [math.nan] * N) for _ in range(3))
with kiln.open(device):
    kernels.swiglu[kiln.cdiv(N, 1024)](gate, up, out)
    kernels.swiglu_backward[kiln.cdiv(N, 256)](dout, gate, up, dgate, dup, block=256)
for g, u, d, *got in zip(gate, up, dout, out, dgate, dup):
    s = 1 / (1 + math.exp(-g))
    wants = g * s * u, d * u * s * (1 + g * (1 - s)), d * g * s
    # At most 8 roundings; exp(-g) may be off by 5 units, and |g| rounds its argument. 1 − s cancels at most 1 + |g| of it.
    bound = 2**-24 * (8 + 5 + abs(g)) * (1 + abs(g)) * (1 + abs(d)) * (1 + abs(u))
    assert all(abs(a - b) <= bound for a, b in zip(got, wants)), (g, u, d, got, wants)
print(f"{N} elements of out, dgate and dup agree")

if not importlib.util.find_spec("torch"):
    print("skipped: torch is not installed")
    sys.exit()

# 2. An operator of PyTorch.
import torch  # noqa: E402
from torch import Tensor  # noqa: E402


def launch(kernel, *tensors):
    kernel[lambda config: kiln.cdiv(tensors[0].numel(), config["block"])](*(x.view(-1) for x in tensors))


@torch.library.custom_op("tutorial::swiglu", mutates_args=())
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    if gate.shape != up.shape:
        raise ValueError(f"expected 'gate' and 'up' of one shape, but got {tuple(gate.shape)} and {tuple(up.shape)}")
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    launch(kernels.swiglu, gate, up, out)
    return out


@torch.library.custom_op("tutorial::swiglu_backward", mutates_args=())
def swiglu_backward(dout: Tensor, gate: Tensor, up: Tensor) -> list[Tensor]:
    dout, gate, up = dout.contiguous(), gate.contiguous(), up.contiguous()
    results = [torch.empty_like(gate), torch.empty_like(up)]
    launch(kernels.swiglu_backward, dout, gate, up, *results)
    return results


swiglu.register_fake(lambda gate, up: gate.new_empty(gate.shape))
swiglu_backward.register_fake(lambda dout, gate, up: [gate.new_empty(gate.shape), up.new_empty(up.shape)])
swiglu.register_autograd(lambda ctx, dout: tuple(swiglu_backward(dout, *ctx.saved_tensors)),
                         setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))

x, w1, w2 = torch.randn(60, 32), *(torch.randn(32, 50, requires_grad=True) for _ in range(2))
with kiln.open(device):
    ours = swiglu(x @ w1, x @ w2)
    theirs = torch.nn.functional.silu(x @ w1) * (x @ w2)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)
    gradient = torch.randn_like(ours)
    for one, other in zip(*(torch.autograd.grad(y, (w1, w2), gradient) for y in (ours, theirs))):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-2)
    torch.library.opcheck(swiglu, (x @ w1, x @ w2))
    halves = (x @ torch.cat([w1, w2], -1)).chunk(2, -1)  # views with gaps between their rows
    torch.testing.assert_close(swiglu(*halves), theirs, rtol=1e-5, atol=1e-4)
    torch.library.opcheck(swiglu, halves)
    try:
        swiglu(x @ w1, x)
    except ValueError as error:
        assert "of one shape, but got (60, 50) and (60, 32)" in str(error), error
    else:
        raise AssertionError("expected tensors of two shapes to be refused")
print("swiglu and its gradients agree with PyTorch")

# 3. Times on this machine.
if device == "cpu":
    a, b = torch.randn(4096, 1024), torch.randn(4096, 1024)
    print(kiln.testing.compare({"swiglu": lambda: swiglu(a, b), "PyTorch": lambda: torch.nn.functional.silu(a) * b}), end="")
