"""The built-in operators, on arrays of any library. Results are new arrays of the first argument's library, unless an
operator says that it changes its operands. On PyTorch tensors they are PyTorch operators with a backward pass
(kiln.torch), so that autograd and torch.compile know them."""

import math
import sys

from . import _c


def _torch_of(*values):
    """kiln.torch where one of the values is a PyTorch tensor."""
    torch = sys.modules.get("torch")
    if torch is None or not any(isinstance(value, torch.Tensor) for value in values):
        return None
    from . import torch as operators
    return operators


def run(name, operands, **options):
    """The operator of the C interface (kiln_operate) on these operands, None where one is left out."""
    import kiln
    packed = _c.Arguments(operands)
    text = kiln._text_of({key: value for key, value in options.items() if value is not None})
    kiln._run(kiln._device_of(packed.arrays), packed.arrays, _c.library.kiln_operate, name.encode(), packed.address,
              len(operands), text)


def operators():
    """A line for each operator: its operands and its options with their defaults."""
    return _c.library.kiln_operators().decode()


# --- Arrays ----------------------------------------------------------------------------------------------------------

_LETTERS = {name: letter for letter, name in _c._LETTERS.items()}


def _is_numpy(x):
    return type(x).__module__.split(".", 1)[0] == "numpy"


def _is_jax(x):
    return type(x).__module__.split(".", 1)[0] in ("jax", "jaxlib")


def _type_name(x):
    return str(x.dtype).removeprefix("torch.") if hasattr(x, "dtype") else _c._LETTERS[memoryview(x).format]


def _shape(x):
    return tuple(x.shape) if hasattr(x, "shape") else memoryview(x).shape


def _new(x, shape, name=None):
    """An array of x's library and place: of its type, or the one that is named. Its content is undefined."""
    name = name or _type_name(x)
    if _c.is_torch(x):
        import torch
        return torch.empty(shape, dtype=getattr(torch, name), device=x.device)
    if _is_numpy(x) or _is_jax(x):
        import numpy
        return numpy.empty(shape, dtype=x.dtype if name == _type_name(x) else name)
    if name not in _LETTERS:
        raise _c.Error(f"expected a result of a type that buffers have, but it is {name}")
    count = math.prod(shape)
    bits = _c.TYPES[name][1]
    view = memoryview(bytearray(max(1, count * bits // 8)))[:count * bits // 8]
    return view.cast(_LETTERS[name], shape) if count and len(shape) > 0 else view.cast(_LETTERS[name])


def _given(x, result):
    """The result as x's library has arrays: JAX's cannot be written to, and are made of NumPy's."""
    if _is_jax(x):
        import jax
        return jax.numpy.asarray(result)
    return result


def _reshaped(x, shape):
    """x with another shape: a view where its memory is row-major without gaps, else a copy."""
    if tuple(shape) == _shape(x):
        return x
    if hasattr(x, "reshape"):
        return x.reshape(shape)
    view = memoryview(x)
    return view.cast("B").cast(view.format, shape)


def _rows(x):
    """x, or a copy of it where the elements of a row have gaps."""
    if _c.is_torch(x):
        return x if x.dim() == 0 or x.stride(-1) == 1 or x.shape[-1] <= 1 else x.contiguous()
    if _is_numpy(x):
        import numpy
        return x if x.ndim == 0 or x.strides[-1] == x.itemsize or x.shape[-1] <= 1 else numpy.ascontiguousarray(x)
    return x


def _is_dense(x):
    """Whether the elements lie in row-major order without gaps."""
    array, step = _c.array_of(x), 1
    for extent, stride in zip(reversed(array.shape), reversed(array.strides or ())):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def _as_matrix(x):
    """x (…, C) as (N, C)."""
    shape = _shape(x)
    if not shape:
        raise _c.Error("expected an array of rank 1 or more, but got one of rank 0")
    return _rows(_reshaped(x, (math.prod(shape[:-1]), shape[-1])))


# --- Operators -------------------------------------------------------------------------------------------------------


def _multiply(a, b, out, precision=None):
    """out = a · b. Of two factors that are both stored by columns, one is copied."""
    def by_columns(x):
        each = _c.array_of(x)
        return len(each.shape) == 2 and each.strides and each.strides[1] != 1 and each.strides[0] == 1 and each.shape[1] > 1
    if len(_shape(a)) == 2 and by_columns(a) and by_columns(b):
        b = _rows(b)
    a = a if by_columns(a) else _rows(a)
    b = b if by_columns(b) else _rows(b)
    run("matmul", [a, b, out], precision=precision)


def matmul(a, b, precision=None):
    """a · b: a (…, K) and b (K, N); or a (B, M, K) and b (B, K, N). Sums are in f32. `precision` of products of f32:
    "ieee", "tf32", "tf32x3" or "bf16x3"; by default as the device has it, ieee on CPUs and tf32 on GPUs."""
    if torch := _torch_of(a, b):
        return torch.matmul(a, b, precision)
    out = _new(a, _shape(a)[:-1] + _shape(b)[-1:])
    if len(_shape(b)) == 3:
        _multiply(a, b, out, precision)
    else:
        _multiply(_as_matrix(a) if len(_shape(a)) != 2 else a, b, _as_matrix(out), precision)
    return _given(a, out)


def linear(x, weight, bias=None, activation="none"):
    """activation(x · weightᵀ + bias): x (…, K), weight (N, K), bias (N). Activations: none, gelu (tanh), gelu_erf, relu,
    relu2, silu; on PyTorch tensors none and gelu."""
    if torch := _torch_of(x, weight):
        return torch.linear(x, weight, bias, activation)
    out = _new(x, _shape(x)[:-1] + _shape(weight)[:1])
    run("linear", [_as_matrix(x), weight, bias, None, _as_matrix(out), None], activation=activation)
    return _given(x, out)


def softmax(x):
    """Softmax over the last dimension."""
    if torch := _torch_of(x):
        return torch.softmax(x)
    out = _new(x, _shape(x))
    run("softmax", [_as_matrix(x), _as_matrix(out)])
    return _given(x, out)


def gelu(x):
    """GELU in its tanh form, elementwise."""
    if torch := _torch_of(x):
        return torch.gelu(x)
    out = _new(x, _shape(x))
    run("gelu", [_reshaped(x, (math.prod(_shape(x)),)), _reshaped(out, (math.prod(_shape(x)),))])
    return _given(x, out)


def layernorm(x, weight=None, bias=None, eps=1e-5):
    """LayerNorm over the last dimension C: weight and bias (C), or neither."""
    if torch := _torch_of(x, weight, bias):
        return torch.layernorm(x, weight, bias, eps)
    out = _new(x, _shape(x))
    rows = math.prod(_shape(x)[:-1])
    run("layernorm", [_as_matrix(x), weight, bias, _as_matrix(out), _new(x, (rows,), "float32"), _new(x, (rows,), "float32")],
        eps=eps)
    return _given(x, out)


def _mask_bytes(mask):
    """A mask of attention as int8 (B or 1, H or 1, Tq, Tk), in its own memory."""
    if mask is None:
        return None
    if _type_name(mask) not in ("bool", "int8"):
        raise _c.Error(f"attention: expected 'attn_mask' of bool or int8, but got {_type_name(mask)}")
    shape = (1,) * (4 - len(_shape(mask))) + tuple(_shape(mask))
    if _type_name(mask) == "int8":
        return _reshaped(mask, shape)
    if _c.is_torch(mask):
        return mask.view(sys.modules["torch"].int8).reshape(shape)
    if _is_numpy(mask) or _is_jax(mask):
        return mask.view("int8").reshape(shape)
    return memoryview(mask).cast("B").cast("b", shape)


def _check_attention(query, key, dropout_p, is_causal, enable_gqa):
    """Throws where scaled_dot_product_attention has another result or an error."""
    (heads, queries), (key_heads, keys) = _shape(query)[1:3], _shape(key)[1:3]
    if dropout_p:
        raise _c.Error(f"attention: expected 'dropout_p' of 0, but got {dropout_p}")
    if is_causal and queries != keys:
        raise _c.Error(f"attention: 'is_causal' requires as many queries as keys, but got {queries} and {keys}: "
                       "pass 'attn_mask', or run(\"attention\", …), which aligns the last query with the last key")
    if heads != key_heads and not enable_gqa:
        raise _c.Error(f"attention: expected 'enable_gqa' for {heads} heads of queries and {key_heads} of keys")


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """torch.nn.functional.scaled_dot_product_attention by FlashAttention-2: query (B, H, Tq, D), key and value
    (B, Hk, Tk, D), where Hk divides H with `enable_gqa`. `attn_mask`, of bool or int8, has the shape (B or 1, H or 1, Tq,
    Tk) or its last dimensions; a query attends to the keys that are not 0. `scale` is 1 / √D by default. `dropout_p` is 0."""
    _check_attention(query, key, dropout_p, is_causal, enable_gqa)
    mask = _mask_bytes(attn_mask)
    if torch := _torch_of(query, key, value):
        return torch.attention(query, key, value, mask, is_causal, scale)
    out, lse = _new(query, _shape(query)), _new(query, _shape(query)[:3], "float32")
    run("attention", [_rows(query), _rows(key), _rows(value), mask, out, lse], is_causal=is_causal, scale=scale)
    return _given(query, out)


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    """The loss of each row, (N) f32, as PyTorch's with reduction="none": logits (N, V), targets (N) int32. Rows whose target
    is `ignore_index` have loss 0."""
    if torch := _torch_of(logits):
        return torch.cross_entropy(logits, targets, ignore_index, label_smoothing)
    losses = _new(logits, _shape(logits)[:1], "float32")
    run("cross_entropy", [_rows(logits), targets, losses], ignore_index=ignore_index, label_smoothing=label_smoothing)
    return _given(logits, losses)


def embedding(tokens, table):
    """Rows of table (V, C) for tokens (…) of int32."""
    if torch := _torch_of(table):
        return torch.embedding(tokens, table)
    out = _new(table, _shape(tokens) + _shape(table)[1:])
    run("embedding", [_reshaped(tokens, (math.prod(_shape(tokens)),)), table, None, _as_matrix(out)])
    return _given(table, out)


def add(x, y):
    """x + y, elementwise, of equal shapes."""
    out = _new(x, _shape(x))
    count = (math.prod(_shape(x)),)
    run("add", [_reshaped(x, count), _reshaped(y, count), _reshaped(out, count)])
    return _given(x, out)


def adamw(parameters, gradient, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    """One step of AdamW, numbered from 1: changes parameters, m and v. All have one shape and no gaps; m and v are f32."""
    for name, x in (("parameters", parameters), ("m", m), ("v", v)):
        if not _is_dense(x):  # reshaping would change a copy
            raise _c.Error(f"adamw: expected '{name}' to be row-major without gaps, but got an array with strides")
    flat = [_reshaped(x, (math.prod(_shape(x)),)) for x in (gradient, parameters, m, v)]
    run("adamw", [*flat, None], step=step, lr=lr, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=weight_decay)
