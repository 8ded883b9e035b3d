#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small decoder-only transformer in tinygrad that learns a text byte by byte with AdamW.

It knows nothing of the shim or of the simulated machine. The same options give the same losses on the same device, to the bit: weights and
batches come from numpy's generator with a fixed seed, and no kernel adds in an order of its own.

Prints one line an iteration (`iter N  loss L  ms T`), then a checksum over the bits of all final weights. `ms` is the time between two events
of the CUDA driver where tinygrad computes on it, else wall time; with the JIT the first iterations compile. Exit: 0 done, 1 a loss that is not
finite, 2 out of memory or wrong options.
"""

import argparse
import ctypes
import hashlib
import math
import sys
import time
from pathlib import Path

import numpy as np
from tinygrad import Device, Tensor, TinyJit, nn
from tinygrad.helpers import Context, GlobalCounters

VOCABULARY = 256  # bytes
TEXT = Path(__file__).resolve().parent / "data/tiny.txt"


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default, meaning in [("layers", 2, "transformer layers"), ("width", 512, "width of the residual stream"),
                                   ("heads", 8, "attention heads"), ("batch", 1, "sequences in a batch"),
                                   ("sequence", 16, "bytes in a sequence"), ("iterations", 20, "AdamW steps"),
                                   ("seed", 1, "of weights and batches")]:
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{meaning} (default {default})")
    parser.add_argument("--learning-rate", type=float, default=3e-4, help="default 0.0003")
    parser.add_argument("--text", type=Path, default=TEXT, help="file to learn (default examples/data/tiny.txt)")
    parser.add_argument("--no-jit", action="store_true", help="launch kernel by kernel instead of replaying what the JIT captured")
    chosen = parser.parse_args()
    if chosen.width % chosen.heads:
        parser.error(f"--width {chosen.width} is no multiple of --heads {chosen.heads}")
    return chosen


class Weights:
    """Tensors from one generator, in the order in which they are asked for."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.all = []

    def normal(self, *shape, scale):
        return self._keep(self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale))

    def constant(self, value, *shape):
        return self._keep(np.full(shape, value, np.float32))

    def _keep(self, values):
        self.all.append(Tensor(values).realize().is_param_())
        return self.all[-1]


class Layer:
    def __init__(self, weights, width, heads, layers):
        self.heads = heads
        scale = 0.02
        self.norm = [(weights.constant(1, width), weights.constant(0, width)) for _ in range(2)]
        self.qkv = weights.normal(width, 3 * width, scale=scale)
        self.out = weights.normal(width, width, scale=scale / math.sqrt(2 * layers))
        self.up = weights.normal(width, 4 * width, scale=scale)
        self.down = weights.normal(4 * width, width, scale=scale / math.sqrt(2 * layers))

    def __call__(self, x):
        x = x + self.attention(normalised(x, self.norm[0]))
        return x + normalised(x, self.norm[1]).matmul(self.up).gelu().matmul(self.down)

    def attention(self, x):
        batch, sequence, width = x.shape
        q, k, v = (part.reshape(batch, sequence, self.heads, width // self.heads).transpose(1, 2)
                   for part in x.matmul(self.qkv).chunk(3, dim=-1))
        return q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(batch, sequence, width).matmul(self.out)


class Transformer:
    def __init__(self, options):
        self.weights = Weights(options.seed)
        width = options.width
        self.token = self.weights.normal(VOCABULARY, width, scale=0.02)
        self.position = self.weights.normal(options.sequence, width, scale=0.02)
        self.layers = [Layer(self.weights, width, options.heads, options.layers) for _ in range(options.layers)]
        self.norm = (self.weights.constant(1, width), self.weights.constant(0, width))
        self.head = self.weights.normal(width, VOCABULARY, scale=0.02)

    def __call__(self, tokens):
        x = self.token[tokens] + self.position
        for layer in self.layers:
            x = layer(x)
        return normalised(x, self.norm).matmul(self.head)


def normalised(x, weight_and_bias):
    return x.layernorm() * weight_and_bias[0] + weight_and_bias[1]


class Batches:
    def __init__(self, options):
        self.text = np.frombuffer(options.text.read_bytes(), np.uint8).astype(np.int32)
        self.random = np.random.default_rng(options.seed + 1)
        self.shape = (options.batch, options.sequence)

    def __next__(self):
        starts = self.random.integers(0, len(self.text) - self.shape[1] - 1, self.shape[0])
        rows = np.stack([self.text[start:start + self.shape[1] + 1] for start in starts])
        return [Tensor(np.ascontiguousarray(part)).realize() for part in (rows[:, :-1], rows[:, 1:])]


class Clock:
    """Milliseconds since the last call, on the device's own clock where it has one."""

    def __init__(self):
        self.cuda = None
        if Device.DEFAULT.startswith("CUDA"):
            from tinygrad.runtime.autogen import cuda
            self.cuda = cuda
        self.last = self.mark()

    def mark(self):
        if self.cuda is None:
            return time.perf_counter()
        event = self.cuda.CUevent()
        self.cuda.cuEventCreate(ctypes.byref(event), 0)
        self.cuda.cuEventRecord(event, None)
        return event

    def lap(self):
        last, self.last = self.last, self.mark()
        if self.cuda is None:
            return (self.last - last) * 1e3
        elapsed = ctypes.c_float()
        self.cuda.cuEventSynchronize(self.last)
        self.cuda.cuEventElapsedTime(ctypes.byref(elapsed), last, self.last)
        self.cuda.cuEventDestroy_v2(last)
        return elapsed.value


def train(options):
    model = Transformer(options)
    weights = model.weights.all
    optimizer = nn.optim.AdamW(weights, lr=options.learning_rate)
    batches = Batches(options)

    def step(tokens, targets):
        optimizer.zero_grad()
        loss = model(tokens).sparse_categorical_crossentropy(targets).backward()
        return loss.realize(*optimizer.schedule_step())

    if not options.no_jit:
        step = TinyJit(step)
    print(f"parameters {sum(weight.numel() for weight in weights)}", flush=True)
    clock = Clock()
    with Context(TRAINING=1):
        for iteration in range(1, options.iterations + 1):
            loss = float(step(*next(batches)).item())
            print(f"iter {iteration}  loss {loss:.9g}  ms {clock.lap():.4f}", flush=True)
            if not math.isfinite(loss):
                return 1
    digest = hashlib.sha256()
    for weight in weights:
        digest.update(weight.numpy().tobytes())
    print(f"checksum {digest.hexdigest()[:16]}")
    return 0


def main():
    try:
        return train(options())
    except MemoryError as error:
        print(f"out of memory: {error} ({GlobalCounters.mem_used} bytes in use)", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
