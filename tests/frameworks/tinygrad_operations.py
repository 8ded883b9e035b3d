# SPDX-License-Identifier: Apache-2.0
"""Compares tinygrad's operations on its current device with numpy, at least 200 checks.  tinygrad_operations.py [NAME...]

A check is a name, what tinygrad computes and what numpy computes. Inputs come from a fixed seed. Exit: 0 all agree, 1 not.
"""

import math
import sys

import numpy as np
from tinygrad import Device, Tensor, dtypes

LEAST_CHECKS = 200
random = np.random.default_rng(7)
CHECKS = []  # (name, function that returns (got, expected), relative tolerance)


def check(name, got, expected, tolerance=2e-5):
    """Both are functions without arguments, called when the check runs."""
    CHECKS.append((name, got, expected, tolerance))


def normal(*shape, dtype=np.float32):
    return random.standard_normal(shape).astype(dtype)


def integers(low, high, *shape, dtype=np.int32):
    return random.integers(low, high, shape).astype(dtype)


def on(function, *arrays):
    """What `function` makes of tensors with these contents."""
    return lambda: function(*(Tensor(array) for array in arrays)).numpy()


def of(function, *arrays):
    """What `function` makes of the same arrays."""
    return lambda: function(*arrays)


def both(name, tinygrad_function, numpy_function, *arrays, tolerance=2e-5):
    check(name, on(tinygrad_function, *arrays), of(numpy_function, *arrays), tolerance)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    return np.vectorize(math.erf)(x).astype(x.dtype)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def elementwise():
    x, positive, unit = normal(7, 33), np.abs(normal(7, 33)) + 0.1, random.uniform(-0.99, 0.99, (7, 33)).astype(np.float32)
    for name in ("exp", "sin", "cos", "tanh", "abs", "floor", "ceil", "square", "sign", "exp2", "trunc", "round", "isnan", "isinf", "sinh", "cosh"):
        both(f"elementwise.{name}", lambda t, n=name: getattr(t, n)(), getattr(np, name), x)
    for name in ("log", "sqrt", "log2", "reciprocal"):
        both(f"elementwise.{name}", lambda t, n=name: getattr(t, n)(), getattr(np, name), positive)
    for ours, theirs in (("asin", np.arcsin), ("acos", np.arccos), ("atanh", np.arctanh)):
        both(f"elementwise.{ours}", lambda t, n=ours: getattr(t, n)(), theirs, unit, tolerance=2e-4)
    both("elementwise.atan", lambda t: t.atan(), np.arctan, x, tolerance=2e-4)
    both("elementwise.asinh", lambda t: t.asinh(), np.arcsinh, x, tolerance=1e-4)
    both("elementwise.acosh", lambda t: t.acosh(), np.arccosh, positive + 1, tolerance=1e-4)
    both("elementwise.tan", lambda t: t.tan(), np.tan, unit, tolerance=1e-4)
    both("elementwise.rsqrt", lambda t: t.rsqrt(), lambda a: 1 / np.sqrt(a), positive)
    both("elementwise.neg", lambda t: -t, np.negative, x)
    both("elementwise.erf", lambda t: t.erf(), erf, x, tolerance=1e-4)
    both("elementwise.large_sine", lambda t: t.sin(), np.sin, normal(64) * 3000, tolerance=2e-3)
    for name, expected in {
            "relu": lambda a: np.maximum(a, 0), "sigmoid": sigmoid, "silu": lambda a: a * sigmoid(a), "swish": lambda a: a * sigmoid(a),
            "gelu": lambda a: 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))), "softplus": lambda a: np.log1p(np.exp(a)),
            "elu": lambda a: np.where(a > 0, a, np.exp(a) - 1), "leaky_relu": lambda a: np.where(a > 0, a, 0.01 * a),
            "relu6": lambda a: np.clip(a, 0, 6), "hardtanh": lambda a: np.clip(a, -1, 1), "softsign": lambda a: a / (1 + np.abs(a)),
            "hardswish": lambda a: a * np.clip(a + 3, 0, 6) / 6, "logsigmoid": lambda a: -np.log1p(np.exp(-a)), "quick_gelu": lambda a: a * sigmoid(1.702 * a),
            "mish": lambda a: a * np.tanh(np.log1p(np.exp(a)))}.items():
        both(f"elementwise.{name}", lambda t, n=name: getattr(t, n)(), expected, x, tolerance=5e-5)
    both("elementwise.clip", lambda t: t.clip(-0.5, 0.25), lambda a: np.clip(a, -0.5, 0.25), x)
    both("elementwise.lerp", lambda a, b: a.lerp(b, 0.3), lambda a, b: a + (b - a) * np.float32(0.3), x, positive)


def binary():
    a, b, positive = normal(5, 17), normal(5, 17), np.abs(normal(5, 17)) + 0.1
    for name, ours, theirs in (
            ("add", lambda p, q: p + q, np.add), ("subtract", lambda p, q: p - q, np.subtract), ("multiply", lambda p, q: p * q, np.multiply),
            ("divide", lambda p, q: p / q, np.divide), ("maximum", lambda p, q: p.maximum(q), np.maximum), ("minimum", lambda p, q: p.minimum(q), np.minimum),
            ("less", lambda p, q: p < q, np.less), ("greater", lambda p, q: p > q, np.greater), ("equal", lambda p, q: p == q, np.equal),
            ("not_equal", lambda p, q: p != q, np.not_equal), ("less_equal", lambda p, q: p <= q, np.less_equal),
            ("greater_equal", lambda p, q: p >= q, np.greater_equal), ("copysign", lambda p, q: p.copysign(q), np.copysign),
            ("where", lambda p, q: (p > 0).where(p, q), lambda p, q: np.where(p > 0, p, q)), ("logaddexp", lambda p, q: p.logaddexp(q), np.logaddexp)):
        both(f"binary.{name}", ours, theirs, a, b)
    both("binary.power", lambda p, q: p.pow(q), np.power, positive, b, tolerance=1e-4)
    for exponent in (2, 3, 0.5, -1):
        both(f"binary.power_{exponent}", lambda p, e=exponent: p**e, lambda p, e=exponent: p**np.float32(e), positive, tolerance=1e-4)
    both("binary.broadcast_rows", lambda p, q: p + q, np.add, a, normal(17))
    both("binary.broadcast_columns", lambda p, q: p * q, np.multiply, a, normal(5, 1))
    both("binary.broadcast_outer", lambda p, q: p - q, np.subtract, normal(9, 1), normal(1, 11))
    both("binary.scalar", lambda p: 2 - p * 3, lambda p: 2 - p * 3, a)


def whole_numbers():
    a, b = integers(-1000, 1000, 6, 13), integers(1, 50, 6, 13)
    for name, ours, theirs in (
            ("floor_divide", lambda p, q: p // q, np.floor_divide), ("modulo", lambda p, q: p % q, np.mod), ("xor", lambda p, q: p ^ q, np.bitwise_xor),
            ("and", lambda p, q: p & q, np.bitwise_and), ("or", lambda p, q: p | q, np.bitwise_or), ("add", lambda p, q: p + q, np.add),
            ("multiply", lambda p, q: p * q, np.multiply), ("maximum", lambda p, q: p.maximum(q), np.maximum)):
        both(f"integers.{name}", ours, theirs, a, b)
    both("integers.not", lambda p: p.bitwise_not(), np.bitwise_not, a)
    both("integers.shift_left", lambda p: p << 3, lambda p: p << 3, b)
    both("integers.shift_right", lambda p: p >> 2, lambda p: p >> 2, b)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int64, np.uint32, np.uint64):
        p, q = integers(0, 100, 40, dtype=dtype), integers(1, 27, 40, dtype=dtype)
        both(f"integers.{dtype.__name__}", lambda s, t: s * t + s // t - t, lambda s, t: s * t + s // t - t, p, q)
    both("integers.wraps_round", lambda p: p * 65537, lambda p: p * np.int32(65537), integers(1 << 20, 1 << 30, 50))


def reductions():
    x = normal(6, 7, 37)
    for name in ("sum", "max", "min", "mean"):
        for axis in (None, 0, 1, 2, (0, 2)):
            both(f"reductions.{name}_{axis}", lambda t, n=name, a=axis: getattr(t, n)(axis=a), lambda v, n=name, a=axis: getattr(v, n)(axis=a), x, tolerance=1e-4)
    for name in ("var", "std"):
        for axis in (None, 1):
            both(f"reductions.{name}_{axis}", lambda t, n=name, a=axis: getattr(t, n)(axis=a), lambda v, n=name, a=axis: getattr(v, n)(axis=a, ddof=1), x, tolerance=1e-4)
    both("reductions.argmax", lambda t: t.argmax(axis=2), lambda v: v.argmax(axis=2), x)
    both("reductions.argmin", lambda t: t.argmin(axis=1), lambda v: v.argmin(axis=1), x)
    both("reductions.prod", lambda t: t.prod(axis=1), lambda v: v.prod(axis=1), x, tolerance=1e-4)
    both("reductions.any", lambda t: (t > 1.5).any(axis=2), lambda v: (v > 1.5).any(axis=2), x)
    both("reductions.all", lambda t: (t > -1.5).all(axis=2), lambda v: (v > -1.5).all(axis=2), x)
    both("reductions.cumsum", lambda t: t.cumsum(axis=2), lambda v: v.cumsum(axis=2), x, tolerance=1e-4)
    both("reductions.long_sum", lambda t: t.sum(), lambda v: v.sum(), normal(40_000), tolerance=1e-3)
    both("reductions.integer_sum", lambda t: t.sum(axis=0), lambda v: v.sum(axis=0, dtype=np.int32), integers(-9, 9, 50, 5))
    both("reductions.logsumexp", lambda t: t.logsumexp(axis=2), lambda v: np.log(np.exp(v).sum(axis=2)), x, tolerance=1e-4)


def matrices():
    for m, k, n in ((1, 1, 1), (3, 5, 7), (16, 16, 16), (33, 17, 65), (64, 64, 64), (1, 128, 31), (128, 1, 4)):
        both(f"matrices.{m}x{k}x{n}", lambda a, b: a @ b, np.matmul, normal(m, k), normal(k, n), tolerance=1e-4)
    both("matrices.vector", lambda a, b: a @ b, np.matmul, normal(19, 23), normal(23), tolerance=1e-4)
    both("matrices.dot", lambda a, b: a.dot(b), np.dot, normal(100), normal(100), tolerance=1e-4)
    both("matrices.batched", lambda a, b: a @ b, np.matmul, normal(4, 8, 9), normal(4, 9, 5), tolerance=1e-4)
    both("matrices.transposed", lambda a, b: a.T @ b, lambda a, b: a.T @ b, normal(24, 16), normal(24, 40), tolerance=1e-4)
    both("matrices.half", lambda a, b: (a @ b).float(), lambda a, b: a.astype(np.float32) @ b.astype(np.float32),
         normal(32, 32, dtype=np.float16), normal(32, 32, dtype=np.float16), tolerance=2e-2)
    both("matrices.half_sum_in_single", lambda a, b: a.matmul(b, dtype=dtypes.float), lambda a, b: a.astype(np.float32) @ b.astype(np.float32),
         normal(64, 64, dtype=np.float16), normal(64, 64, dtype=np.float16), tolerance=2e-2)
    both("matrices.double", lambda a, b: a @ b, np.matmul, normal(20, 21, dtype=np.float64), normal(21, 22, dtype=np.float64), tolerance=1e-12)
    both("matrices.integers", lambda a, b: a @ b, np.matmul, integers(-9, 9, 8, 9), integers(-9, 9, 9, 10))
    both("matrices.einsum", lambda a, b: Tensor.einsum("bij,bkj->bik", a, b), lambda a, b: np.einsum("bij,bkj->bik", a, b), normal(3, 4, 5), normal(3, 6, 5), tolerance=1e-4)
    both("matrices.triu", lambda a: a.triu(1), lambda a: np.triu(a, 1), normal(9, 9))
    both("matrices.tril", lambda a: a.tril(), np.tril, normal(9, 9))


def convolved(x, w, stride=1, padding=0, groups=1):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    per_group, outputs = w.shape[1], w.shape[0] // groups
    height, width = (x.shape[2] - w.shape[2]) // stride + 1, (x.shape[3] - w.shape[3]) // stride + 1
    out = np.zeros((x.shape[0], w.shape[0], height, width), np.float64)
    for o in range(w.shape[0]):
        group = o // outputs
        for i in range(height):
            for j in range(width):
                window = x[:, group * per_group:(group + 1) * per_group, i * stride:i * stride + w.shape[2], j * stride:j * stride + w.shape[3]]
                out[:, o, i, j] = (window * w[o]).sum(axis=(1, 2, 3))
    return out


def pooled(x, size, reduce):
    return reduce(x.reshape(*x.shape[:2], x.shape[2] // size, size, x.shape[3] // size, size), axis=(3, 5))


def convolutions():
    for stride, padding, groups, kernel in ((1, 0, 1, 3), (1, 1, 1, 3), (2, 1, 1, 3), (1, 0, 2, 3), (1, 2, 1, 5), (2, 0, 4, 2), (1, 0, 1, 1)):
        both(f"convolutions.stride{stride}_padding{padding}_groups{groups}_kernel{kernel}",
             lambda a, b, s=stride, p=padding, g=groups: a.conv2d(b, stride=s, padding=p, groups=g),
             lambda a, b, s=stride, p=padding, g=groups: convolved(a, b, s, p, g), normal(2, 4, 9, 10), normal(8, 4 // groups, kernel, kernel), tolerance=1e-4)
    both("convolutions.max_pool", lambda a: a.max_pool2d(2), lambda a: pooled(a, 2, np.max), normal(2, 3, 8, 10))
    both("convolutions.average_pool", lambda a: a.avg_pool2d(2), lambda a: pooled(a, 2, np.mean), normal(2, 3, 8, 10))

    def weight_gradient(a, b):
        b.is_param_()
        a.conv2d(b).square().sum().backward()
        return b.grad

    def expected_gradient(a, b):
        out, grad = convolved(a, b), np.zeros(b.shape)
        for i in range(b.shape[2]):
            for j in range(b.shape[3]):
                grad[:, :, i, j] = np.einsum("nohw,nchw->oc", 2 * out, a[:, :, i:i + out.shape[2], j:j + out.shape[3]])
        return grad

    both("convolutions.gradient", weight_gradient, expected_gradient, normal(2, 3, 6, 6), normal(4, 3, 3, 3), tolerance=1e-4)


def normalisations():
    x = normal(6, 50)
    for axis in (0, 1):
        both(f"softmax.{axis}", lambda t, a=axis: t.softmax(a), lambda v, a=axis: softmax(v, a), x)
        both(f"softmax.log_{axis}", lambda t, a=axis: t.log_softmax(a), lambda v, a=axis: np.log(softmax(v, a)), x, tolerance=1e-4)
    both("softmax.large", lambda t: (t * 50).softmax(), lambda v: softmax(v * 50), x, tolerance=1e-4)
    both("softmax.layernorm", lambda t: t.layernorm(), lambda v: (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-5), x, tolerance=1e-4)
    labels = integers(0, 50, 6)
    both("softmax.cross_entropy", lambda t, y: t.sparse_categorical_crossentropy(y), lambda v, y: -np.log(softmax(v)[np.arange(6), y]).mean(), x, labels, tolerance=1e-4)
    q, k, v = normal(2, 3, 8, 16), normal(2, 3, 8, 16), normal(2, 3, 8, 16)
    mask = np.triu(np.full((8, 8), -np.inf, np.float32), 1)
    both("softmax.attention", lambda a, b, c: a.scaled_dot_product_attention(b, c), lambda a, b, c: softmax(a @ b.swapaxes(-1, -2) / 4) @ c, q, k, v, tolerance=1e-4)
    both("softmax.causal_attention", lambda a, b, c: a.scaled_dot_product_attention(b, c, is_causal=True),
         lambda a, b, c: softmax(a @ b.swapaxes(-1, -2) / 4 + mask) @ c, q, k, v, tolerance=1e-4)


def indexing():
    x, rows = normal(8, 9, 10), integers(0, 8, 5)
    for name, ours in {
            "slice": lambda t: t[2:7, 1:, :-3], "step": lambda t: t[::2, ::3], "backwards": lambda t: t[::-1, :, ::-1], "integer": lambda t: t[3],
            "negative": lambda t: t[-2, :, -1], "new_axis": lambda t: t[:, None, 2], "ellipsis": lambda t: t[..., 4]}.items():
        both(f"indexing.{name}", lambda t, f=ours: f(t).contiguous(), lambda v, f=ours: f(v), x)
    both("indexing.rows", lambda t, i: t[i], lambda v, i: v[i], x, rows)
    both("indexing.pairs", lambda t, i, j: t[i, j], lambda v, i, j: v[i, j], x, rows, integers(0, 9, 5))
    both("indexing.gather", lambda t, i: t.gather(1, i), lambda v, i: np.take_along_axis(v, i, 1), normal(6, 12), integers(0, 12, 6, 4))
    both("indexing.embedding", lambda t, i: t[i], lambda v, i: v[i], normal(30, 7), integers(0, 30, 4, 5))
    both("indexing.one_hot", lambda i: i.one_hot(8), lambda i: np.eye(8, dtype=np.int32)[i], rows)
    both("indexing.masked_fill", lambda t: t.masked_fill(t > 0, -1.0), lambda v: np.where(v > 0, -1, v), x)

    def assigned(t):
        t = t.clone().realize()
        t[1:3] = 5.0
        return t.contiguous()

    def expected(v):
        v = v.copy()
        v[1:3] = 5
        return v

    both("indexing.assign_slice", assigned, expected, x)
    both("indexing.sort", lambda t: t.sort()[0], np.sort, normal(5, 32))
    both("indexing.top", lambda t: t.topk(4)[0], lambda v: -np.sort(-v)[..., :4], normal(5, 16))
    for name, ours, theirs in (
            ("reshape", lambda t: t.reshape(9, 80), lambda v: v.reshape(9, 80)), ("transpose", lambda t: t.transpose(0, 2), lambda v: v.swapaxes(0, 2)),
            ("permute", lambda t: t.permute(2, 0, 1), lambda v: v.transpose(2, 0, 1)), ("flip", lambda t: t.flip(1), lambda v: np.flip(v, 1)),
            ("pad", lambda t: t.pad(((1, 2), (0, 0), (3, 0))), lambda v: np.pad(v, ((1, 2), (0, 0), (3, 0)))),
            ("expand", lambda t: t[:, :1].expand(8, 9, 10), lambda v: np.broadcast_to(v[:, :1], (8, 9, 10))),
            ("concatenate", lambda t: t.cat(t * 2, dim=1), lambda v: np.concatenate([v, v * 2], 1)), ("stack", lambda t: Tensor.stack(t, -t, dim=1), lambda v: np.stack([v, -v], 1)),
            ("repeat", lambda t: t.repeat(2, 1, 1), lambda v: np.tile(v, (2, 1, 1))), ("roll", lambda t: t.roll(3, 1), lambda v: np.roll(v, 3, 1)),
            ("chunk", lambda t: t.chunk(2, 0)[1], lambda v: np.split(v, 2)[1]), ("squeeze", lambda t: t[:, :1].squeeze(1), lambda v: v[:, 0]),
            ("flatten", lambda t: t.flatten(1), lambda v: v.reshape(8, 90)), ("diagonal", lambda t: t[:8, :8, 0].diagonal(), lambda v: v[:8, :8, 0].diagonal())):
        both(f"movement.{name}", lambda t, f=ours: f(t).contiguous(), theirs, x)
    check("movement.arange", lambda: Tensor.arange(3, 40, 4).numpy(), lambda: np.arange(3, 40, 4))
    check("movement.eye", lambda: Tensor.eye(6).numpy(), lambda: np.eye(6, dtype=np.float32))
    check("movement.linspace", lambda: Tensor.linspace(0, 5, 21).numpy(), lambda: np.linspace(0, 5, 21, dtype=np.float32))


def data_types():
    numbers = {"float16": np.float16, "float32": np.float32, "float64": np.float64, "int8": np.int8, "uint8": np.uint8, "int16": np.int16,
               "int32": np.int32, "int64": np.int64}
    values = integers(0, 100, 37).astype(np.float64)
    for source, from_type in numbers.items():
        for target, to_type in numbers.items():
            if source != target:
                both(f"types.{source}_to_{target}", lambda t, n=target: t.cast(getattr(dtypes, n)), lambda v, n=to_type: v.astype(n), values.astype(from_type))
    both("types.bool", lambda t: t.cast(dtypes.bool), lambda v: v.astype(bool), integers(0, 2, 30))
    both("types.truncates", lambda t: t.cast(dtypes.int32), lambda v: v.astype(np.int32), normal(50) * 100)
    both("types.bitcast", lambda t: t.bitcast(dtypes.uint32), lambda v: v.view(np.uint32), normal(40))
    both("types.half_arithmetic", lambda a, b: a * b + a, lambda a, b: a * b + a, normal(64, dtype=np.float16), normal(64, dtype=np.float16), tolerance=2e-3)
    both("types.double_arithmetic", lambda a: a * a / 3 + a, lambda a: a * a / 3 + a, normal(64, dtype=np.float64), tolerance=1e-14)
    both("types.bfloat16_rounds", lambda a: a.cast(dtypes.bfloat16).cast(dtypes.float32), lambda a: a, normal(64), tolerance=1 / 128)


def random_numbers():
    def drawn(make):
        Tensor.manual_seed(3)
        return make().numpy()

    def moments(make):
        values = drawn(make)
        return np.array([values.mean(), values.std()])

    count = 20_000
    check("random.uniform_moments", lambda: moments(lambda: Tensor.rand(count)), lambda: np.array([0.5, 1 / math.sqrt(12)]), 0.02)
    check("random.uniform_range", lambda: (lambda v: (v >= 0).all() and (v < 1).all())(drawn(lambda: Tensor.rand(count))), lambda: True)
    check("random.normal_moments", lambda: moments(lambda: Tensor.randn(count)) + 1, lambda: np.array([1.0, 2.0]), 0.02)
    check("random.integers", lambda: np.unique(drawn(lambda: Tensor.randint(count, low=2, high=9))), lambda: np.arange(2, 9))
    check("random.same_seed", lambda: drawn(lambda: Tensor.rand(999)), lambda: drawn(lambda: Tensor.rand(999)), 0)
    check("random.other_numbers_next", lambda: (Tensor.rand(99).numpy() == Tensor.rand(99).numpy()).mean() < 0.05, lambda: True)
    check("random.permutation", lambda: np.sort(drawn(lambda: Tensor.randperm(64))), lambda: np.arange(64))

    def as_on_the_cpu():
        Tensor.manual_seed(3)
        return Tensor.rand(500, device="PYTHON").numpy()

    check("random.same_as_tinygrad_in_python", lambda: drawn(lambda: Tensor.rand(500)), as_on_the_cpu, 0)


def agrees(got, expected, tolerance):
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    if got.dtype.kind in "biu" and expected.dtype.kind in "biu":
        return None if (got == expected).all() else f"{int((got != expected).sum())} of {got.size} values differ"
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    worst = np.abs(got - expected) / np.maximum(1, np.abs(expected))
    worst = np.where(np.isnan(got) & np.isnan(expected), 0, worst)
    if not np.all(worst <= tolerance):
        return f"differs by {np.nanmax(worst):.3g}, allowed {tolerance:.3g}"
    return None


def main():
    for group in (elementwise, binary, whole_numbers, reductions, matrices, convolutions, normalisations, indexing, data_types, random_numbers):
        group()
    wanted = [c for c in CHECKS if not sys.argv[1:] or any(c[0].startswith(name) for name in sys.argv[1:])]
    failed = 0
    for name, got, expected, tolerance in wanted:
        try:
            with np.errstate(all="ignore"):
                problem = agrees(got(), expected(), tolerance)
        except Exception as error:  # pylint: disable=broad-except  # one check that breaks must not hide the others
            problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        if problem:
            failed += 1
            print(f"FAIL {name}: {problem}")
    print(f"{len(wanted)} checks on {Device.DEFAULT}, {failed} failed")
    return 1 if failed or (not sys.argv[1:] and len(wanted) < LEAST_CHECKS) else 0


if __name__ == "__main__":
    sys.exit(main())
