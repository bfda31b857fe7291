"""The operators on arrays of PyTorch, NumPy and JAX, those that are installed, compared with theirs, with gradients."""

import importlib.util
import math
import sys

import kiln


def has(name):
    """Whether a package is installed; says so when it is not."""
    if importlib.util.find_spec(name):
        return True
    print(f"skipped: {name} is not installed")
    return False


class ByDlpack:
    """An array that has nothing but DLPack."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def pytorch():
    import torch
    import torch.nn.functional as F
    torch.manual_seed(0)

    def leaf(*shape):
        return torch.randn(*shape).requires_grad_()

    def compare(ours, theirs, leaves, bound):
        """Results and gradients, up to `bound` of the largest element."""
        gradient = torch.randn_like(theirs)
        pairs = [(ours, theirs), *zip(torch.autograd.grad(ours, leaves, gradient), torch.autograd.grad(theirs, leaves, gradient))]
        for one, other in pairs:
            assert one.shape == other.shape, (one.shape, other.shape)
            error, most = (one - other).abs().max().item(), other.abs().max().item()
            assert error <= bound * max(1, most), (error, most)

    # Up to four products follow each other (attention's backward pass), and sums of absolute values are assumed to be
    # at most twice the largest result: 8 in all. On the CPU, an f32 sum of at most 256 terms has an error of 256 ·
    # 2^-24 of those. On the simulated GPU both operands of a product are rounded to tf32, 2 · 2^-11.
    for device, bound in (("cpu", 8 * 256 * 2**-24), ("simulator:sm_90a", 8 * 2 * 2**-11)):
        with kiln.open(device):
            a, b = leaf(37, 64), leaf(64, 50)
            compare(kiln.ops.matmul(a, b), a @ b, (a, b), bound)
            a, b = leaf(3, 16, 32), leaf(3, 32, 24)
            compare(kiln.ops.matmul(a, b), a @ b, (a, b), bound)
            x, w, c = leaf(5, 7, 64), leaf(48, 64), leaf(48)
            compare(kiln.ops.linear(x, w, c, "gelu"), F.gelu(F.linear(x, w, c), approximate="tanh"), (x, w, c), bound)
            x, weight, bias = leaf(4, 6, 96), leaf(96), leaf(96)
            compare(kiln.ops.layernorm(x, weight, bias, eps=0.1), F.layer_norm(x, (96,), weight, bias, 0.1), (x, weight, bias), bound)
            compare(kiln.ops.layernorm(x), F.layer_norm(x, (96,)), (x,), bound)
            q, k, v = leaf(2, 4, 33, 32), leaf(2, 2, 33, 32), leaf(2, 2, 33, 32)
            mask = torch.rand(2, 1, 33, 33) < 0.5
            mask[..., 0] = True  # every query attends to a key
            for options in ({}, {"is_causal": True}, {"attn_mask": mask}, {"attn_mask": mask[0, 0], "scale": 0.5}):
                options["enable_gqa"] = True
                compare(kiln.ops.attention(q, k, v, **options), F.scaled_dot_product_attention(q, k, v, **options), (q, k, v), bound)
            x, targets = leaf(9, 101), torch.randint(0, 101, (9,))
            targets[2] = -100
            for options in ({}, {"label_smoothing": 0.1}, {"ignore_index": int(targets[0])}):
                at = targets if "ignore_index" not in options else targets.clamp(min=0)
                compare(kiln.ops.cross_entropy(x, at, **options), F.cross_entropy(x, at, reduction="none", **options), (x,), bound)
            table, tokens = leaf(40, 24), torch.tensor([[3, 0, 39, 3], [39, 7, 3, 12]])
            compare(kiln.ops.embedding(tokens, table), F.embedding(tokens, table), (table,), bound)
            x = leaf(3, 50)
            compare(kiln.ops.softmax(x), F.softmax(x, -1), (x,), bound)
            compare(kiln.ops.gelu(x), F.gelu(x, approximate="tanh"), (x,), bound)

    # Both operands by columns, a tensor that is not contiguous, bf16, and rows of a table.
    a, b = torch.randn(64, 37).t(), torch.randn(50, 64).t()
    torch.testing.assert_close(kiln.ops.matmul(a, b), a @ b, rtol=1e-4, atol=1e-4)
    x = torch.randn(8, 6, 10).permute(2, 0, 1)
    torch.testing.assert_close(kiln.ops.softmax(x), x.softmax(-1), rtol=1e-5, atol=1e-6)
    narrow = torch.randn(64, 64, dtype=torch.bfloat16)
    torch.testing.assert_close(kiln.ops.matmul(narrow, narrow).float(), narrow.float() @ narrow.float(), rtol=2**-8, atol=2**-5)
    table, tokens = torch.randn(11, 8), torch.tensor([[3, 0], [10, 3]], dtype=torch.int32)
    assert torch.equal(kiln.ops.embedding(tokens, table), table[tokens.long()])
    leaf_table = table.clone().requires_grad_()
    kiln.ops.embedding(tokens[:0], leaf_table).sum().backward()
    assert torch.equal(leaf_table.grad, torch.zeros_like(table))

    # Scales of e8m0 and pairs of e2m1 are bytes for a kernel, from PyTorch and by DLPack.
    byte_kernel = kiln.load(sys.argv[1]).bytes
    for name in ("float8_e8m0fnu", "float4_e2m1fn_x2"):
        if not hasattr(torch, name):
            continue
        stored, got = torch.arange(100, dtype=torch.uint8), torch.zeros(100, dtype=torch.int32)
        typed = stored.view(getattr(torch, name))
        byte_kernel[1](typed, got)
        assert torch.equal(got, stored.int()), name
        byte_kernel[1](ByDlpack(typed), got.zero_())
        assert torch.equal(got, stored.int()), name

    # PyTorch's own test of operators, and a graph without a break.
    w = torch.randn(64, 64, requires_grad=True)
    row = torch.randn(64, requires_grad=True)
    q, k, v = (torch.randn(1, 2, 16, 16, requires_grad=True) for _ in range(3))
    labels = torch.randint(0, 64, (64,), dtype=torch.int32)
    for name, arguments in (("matmul", (w, w.detach(), None)), ("gelu", (w,)), ("softmax", (w,)), ("layernorm", (w, row, row, 1e-5)),
                            ("linear", (w, w.detach(), row, "gelu")), ("cross_entropy", (w, labels, -100, 0.1)),
                            ("embedding", (labels, w)),
                            ("attention", (q, k, v, None, True, 0.25))):
        torch.library.opcheck(getattr(torch.ops.kiln, name), arguments)

    def model(x):
        return kiln.ops.gelu(kiln.ops.matmul(x, w)).sum()

    x = torch.randn(64, 64)
    torch.testing.assert_close(torch.compile(model, backend="aot_eager", fullgraph=True)(x), model(x))


def numpy_arrays():
    import numpy as np
    random = np.random.default_rng(0)
    a, b = random.standard_normal((20, 30), dtype="f4"), random.standard_normal((30, 10), dtype="f4")
    for left, right in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b)), (np.asfortranarray(a), np.asfortranarray(b)),
                        (a[::-1][::-1], b), (np.ascontiguousarray(a.repeat(2, 1))[:, ::2], b)):
        assert np.allclose(kiln.ops.matmul(left, right), a @ b, atol=1e-4)
    fixed = a.copy()
    fixed.flags.writeable = False
    assert np.allclose(kiln.ops.softmax(fixed).sum(-1), 1)
    try:
        kiln.ops.run("softmax", [a, fixed])
    except kiln.Error as error:
        assert "may be written for 'out'" in str(error), error
    else:
        raise AssertionError("expected a read-only array to be refused")

    # An array of doubles next to one of floats is an error with a hint that converts it.
    try:
        kiln.load().matmul[1](a.astype("f8"), b, np.zeros((20, 10), "f4"))
    except kiln.Error as error:
        assert str(error).endswith("\nhint: a is float64; pass a.astype(np.float32)"), error
    else:
        raise AssertionError("expected doubles to be refused")


def jax_arrays():
    import jax.numpy as jnp
    import numpy as np
    a, b = jnp.arange(12.0).reshape(3, 4), jnp.ones((4, 2))
    result = kiln.ops.matmul(a, b)
    assert type(result) is type(a) and np.allclose(result, a @ b)
    try:
        kiln.ops.adamw(a, a, a, a, step=1)
    except kiln.Error as error:
        assert "may be written" in str(error), error
    else:
        raise AssertionError("expected an array of JAX's to be refused as a result")


for package, run in (("torch", pytorch), ("numpy", numpy_arrays), ("jax", jax_arrays)):
    if has(package):
        run()
        print(f"{package}: the operators agree")
