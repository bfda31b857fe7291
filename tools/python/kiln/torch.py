"""Kiln's operators as PyTorch operators, torch.ops.kiln.…, for CPU and CUDA tensors. torch.compile knows them. All
except add and adamw have a backward pass. kiln.ops calls them for PyTorch tensors."""

import math
from typing import Optional, Tuple

import torch
from torch import Tensor

from . import ops
from ._c import Error


def _operator(name):
    return torch.library.custom_op(f"kiln::{name}", mutates_args=())


def _contiguous(x):
    return x if x.is_contiguous() else x.contiguous()


def _precision(asked):
    """The requested precision of f32 products, else "ieee", or None (the device's default) if PyTorch allows tf32."""
    if asked is not None:
        return asked
    # From 2.9 on, the other query is an error where this one's setting was changed.
    setting = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    allows = setting == "tf32" if setting is not None else torch.get_float32_matmul_precision() != "highest"
    return None if allows else "ieee"


def _autocast(*tensors, dtype=None):
    """The tensors. Within torch.autocast they are cast to this type, by default the one that autocast has for products."""
    kind = tensors[0].device.type
    if not torch.amp.is_autocast_available(kind) or not torch.is_autocast_enabled(kind):
        return tensors
    dtype = dtype or torch.get_autocast_dtype(kind)
    eligible = torch.float32, torch.bfloat16, torch.float16
    return [x.to(dtype) if x is not None and x.dtype in eligible else x for x in tensors]


# --- Products --------------------------------------------------------------------------------------------------------


@_operator("matmul")
def _matmul(a: Tensor, b: Tensor, precision: Optional[str]) -> Tensor:
    out = a.new_empty(a.shape[:-1] + b.shape[-1:])
    ops._multiply(a, b, out, _precision(precision))
    return out


@_matmul.register_fake
def _(a, b, precision):
    return a.new_empty(a.shape[:-1] + b.shape[-1:])


def _matmul_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.precision = inputs[2]


def _matmul_backward(ctx, dout):
    a, b = ctx.saved_tensors
    dout = _contiguous(dout)
    da = _matmul(dout, b.mT, ctx.precision) if ctx.needs_input_grad[0] else None
    db = _matmul(a.mT, dout, ctx.precision) if ctx.needs_input_grad[1] else None
    return da, db, None


_matmul.register_autograd(_matmul_backward, setup_context=_matmul_context)


def matmul(a, b, precision):
    """kiln.ops.matmul."""
    a, b = _autocast(a, b)
    if b.dim() == 3:
        return _matmul(a, b, precision)
    return _matmul(a.reshape(-1, a.shape[-1]), b, precision).reshape(a.shape[:-1] + b.shape[-1:])


@_operator("linear")
def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor], activation: str,
            precision: Optional[str]) -> Tuple[Tensor, Tensor]:
    out = x.new_empty(x.shape[0], weight.shape[0])
    keeps = activation != "none"
    preact = torch.empty_like(out) if keeps else x.new_empty(0)
    ops.run("linear", [ops._rows(x), ops._rows(weight), bias, None, out, preact if keeps else None], activation=activation,
            precision=_precision(precision))
    return out, preact


@_linear.register_fake
def _(x, weight, bias, activation, precision):
    out = x.new_empty(x.shape[0], weight.shape[0])
    return out, torch.empty_like(out) if activation != "none" else x.new_empty(0)


def _linear_context(ctx, inputs, output):
    x, weight, bias, ctx.activation, ctx.precision = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, weight, output[1])
    ctx.mark_non_differentiable(output[1])


def _linear_backward(ctx, dout, _):
    x, weight, preact = ctx.saved_tensors
    dout = _contiguous(dout)
    if ctx.activation == "gelu":
        dout = torch.ops.kiln.gelu_backward(preact, dout)
    dx = _matmul(dout, weight, ctx.precision) if ctx.needs_input_grad[0] else None
    dweight = _matmul(dout.mT, x, ctx.precision) if ctx.needs_input_grad[1] else None
    dbias = dout.sum(0) if ctx.has_bias and ctx.needs_input_grad[2] else None
    return dx, dweight, dbias, None, None


_linear.register_autograd(_linear_backward, setup_context=_linear_context)


def linear(x, weight, bias, activation, precision):
    """kiln.ops.linear."""
    if activation not in ("none", "gelu"):
        raise Error(f"expected activation 'none' or 'gelu' for PyTorch tensors, but got '{activation}'")
    x, weight, bias = _autocast(x, weight, bias)
    out, _ = _linear(x.reshape(-1, x.shape[-1]), weight, bias, activation, precision)
    return out.reshape(x.shape[:-1] + weight.shape[:1])


# --- Elementwise and rows --------------------------------------------------------------------------------------------


@_operator("gelu")
def gelu(x: Tensor) -> Tensor:
    x = _contiguous(x)
    out = torch.empty_like(x)
    ops.run("gelu", [x.view(-1), out.view(-1)])
    return out


@_operator("gelu_backward")
def _gelu_backward(x: Tensor, dout: Tensor) -> Tensor:
    x, dout = _contiguous(x), _contiguous(dout)
    dx = torch.empty_like(x)
    ops.run("gelu_backward", [x.view(-1), dout.view(-1), dx.view(-1)])
    return dx


@gelu.register_fake
def _(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@_gelu_backward.register_fake
def _(x, dout):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


gelu.register_autograd(lambda ctx, dout: _gelu_backward(ctx.saved_tensors[0], dout),
                       setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))


@_operator("softmax")
def softmax(x: Tensor) -> Tensor:
    x = _contiguous(x)
    out = torch.empty_like(x)
    ops.run("softmax", [ops._as_matrix(x), ops._as_matrix(out)])
    return out


@softmax.register_fake
def _(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _softmax_backward(ctx, dout):
    p, = ctx.saved_tensors
    return p * (dout - (dout * p).sum(-1, keepdim=True))


softmax.register_autograd(_softmax_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))

# --- LayerNorm -------------------------------------------------------------------------------------------------------


@_operator("layernorm")
def _layernorm(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    x = _contiguous(x)
    out = torch.empty_like(x)
    mean, rstd = (x.new_empty(x.shape[0], dtype=torch.float32) for _ in range(2))
    ops.run("layernorm", [x, weight, bias, out, mean, rstd], eps=eps)
    return out, mean, rstd


@_layernorm.register_fake
def _(x, weight, bias, eps):
    rows = [x.new_empty(x.shape[0], dtype=torch.float32) for _ in range(2)]
    return torch.empty_like(x, memory_format=torch.contiguous_format), *rows


@_operator("layernorm_backward")
def _layernorm_backward(dout: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor,
                        eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    dout, x = _contiguous(dout), _contiguous(x)
    results = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
    ops.run("layernorm_backward", [dout, x, weight, mean, rstd, *results], eps=eps)
    return results


@_layernorm_backward.register_fake
def _(dout, x, weight, mean, rstd, eps):
    return torch.empty_like(x, memory_format=torch.contiguous_format), torch.empty_like(weight), torch.empty_like(weight)


def _layernorm_context(ctx, inputs, output):
    x, weight, _, ctx.eps = inputs
    ctx.affine = weight is not None
    ctx.save_for_backward(x, weight if ctx.affine else torch.ones(x.shape[-1], dtype=x.dtype, device=x.device), *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _layernorm_gradient(ctx, dout, *_):
    dx, dweight, dbias = _layernorm_backward(dout, *ctx.saved_tensors, ctx.eps)
    return (dx, dweight, dbias, None) if ctx.affine else (dx, None, None, None)


_layernorm.register_autograd(_layernorm_gradient, setup_context=_layernorm_context)


def layernorm(x, columns, weight, bias, eps):
    """kiln.ops.layernorm, with a weight and a bias of rank 1."""
    x, weight, bias = _autocast(x, weight, bias, dtype=torch.float32)
    return _layernorm(x.reshape(-1, columns), weight, bias, eps)[0].reshape(x.shape)


# --- Attention -------------------------------------------------------------------------------------------------------


@_operator("attention")
def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool, scale: float,
               precision: Optional[str]) -> Tuple[Tensor, Tensor]:
    out = q.new_empty(q.shape)
    lse = q.new_empty(q.shape[:3], dtype=torch.float32)
    ops.run("attention", [ops._rows(q), ops._rows(k), ops._rows(v), mask, out, lse], is_causal=causal, scale=scale,
            precision=_precision(precision))
    return out, lse


@_attention.register_fake
def _(q, k, v, mask, causal, scale, precision):
    return q.new_empty(q.shape), q.new_empty(q.shape[:3], dtype=torch.float32)


@_operator("attention_backward")
def _attention_backward(q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, dout: Tensor, mask: Optional[Tensor],
                        causal: bool, scale: float, precision: Optional[str]) -> Tuple[Tensor, Tensor, Tensor]:
    results = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)
    ops.run("attention_backward", [ops._rows(q), ops._rows(k), ops._rows(v), out, lse, _contiguous(dout), mask, *results],
            is_causal=causal, scale=scale, precision=_precision(precision))
    return results


@_attention_backward.register_fake
def _(q, k, v, out, lse, dout, mask, causal, scale, precision):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _attention_context(ctx, inputs, output):
    q, k, v, mask, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, *output, mask)
    ctx.mark_non_differentiable(output[1])


def _attention_gradient(ctx, dout, _):
    q, k, v, out, lse, mask = ctx.saved_tensors
    return *_attention_backward(q, k, v, out, lse, dout, mask, *ctx.options), None, None, None, None


_attention.register_autograd(_attention_gradient, setup_context=_attention_context)


def attention(q, k, v, mask, causal, scale, precision):
    """kiln.ops.attention, with the mask's bytes."""
    q, k, v = _autocast(q, k, v)
    return _attention(q, k, v, mask, causal, 1 / math.sqrt(q.shape[-1]) if scale is None else scale, precision)[0]


# --- Loss ------------------------------------------------------------------------------------------------------------


@_operator("cross_entropy")
def _cross_entropy(logits: Tensor, targets: Tensor, ignore_index: int, label_smoothing: float) -> Tensor:
    losses = logits.new_empty(logits.shape[0], dtype=torch.float32)
    ops.run("cross_entropy", [ops._rows(logits), targets, losses], ignore_index=ignore_index, label_smoothing=label_smoothing)
    return losses


@_cross_entropy.register_fake
def _(logits, targets, ignore_index, label_smoothing):
    return logits.new_empty(logits.shape[0], dtype=torch.float32)


@_operator("cross_entropy_backward")
def _cross_entropy_backward(logits: Tensor, targets: Tensor, dlosses: Tensor, ignore_index: int, label_smoothing: float) -> Tensor:
    gradient = logits.clone(memory_format=torch.contiguous_format)
    ops.run("cross_entropy_gradient", [targets, gradient, torch.empty_like(dlosses)], ignore_index=ignore_index, label_smoothing=label_smoothing)
    return gradient.mul_(dlosses.unsqueeze(-1))


@_cross_entropy_backward.register_fake
def _(logits, targets, dlosses, ignore_index, label_smoothing):
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _cross_entropy_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.options = inputs[2:]


def _cross_entropy_gradient(ctx, dlosses):
    return _cross_entropy_backward(*ctx.saved_tensors, _contiguous(dlosses), *ctx.options), None, None, None


_cross_entropy.register_autograd(_cross_entropy_gradient, setup_context=_cross_entropy_context)


def cross_entropy(logits, targets, ignore_index, reduction, label_smoothing):
    """kiln.ops.cross_entropy, with targets of int32."""
    logits, = _autocast(logits, dtype=torch.float32)
    losses = _cross_entropy(logits, targets, ignore_index, label_smoothing)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / (targets != ignore_index).sum()


# --- Embedding -------------------------------------------------------------------------------------------------------


@_operator("embedding")
def _embedding(tokens: Tensor, table: Tensor) -> Tensor:
    out = table.new_empty(tokens.shape[0], table.shape[1])
    ops.run("embedding", [tokens, ops._rows(table), None, out])
    return out


@_embedding.register_fake
def _(tokens, table):
    return table.new_empty(tokens.shape[0], table.shape[1])


@_operator("embedding_backward")
def _embedding_backward(dout: Tensor, tokens: Tensor, rows: int) -> Tensor:
    gradient = dout.new_zeros(rows, dout.shape[1])
    if tokens.numel() == 0:
        return gradient
    # The places of each distinct token. There are as many entries as tokens, those without a token have -1.
    ordered, places = tokens.sort(stable=True)
    number = torch.cat([ordered.new_zeros(1, dtype=torch.int64), (ordered[1:] != ordered[:-1]).cumsum(0)])
    entries = torch.arange(len(ordered) + 1, device=tokens.device)
    starts = torch.searchsorted(number, entries).to(torch.int32)
    distinct = torch.where(entries[:-1] <= number[-1], ordered[starts[:-1].clamp(max=len(ordered) - 1)], -1)
    ops.run("embedding_backward", [dout, distinct.to(torch.int32), starts, places.to(torch.int32), gradient])
    return gradient


@_embedding_backward.register_fake
def _(dout, tokens, rows):
    return dout.new_empty(rows, dout.shape[1])


def _embedding_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.rows = inputs[1].shape[0]


def _embedding_gradient(ctx, dout):
    return None, _embedding_backward(_contiguous(dout), *ctx.saved_tensors, ctx.rows)


_embedding.register_autograd(_embedding_gradient, setup_context=_embedding_context)


def embedding(tokens, table):
    """kiln.ops.embedding, with tokens of int32."""
    return _embedding(tokens.reshape(-1), table).reshape(tokens.shape + table.shape[1:])
