"""The operators on arrays of PyTorch, NumPy and JAX, those that are installed, compared with theirs, with gradients."""

import importlib.util
import math
import sys

import kiln

sys.dont_write_bytecode = True
from expect import fails  # noqa: E402


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
    # 2^-24 of those, and so it has on the simulated GPU unless PyTorch allows tf32. Then both operands of a product are
    # rounded to tf32, 2 · 2^-11.
    exact, rounded = 8 * 256 * 2**-24, 8 * 2 * 2**-11
    for device, precision, bound in (("cpu", "highest", exact), ("simulator:sm_90a", "highest", exact), ("simulator:sm_90a", "high", rounded)):
        torch.set_float32_matmul_precision(precision)
        with kiln.open(device):
            a, b = leaf(37, 64), leaf(64, 50)
            compare(kiln.ops.matmul(a, b), a @ b, (a, b), bound)
            a, b = leaf(3, 16, 32), leaf(3, 32, 24)
            compare(kiln.ops.matmul(a, b), a @ b, (a, b), bound)
            x, w, c = leaf(5, 7, 64), leaf(48, 64), leaf(48)
            compare(kiln.ops.linear(x, w, c, "gelu"), F.gelu(F.linear(x, w, c), approximate="tanh"), (x, w, c), bound)
            x, weight, bias = leaf(4, 6, 96), leaf(96), leaf(96)
            compare(kiln.ops.layernorm(x, (96,), weight, bias, 0.1), F.layer_norm(x, (96,), weight, bias, 0.1), (x, weight, bias), bound)
            compare(kiln.ops.layernorm(x, 96), F.layer_norm(x, (96,)), (x,), bound)
            weight, bias = leaf(6, 96), leaf(6, 96)
            compare(kiln.ops.layernorm(x, [6, 96], weight, bias), F.layer_norm(x, [6, 96], weight, bias), (x, weight, bias), bound)
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
                for reduction in ({}, {"reduction": "none"}, {"reduction": "sum"}):
                    compare(kiln.ops.cross_entropy(input=x, target=at, **reduction, **options),
                            F.cross_entropy(input=x, target=at, **reduction, **options), (x,), bound)
            table, tokens = leaf(40, 24), torch.tensor([[3, 0, 39, 3], [39, 7, 3, 12]])
            compare(kiln.ops.embedding(input=tokens, weight=table), F.embedding(input=tokens, weight=table), (table,), bound)
            x = leaf(3, 50)
            compare(kiln.ops.softmax(x, dim=1), F.softmax(x, dim=1), (x,), bound)
            compare(kiln.ops.gelu(x, approximate="tanh"), F.gelu(x, approximate="tanh"), (x,), bound)
    precisions(torch)
    refusals(torch)
    autocast(torch)

    # Both operands by columns, a tensor that is not contiguous, bf16, and rows of a table.
    a, b = torch.randn(64, 37).t(), torch.randn(50, 64).t()
    torch.testing.assert_close(kiln.ops.matmul(a, b), a @ b, rtol=1e-4, atol=1e-4)
    x = torch.randn(8, 6, 10).permute(2, 0, 1)
    torch.testing.assert_close(kiln.ops.softmax(x), x.softmax(-1), rtol=1e-5, atol=1e-6)
    narrow = torch.randn(64, 64, dtype=torch.bfloat16)
    torch.testing.assert_close(kiln.ops.matmul(narrow, narrow).float(), narrow.float() @ narrow.float(), rtol=2**-8, atol=2**-5)
    table, tokens = torch.randn(11, 8), torch.tensor([[3, 0], [10, 3]], dtype=torch.int32)
    assert torch.equal(kiln.ops.embedding(tokens, table), table[tokens.long()])
    fails(lambda: kiln.ops.embedding(torch.tensor([2**32 + 3]), table), "expected a token of the vocabulary")  # not row 3
    leaf_table = table.clone().requires_grad_()
    kiln.ops.embedding(tokens[:0], leaf_table).sum().backward()
    assert torch.equal(leaf_table.grad, torch.zeros_like(table))

    # Scales of e8m0 and pairs of e2m1 are types of a byte, from PyTorch and by DLPack.
    byte_kernel = kiln.load(sys.argv[1]).bytes
    for name, number in (("float8_e8m0fnu", 1), ("float4_e2m1fn_x2", 2)):
        if not hasattr(torch, name):
            continue
        stored, got = torch.arange(100, dtype=torch.uint8), torch.zeros(101, dtype=torch.int32)
        typed, want = stored.view(getattr(torch, name)), torch.cat([stored.int(), torch.tensor([number], dtype=torch.int32)])
        byte_kernel[1](typed, got)
        assert torch.equal(got, want), name
        byte_kernel[1](ByDlpack(typed), got.zero_())
        assert torch.equal(got, want), name

    assert kiln.ops.linear(torch.empty(4, 8, device="meta"), torch.empty(3, 8, device="meta")).shape == (4, 3)
    # PyTorch's own test of operators, and a graph without a break.
    w = torch.randn(64, 64, requires_grad=True)
    row = torch.randn(64, requires_grad=True)
    q, k, v = (torch.randn(1, 2, 16, 16, requires_grad=True) for _ in range(3))
    labels = torch.randint(0, 64, (64,), dtype=torch.int32)
    for name, arguments in (("matmul", (w, w.detach(), None)), ("gelu", (w,)), ("softmax", (w,)), ("layernorm", (w, row, row, 1e-5)),
                            ("linear", (w, w.detach(), row, "gelu", None)), ("cross_entropy", (w, labels, -100, 0.1)),
                            ("embedding", (labels, w)),
                            ("attention", (q, k, v, None, True, 0.25, None))):
        torch.library.opcheck(getattr(torch.ops.kiln, name), arguments)

    def model(x):
        heads = kiln.ops.layernorm(kiln.ops.linear(x, w, row), (64,)).view(1, 4, 16, 64)
        return kiln.ops.cross_entropy(kiln.ops.gelu(kiln.ops.matmul(kiln.ops.attention(heads, heads, heads).view(64, 64), w)), labels)

    x = torch.randn(64, 64)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            torch.testing.assert_close(compiled(x), model(x))


def precisions(torch):
    """What `precision` and PyTorch's setting make of f32 products on a GPU, in the forward and the backward pass."""
    import torch.nn.functional as F
    a, b = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64)
    heads = torch.randn(1, 1, 64, 64, requires_grad=True)
    cases = ((kiln.ops.matmul, (a, b), a @ b, a), (kiln.ops.linear, (a, b), F.linear(a, b), a),
             (kiln.ops.attention, (heads, heads, heads), F.scaled_dot_product_attention(heads, heads, heads), heads))
    for operator, operands, exact, leaf in cases:
        slope = torch.randn_like(exact)
        exact = exact, *torch.autograd.grad(exact, leaf, slope)

        def error(**options):
            """The largest error, relative to the largest element, of the result and of the gradient."""
            with kiln.open("simulator:sm_90a"):
                result = operator(*operands, **options)
                got = result, *torch.autograd.grad(result, leaf, slope)
            return [((one - other).abs().max() / other.abs().max()).item() for one, other in zip(got, exact)]

        # An exact sum of at most 64 terms errs by 64 · 2^-24, four in a row. Of 4096 results that are rounded to tf32, with
        # steps of 2^-10, one at least errs by an eighth of a step.
        few, many = 4 * 64 * 2**-24, 2**-13
        torch.set_float32_matmul_precision("highest")
        assert max(error()) < few, (operator, error())
        assert min(error(precision="tf32")) > many / 8, (operator, error(precision="tf32"))
        torch.set_float32_matmul_precision("high")
        assert min(error()) > many / 8, (operator, error())
        assert max(error(precision="ieee")) < few, (operator, error(precision="ieee"))
        torch.set_float32_matmul_precision("highest")


def refusals(torch):
    """Errors of arguments that PyTorch's functions have and Kiln's do not."""
    import array
    x, indices = torch.randn(4, 8), torch.tensor([0, 1, 2, 3])
    if has("numpy"):
        import numpy
        fails(lambda: kiln.ops.matmul(x, numpy.ones((8, 2), "f4")),
              "matmul: expected 'other' to be a PyTorch tensor, as another operand is, but got numpy.ndarray", TypeError)
    fails(lambda: kiln.ops.linear(array.array("f", [1]), x), "linear: expected 'input' to be a PyTorch tensor", TypeError)
    fails(lambda: kiln.ops.linear(x, torch.randn(3, 7)), "linear: expected 'weight' of shape (N, 8), but got (3, 7)")
    fails(lambda: kiln.ops.linear(x, torch.randn(3, 8).bfloat16()), "linear: expected 'weight' of type float32, as 'input', but got bfloat16")
    fails(lambda: kiln.ops.linear(x, torch.randn(3, 8), torch.randn(4)), "linear: expected 'bias' of shape (3,), but got (4,)")
    fails(lambda: kiln.ops.linear(x, torch.empty(3, 8, device="meta")), "linear: expected 'weight' on cpu, as 'input', but got it on meta")
    fails(lambda: kiln.ops.softmax(x, dim=0), "softmax: expected 'dim' to be the last dimension, -1 or 1, but got 0")
    fails(lambda: kiln.ops.gelu(x, approximate="none"), "gelu: expected 'approximate' out of tanh, but got none")
    fails(lambda: kiln.ops.layernorm(x, (7,)), "'normalized_shape' to be the last dimensions of 'input', of shape (4, 8), but got (7,)")
    fails(lambda: kiln.ops.layernorm(x, 8, x, x), "layernorm: expected 'weight' of shape (8,), but got (4, 8)")
    fails(lambda: kiln.ops.cross_entropy(x, indices, reduction="max"), "cross_entropy: expected 'reduction' out of mean, sum, none, but got max")
    fails(lambda: kiln.ops.cross_entropy(x, x), "cross_entropy: expected 'target' of int32 or int64, but got float32")
    fails(lambda: kiln.ops.embedding(indices.float(), x), "embedding: expected 'input' of int32 or int64, but got float32")
    fails(lambda: kiln.ops.matmul(x, torch.randn(8, 5).t()), "matmul: expected 'other' of shape (8, N), but got (5, 8)")
    fails(lambda: kiln.ops.matmul(torch.randn(8, 4).t(), torch.randn(5, 6)), "matmul: expected 'other' of shape (8, N), but got (5, 6)")

    # A launch names the kernel and the argument.
    axpy = kiln.load(sys.argv[2]).axpy
    y = torch.zeros(8)
    fails(lambda: axpy[1](x.to_sparse(), y, 0.5), "kernel 'axpy': argument 'x': expected a PyTorch tensor with memory of its elements, but got one of layout torch.sparse_coo")
    fails(lambda: axpy[1](y, y, torch.tensor(0.5)), "expected 'alpha' to be a scalar, but got f32[1]\nhint: alpha is a Tensor; pass alpha.item()")
    fails(lambda: axpy[1](y, torch.zeros(1).expand(8), 0.5), "kernel 'axpy': expected 'y', which the kernel writes, to have no stride 0, but dimension 0 of f32[8] has")
    for what, call in (("f64", lambda: axpy[1](y, y.double(), 0.5)), ("i32", lambda: axpy[1](y.int(), y.int(), y.int()))):
        try:
            call()
        except kiln.Error as error:
            assert "y.float()" not in str(error), (what, error)  # a copy, which the caller would not see


def autocast(torch):
    """Under autocast results have the types of PyTorch's functions, and gradients those of the leaves."""
    import torch.nn.functional as F
    x, w, c = (torch.randn(*shape, requires_grad=True) for shape in ((16, 32), (32, 32), (32,)))
    heads, target = x.view(1, 2, 16, 16), torch.arange(16)

    def model(f, layernorm, matmul, attention):
        product = f.linear(layernorm(x, (32,), c, c), w, c)
        return product, matmul(x, w), attention(heads, heads, heads), f.cross_entropy(product, target)

    with torch.autocast("cpu", torch.bfloat16):
        ours = model(kiln.ops, kiln.ops.layernorm, kiln.ops.matmul, kiln.ops.attention)
        theirs = model(F, F.layer_norm, torch.matmul, F.scaled_dot_product_attention)
        fails(lambda: kiln.ops.matmul(x.double(), w), "but got f64")
    for one, other in zip(ours, theirs):
        assert one.dtype == (other.dtype if one.dim() else torch.float32), (one.dtype, other.dtype)
        torch.testing.assert_close(one.float(), other.float(), rtol=2**-5, atol=2**-4)
    for one, other in zip(*(torch.autograd.grad(sum(y.float().sum() for y in results), (x, w, c)) for results in (ours, theirs))):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=2**-4, atol=2**-2)


def numpy_arrays():
    import numpy as np
    random = np.random.default_rng(0)
    a, b = random.standard_normal((20, 30), dtype="f4"), random.standard_normal((30, 10), dtype="f4")
    for left, right in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b)), (np.asfortranarray(a), np.asfortranarray(b)),
                        (a[::-1][::-1], b), (np.ascontiguousarray(a.repeat(2, 1))[:, ::2], b)):
        assert np.allclose(kiln.ops.matmul(left, right), a @ b, atol=1e-4)
    with kiln.open("simulator:sm_90a"):  # products of f32 are exact without `precision`
        for product in (kiln.ops.matmul(a, b), kiln.ops.linear(a, b.T)):
            assert np.allclose(product, a @ b, rtol=0, atol=1e-5)
        assert not np.allclose(kiln.ops.matmul(a, b, precision="tf32"), a @ b, rtol=0, atol=1e-5)

    # The losses of PyTorch: the mean is over rows that are not ignored.
    target = np.array([3, -100] * 10)
    losses = np.log(np.exp(a).sum(-1)) - a[:, 3]
    losses[1::2] = 0
    for reduction, want in (("none", losses), ("sum", losses.sum()), ("mean", losses.sum() / 10)):
        got = kiln.ops.cross_entropy(a, target, reduction=reduction)
        assert got.dtype == np.float32 and np.allclose(got, want, atol=1e-5), (reduction, got, want)
    assert np.array_equal(kiln.ops.embedding(target[::2], a), a[target[::2]])
    fails(lambda: kiln.ops.embedding(np.array([2**32 + 3]), a), "expected a token of the vocabulary")  # not row 3
    fixed = a.copy()
    fixed.flags.writeable = False
    assert np.allclose(kiln.ops.softmax(fixed).sum(-1), 1)
    fails(lambda: kiln.ops.run("softmax", [a, fixed]), "may be written for 'out'")

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
    fails(lambda: kiln.ops.adamw(a, a, a, a, step=1), "may be written")
    assert abs(kiln.ops.cross_entropy(b, jnp.array([0, 1, 1, 0])) - np.log(2)) < 1e-6


for package, run in (("torch", pytorch), ("numpy", numpy_arrays), ("jax", jax_arrays)):
    if has(package):
        run()
        print(f"{package}: the operators agree")
