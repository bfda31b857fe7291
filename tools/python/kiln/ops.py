"""The built-in operators, on arrays of any library. Results are new arrays of the first argument's library, unless an
operator says that it changes its operands. On PyTorch tensors they are PyTorch operators with a backward pass
(kiln.torch), so that autograd and torch.compile know them.

Products of f32 are exact ("ieee") by default. `precision="tf32"`, "tf32x3" or "bf16x3" chooses another arithmetic. On
PyTorch tensors, torch.set_float32_matmul_precision("high") makes tf32 the default on GPUs."""

import array
import math
import sys

from . import _c


def _torch_of(operator, **operands):
    """kiln.torch if one of the operands is a PyTorch tensor, else None. Raises TypeError if only some are."""
    torch = sys.modules.get("torch")
    if torch is None or not any(isinstance(x, torch.Tensor) for x in operands.values()):
        return None
    for name, x in operands.items():
        if x is not None and not isinstance(x, torch.Tensor):
            raise TypeError(f"{operator}: expected '{name}' to be a PyTorch tensor, as another operand is, but got "
                            f"{type(x).__module__}.{type(x).__name__}")
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


def _buffer(x):
    try:
        return memoryview(x)
    except TypeError:
        raise _c.Error(f"expected an array, but got {type(x).__name__}") from None


def _type_name(x):
    return str(x.dtype).removeprefix("torch.") if hasattr(x, "dtype") else _c._LETTERS[_buffer(x).format]


def _shape(x):
    return tuple(x.shape) if hasattr(x, "shape") else _buffer(x).shape


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
    """The result as an array of x's library. JAX's arrays are immutable, so they are made from NumPy's."""
    if _is_jax(x):
        import jax
        return jax.numpy.asarray(result)
    return result


def _reshaped(x, shape):
    """x with another shape: a view if its memory is row-major without gaps, else a copy."""
    if tuple(shape) == _shape(x):
        return x
    if hasattr(x, "reshape"):
        return x.reshape(shape)
    view = memoryview(x)
    return view.cast("B").cast(view.format, shape)


def _rows(x):
    """x, or a copy of it if its last dimension is not contiguous."""
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
    return _rows(_reshaped(x, (math.prod(shape[:-1]), shape[-1])))


def _indices(operator, name, x):
    """The indices x as int32. An index beyond int32 becomes the nearest number, which is no row either."""
    if _type_name(x) not in ("int32", "int64"):
        raise _c.Error(f"{operator}: expected '{name}' of int32 or int64, but got {_type_name(x)}")
    if _type_name(x) == "int32":
        return x
    least, most = -2**31, 2**31 - 1
    if _c.is_torch(x):
        return x.clamp(least, most).to(sys.modules["torch"].int32)
    if _is_numpy(x) or _is_jax(x):
        return x.clip(least, most).astype("int32")
    numbers = memoryview(memoryview(x).tobytes()).cast("q")
    narrow = memoryview(array.array("i", (min(max(each, least), most) for each in numbers))).cast("B")
    return narrow.cast("i", _shape(x)) if len(narrow) else narrow.cast("i")


_FLOATS = ("float32", "bfloat16", "float16")


def _is_autocast(x):
    """Whether PyTorch converts x, within torch.autocast."""
    torch = sys.modules.get("torch")
    return _c.is_torch(x) and torch.amp.is_autocast_available(x.device.type) and torch.is_autocast_enabled(x.device.type)


def _check(operator, types=_FLOATS, **operands):
    """Throws unless the operands, pairs of an array or None and a form, have the shapes of their forms: "… K", "N K" or
    "4 K", where a name is one number in all of them. The first has one of the types, or any if there are none. The others
    have its type, except for a form that ends in ": float" (one of _FLOATS), ": any", or a type. All are on one device."""
    known, first = {}, None

    def wrong(name, text):
        raise _c.Error(f"{operator}: expected '{name}' {text}")

    for name, (x, form) in operands.items():
        if x is None:
            continue
        try:
            shape, kind = tuple(_shape(x)), _type_name(x)
        except _c.Error:
            wrong(name, f"to be an array, but got {type(x).__name__}")
        extents, _, own = form.partition(": ")
        extents = extents.split()
        leading = extents[:1] == ["…"]
        names = extents[leading:]
        wanted = [int(each) if each.isdigit() else known.get(each, each) for each in names]
        inner = shape[len(shape) - len(names):]
        fits = len(shape) == len(names) or leading and len(shape) > len(names)
        if not fits or any(each not in (one, extent) for each, one, extent in zip(wanted, names, inner)):
            text = ", ".join(["…"] * leading + [str(each) for each in wanted])
            wrong(name, f"of shape ({text}{',' * (len(extents) == 1)}), but got {shape}")
        known.update(zip(names, inner))
        like = f", as '{first[0]}'" if first and not own else ""
        allowed = (_FLOATS if own == "float" else () if own == "any" else (own,) if own else types or () if not first else
                   (_type_name(first[1]),))
        if allowed and kind not in allowed and not _is_autocast(x):
            names = f"{', '.join(allowed[:-1])} or {allowed[-1]}" if len(allowed) > 1 else allowed[0]
            wrong(name, f"of type {names}{like}, but got {kind}")
        if first and _c.is_torch(x) and x.device != first[1].device:
            wrong(name, f"on {first[1].device}, as '{first[0]}', but got it on {x.device}")
        first = first or (name, x)


def _expect_one_of(operator, name, got, values):
    if got not in values:
        raise _c.Error(f"{operator}: expected '{name}' out of {', '.join(values)}, but got {got}")


# --- Operators -------------------------------------------------------------------------------------------------------

def _multiply(a, b, out, precision):
    """out = a · b. Of two factors that are both stored by columns, one is copied."""
    def by_columns(x):
        each = _c.array_of(x)
        return len(each.shape) == 2 and each.strides and each.strides[1] != 1 and each.strides[0] == 1 and each.shape[1] > 1
    if len(_shape(a)) == 2 and by_columns(a) and by_columns(b):
        b = _rows(b)
    a = a if by_columns(a) else _rows(a)
    b = b if by_columns(b) else _rows(b)
    run("matmul", [a, b, out], precision=precision)


def matmul(input, other, *, precision=None):
    """input · other: (…, K) and (K, N); or (B, M, K) and (B, K, N). Sums are in f32. `precision` is that of f32 products:
    "ieee" (exact), "tf32", "tf32x3" or "bf16x3". The default is "ieee"; for PyTorch tensors,
    torch.set_float32_matmul_precision sets it."""
    torch = _torch_of("matmul", input=input, other=other)
    _check("matmul", (*_FLOATS, "int8"), input=(input, "…"), other=(other, "…"))
    is_batch = len(_shape(other)) == 3
    _check("matmul", input=(input, "B M K: any" if is_batch else "… K: any"),
           other=(other, "B K N: any" if is_batch else "K N: any"))
    if torch:
        return torch.matmul(input, other, precision)
    out = _new(input, _shape(input)[:-1] + _shape(other)[-1:])
    if len(_shape(other)) == 3:
        _multiply(input, other, out, precision or "ieee")
    else:
        _multiply(_as_matrix(input) if len(_shape(input)) != 2 else input, other, _as_matrix(out), precision or "ieee")
    return _given(input, out)


def linear(input, weight, bias=None, activation="none", *, precision=None):
    """activation(input · weightᵀ + bias): input (…, K), weight (N, K), bias (N). Activations: none, gelu (tanh), gelu_erf,
    relu, relu2, silu; on PyTorch tensors none and gelu. `precision` is that of kiln.ops.matmul."""
    torch = _torch_of("linear", input=input, weight=weight, bias=bias)
    _check("linear", input=(input, "… K"), weight=(weight, "N K"), bias=(bias, "N: float"))
    if torch:
        return torch.linear(input, weight, bias, activation, precision)
    out = _new(input, _shape(input)[:-1] + _shape(weight)[:1])
    run("linear", [_as_matrix(input), weight, bias, None, _as_matrix(out), None], activation=activation,
        precision=precision or "ieee")
    return _given(input, out)


def softmax(input, dim=-1):
    """Softmax over the last dimension."""
    _check("softmax", input=(input, "… C"))
    if dim not in (-1, len(_shape(input)) - 1):
        raise _c.Error(f"softmax: expected 'dim' to be the last dimension, -1 or {len(_shape(input)) - 1}, but got {dim}")
    if torch := _torch_of("softmax", input=input):
        return torch.softmax(input)
    out = _new(input, _shape(input))
    run("softmax", [_as_matrix(input), _as_matrix(out)])
    return _given(input, out)


def gelu(input, approximate="tanh"):
    """GELU in its tanh form, elementwise."""
    _expect_one_of("gelu", "approximate", approximate, ("tanh",))
    _check("gelu", input=(input, "…"))
    if torch := _torch_of("gelu", input=input):
        return torch.gelu(input)
    out = _new(input, _shape(input))
    run("gelu", [_reshaped(input, (math.prod(_shape(input)),)), _reshaped(out, (math.prod(_shape(input)),))])
    return _given(input, out)


def layernorm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """torch.nn.functional.layer_norm over the last dimensions. `normalized_shape` is their shape (an int for one dimension),
    and that of weight and bias. Both of these are given, or neither."""
    _check("layernorm", input=(input, "…"))
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
    if not isinstance(shape, (tuple, list)) or not shape or tuple(shape) != tuple(_shape(input)[-len(shape):]):
        text = shape if isinstance(shape, (tuple, list)) else type(shape).__name__
        raise _c.Error(f"layernorm: expected 'normalized_shape' to be the last dimensions of 'input', of shape "
                       f"{tuple(_shape(input))}, but got {text}")
    torch = _torch_of("layernorm", input=input, weight=weight, bias=bias)
    names = [str(extent) for extent in shape]
    _check("layernorm", input=(input, " ".join(["…", *names])), weight=(weight, f"{' '.join(names)}: float"),
           bias=(bias, f"{' '.join(names)}: float"))
    if (weight is None) != (bias is None):
        raise _c.Error("layernorm: expected 'weight' and 'bias' or neither, but got one of them")
    rows, columns = math.prod(_shape(input)[:-len(shape)]), math.prod(shape)
    weight, bias = (None if x is None else _reshaped(x, (columns,)) for x in (weight, bias))
    if torch:
        return torch.layernorm(input, columns, weight, bias, eps)
    out = _new(input, _shape(input))
    run("layernorm", [_rows(_reshaped(input, (rows, columns))), weight, bias, _reshaped(out, (rows, columns)),
                      _new(input, (rows,), "float32"), _new(input, (rows,), "float32")], eps=eps)
    return _given(input, out)


def _mask_bytes(mask, scores):
    """A mask of attention as int8 (B or 1, H or 1, Tq, Tk), in its own memory. The shape of the scores is (B, H, Tq, Tk)."""
    if mask is None:
        return None
    if _type_name(mask) not in ("bool", "int8"):
        raise _c.Error(f"attention: expected 'attn_mask' of bool or int8, but got {_type_name(mask)}")
    shape = (1,) * (4 - len(_shape(mask))) + tuple(_shape(mask))
    if shape[2:] != scores[2:] or len(shape) > 4 or any(one not in (1, many) for one, many in zip(shape, scores)):
        raise _c.Error(f"attention: expected 'attn_mask' of shape ({scores[0]} or 1, {scores[1]} or 1, {scores[2]}, "
                       f"{scores[3]}), or its last dimensions, but got {tuple(_shape(mask))}")
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
    if heads % max(key_heads, 1):
        raise _c.Error(f"attention: expected the heads of 'key' to divide those of 'query', but got {key_heads} and {heads}")
    if heads != key_heads and not enable_gqa:
        raise _c.Error(f"attention: expected 'enable_gqa' for {heads} heads of queries and {key_heads} of keys")


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, *,
              precision=None):
    """torch.nn.functional.scaled_dot_product_attention by FlashAttention-2: query (B, H, Tq, D), key and value
    (B, Hk, Tk, D), where Hk divides H with `enable_gqa`. `attn_mask`, of bool or int8, has the shape (B or 1, H or 1, Tq,
    Tk) or its last dimensions; a query attends to the keys that are not 0. `scale` is 1 / √D by default. `dropout_p` is 0.
    `precision` is that of kiln.ops.matmul."""
    torch = _torch_of("attention", query=query, key=key, value=value, attn_mask=attn_mask)
    _check("attention", query=(query, "B H Tq D"), key=(key, "B Hk Tk D"), value=(value, "B Hk Tk D"))
    _check_attention(query, key, dropout_p, is_causal, enable_gqa)
    mask = _mask_bytes(attn_mask, (*_shape(query)[:3], _shape(key)[2]))
    if torch:
        return torch.attention(query, key, value, mask, is_causal, scale, precision)
    out, lse = _new(query, _shape(query)), _new(query, _shape(query)[:3], "float32")
    run("attention", [_rows(query), _rows(key), _rows(value), mask, out, lse], is_causal=is_causal, scale=scale,
        precision=precision or "ieee")
    return _given(query, out)


def _reduced(losses, target, ignore_index, reduction):
    """The sum of the losses, or their mean over the rows that are not ignored: a scalar of their library."""
    if _is_numpy(losses):
        return losses.sum() if reduction == "sum" else losses.sum() / losses.dtype.type((target != ignore_index).sum())
    total, count = math.fsum(losses), sum(each != ignore_index for each in target)
    return total if reduction == "sum" else total / count if count else math.nan


def cross_entropy(input, target, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """torch.nn.functional.cross_entropy, in f32: input (N, V), target (N) of int32 or int64. Rows whose target is
    `ignore_index` have loss 0. `reduction` is "mean", over the other rows, "sum", or "none": a loss for each row, (N)."""
    _expect_one_of("cross_entropy", "reduction", reduction, ("mean", "sum", "none"))
    torch = _torch_of("cross_entropy", input=input, target=target)
    _check("cross_entropy", input=(input, "N V"), target=(target, "N: any"))
    target = _indices("cross_entropy", "target", target)
    if torch:
        return torch.cross_entropy(input, target, ignore_index, reduction, label_smoothing)
    losses = _new(input, _shape(input)[:1], "float32")
    run("cross_entropy", [_rows(input), target, losses], ignore_index=ignore_index, label_smoothing=label_smoothing)
    return _given(input, losses if reduction == "none" else _reduced(losses, target, ignore_index, reduction))


def embedding(input, weight):
    """Rows of weight (V, C) for the tokens input (…) of int32 or int64."""
    torch = _torch_of("embedding", input=input, weight=weight)
    _check("embedding", weight=(weight, "V C"), input=(input, "…: any"))
    input = _indices("embedding", "input", input)
    if torch:
        return torch.embedding(input, weight)
    out = _new(weight, _shape(input) + _shape(weight)[1:])
    run("embedding", [_reshaped(input, (math.prod(_shape(input)),)), weight, None, _as_matrix(out)])
    return _given(weight, out)


def add(input, other):
    """input + other, elementwise, of equal shapes."""
    _check("add", None, input=(input, "…"))
    names = " ".join(str(extent) for extent in _shape(input))
    _check("add", None, input=(input, names), other=(other, names))
    out = _new(input, _shape(input))
    count = (math.prod(_shape(input)),)
    run("add", [_reshaped(input, count), _reshaped(other, count), _reshaped(out, count)])
    return _given(input, out)


def adamw(parameters, gradient, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    """One step of AdamW, numbered from 1: changes parameters, m and v. All have one shape and no gaps; m and v are f32."""
    _check("adamw", parameters=(parameters, "…"))
    names = " ".join(str(extent) for extent in _shape(parameters))
    _check("adamw", parameters=(parameters, names), gradient=(gradient, f"{names}: float"), m=(m, f"{names}: float32"),
           v=(v, f"{names}: float32"))
    for name, x in (("parameters", parameters), ("m", m), ("v", v)):
        if not _is_dense(x):  # reshaping would change a copy
            raise _c.Error(f"adamw: expected '{name}' to be row-major without gaps, but got an array with strides")
    flat = [_reshaped(x, (math.prod(_shape(x)),)) for x in (gradient, parameters, m, v)]
    run("adamw", [*flat, None], step=step, lr=lr, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=weight_decay)
