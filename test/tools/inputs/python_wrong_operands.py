"""Each operator names a wrong argument as its caller does, with the caller's shapes. Arrays are Python's own."""

import array
import math

import kiln
from expect import fails
from kiln import ops


def zeros(*shape):
    return memoryview(bytearray(4 * math.prod(shape))).cast("B").cast("f", shape)


FLOATS = "float32, bfloat16 or float16"
doubles, ints, heads = array.array("d", [1, 2]), array.array("i", [1]), zeros(2, 4, 8, 16)
scores = memoryview(bytearray(63)).cast("b", (7, 9))

for call, text in [
        (lambda: ops.matmul(zeros(4, 8), zeros(5, 8)), "matmul: expected 'other' of shape (8, N), but got (5, 8)"),
        (lambda: ops.matmul(zeros(3, 4, 8), zeros(5, 8)), "matmul: expected 'other' of shape (8, N), but got (5, 8)"),
        (lambda: ops.matmul(zeros(2, 4, 8), zeros(2, 5, 8)), "matmul: expected 'other' of shape (2, 8, N), but got (2, 5, 8)"),
        (lambda: ops.matmul(zeros(2, 4, 8), zeros(3, 8, 5)), "matmul: expected 'other' of shape (2, 8, N), but got (3, 8, 5)"),
        (lambda: ops.matmul(zeros(4, 8), zeros(2, 8, 5)), "matmul: expected 'input' of shape (B, M, K), but got (4, 8)"),
        (lambda: ops.matmul(zeros(4, 8), zeros(8)), "matmul: expected 'other' of shape (8, N), but got (8,)"),
        (lambda: ops.matmul(zeros(4, 2), doubles), "matmul: expected 'other' of type float32, as 'input', but got float64"),
        (lambda: ops.matmul(doubles, zeros(2, 2)),
         "matmul: expected 'input' of type float32, bfloat16, float16 or int8, but got float64"),
        (lambda: ops.linear(zeros(2, 4, 8), zeros(8, 5)), "linear: expected 'weight' of shape (N, 8), but got (8, 5)"),
        (lambda: ops.linear(zeros(2, 4, 8), zeros(5, 8), zeros(1, 5)), "linear: expected 'bias' of shape (5,), but got (1, 5)"),
        (lambda: ops.linear(zeros(4, 2), zeros(2, 2), doubles), f"linear: expected 'bias' of type {FLOATS}, but got float64"),
        (lambda: ops.softmax([[1.0, 2.0]]), "softmax: expected 'input' to be an array, but got list"),
        (lambda: ops.softmax(ints), f"softmax: expected 'input' of type {FLOATS}, but got int32"),
        (lambda: ops.gelu(ints), f"gelu: expected 'input' of type {FLOATS}, but got int32"),
        (lambda: ops.layernorm(zeros(2, 3, 4), (3, 4), zeros(4), zeros(4)),
         "layernorm: expected 'weight' of shape (3, 4), but got (4,)"),
        (lambda: ops.layernorm(zeros(2, 3), 3, zeros(3), zeros(2)), "layernorm: expected 'bias' of shape (3,), but got (2,)"),
        (lambda: ops.layernorm(zeros(2, 3), 3, zeros(3)),
         "layernorm: expected 'weight' and 'bias' or neither, but got one of them"),
        (lambda: ops.attention(zeros(4, 8, 16), heads, heads),
         "attention: expected 'query' of shape (B, H, Tq, D), but got (4, 8, 16)"),
        (lambda: ops.attention(heads, zeros(2, 4, 8, 8), heads),
         "attention: expected 'key' of shape (2, Hk, Tk, 16), but got (2, 4, 8, 8)"),
        (lambda: ops.attention(heads, heads, zeros(2, 4, 9, 16)),
         "attention: expected 'value' of shape (2, 4, 8, 16), but got (2, 4, 9, 16)"),
        (lambda: ops.attention(heads, zeros(2, 3, 8, 16), zeros(2, 3, 8, 16), enable_gqa=True),
         "attention: expected the heads of 'key' to divide those of 'query', but got 3 and 4"),
        (lambda: ops.attention(heads, heads, heads, scores),
         "attention: expected 'attn_mask' of shape (2 or 1, 4 or 1, 8, 8), or its last dimensions, but got (7, 9)"),
        (lambda: ops.cross_entropy(zeros(4), ints), "cross_entropy: expected 'input' of shape (N, V), but got (4,)"),
        (lambda: ops.cross_entropy(zeros(4, 8), ints), "cross_entropy: expected 'target' of shape (4,), but got (1,)"),
        (lambda: ops.cross_entropy(zeros(1, 8), zeros(1)), "cross_entropy: expected 'target' of int32 or int64, but got float32"),
        (lambda: ops.embedding(ints, zeros(8)), "embedding: expected 'weight' of shape (V, C), but got (8,)"),
        (lambda: ops.embedding(zeros(1), zeros(8, 2)), "embedding: expected 'input' of int32 or int64, but got float32"),
        (lambda: ops.add(zeros(2, 3), zeros(3, 2)), "add: expected 'other' of shape (2, 3), but got (3, 2)"),
        (lambda: ops.add(zeros(2), doubles), "add: expected 'other' of type float32, as 'input', but got float64"),
        (lambda: ops.adamw(zeros(2, 3), zeros(3, 2), zeros(2, 3), zeros(2, 3), step=1),
         "adamw: expected 'gradient' of shape (2, 3), but got (3, 2)"),
        (lambda: ops.adamw(zeros(2), zeros(2), doubles, zeros(2), step=1), "adamw: expected 'm' of type float32, but got float64"),
]:
    fails(call, text)

# The operators of the C interface have names of their own.
for name, operands, text in [
        ("matmul", [zeros(4, 8), zeros(8, 5), zeros(5, 4)], "expected 'out' of shape 4x5, but got 5x4"),
        ("matmul", [zeros(4, 8), zeros(2, 8, 5), zeros(4, 5)], "expected 'b' of shape 8x5, but got 2x8x5"),
        ("linear", [zeros(4, 8), zeros(5, 8), None, zeros(4, 4), zeros(4, 5), None], "expected 'residual' of shape 4x5, but got 4x4"),
        ("layernorm", [zeros(4, 8), zeros(4), zeros(8), zeros(4, 8), zeros(4), zeros(4)], "expected 'weight' of shape 8, but got 4"),
        ("weight_gradient", [zeros(4, 8), zeros(5, 8), zeros(8, 8), None], "expected 'dout' of shape 4x8, but got 5x8"),
        ("embedding", [ints, zeros(4, 8), None, zeros(1, 4)], "expected 'out' of shape 1x8, but got 1x4"),
        ("attention_backward", [heads] * 4 + [zeros(2, 4, 8), heads, None, heads, zeros(2, 4, 8, 8), heads],
         "expected 'dk' of shape 2x4x8x16, but got 2x4x8x8"),
        ("adamw", [zeros(2), zeros(2), doubles, zeros(2), None], "expected 'm' of type f32, but got f64"),
]:
    fails(lambda: ops.run(name, operands), f"'{name}': {text}")
