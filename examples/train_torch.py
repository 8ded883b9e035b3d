#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer with AdamW in PyTorch, from a fixed seed, and prints the loss of each step to the last bit.

An ordinary script: it knows nothing of any preload library. Deterministic kernels only, so that two runs can be compared.
Needs PyTorch; --device cpu works without a GPU. --spare-memory takes what PyTorch itself offers to use less device memory (the optimizer on
the host adds up in another order, so its losses differ in the last bits), --cap makes it out of memory beyond so many bytes. Exit: 0 done, 2 wrong options, 3 out of memory, 4 no PyTorch or no device.
"""
import argparse
import contextlib
import os
import sys
import time


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--spare-memory", choices=("save-on-cpu", "checkpoint", "cpu-optimizer"), help="how, if at all")
    parser.add_argument("--cap", type=int, help="bytes of device memory that PyTorch may take")
    return parser.parse_args()


def build(torch, o):
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(o.width), nn.LayerNorm(o.width)
            self.qkv, self.out = nn.Linear(o.width, 3 * o.width), nn.Linear(o.width, o.width)
            self.up, self.down = nn.Linear(o.width, 4 * o.width), nn.Linear(4 * o.width, o.width)

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, o.heads, width // o.heads).permute(2, 0, 3, 1, 4)
            # Written out: the fused kernels add up in an order of their own.
            scores = q @ k.transpose(-1, -2) / (width // o.heads) ** 0.5
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
            mixed = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(torch.relu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            # A matrix product with one-hot rows, not nn.Embedding: its gradient is added up in a fixed order.
            self.embed = nn.Linear(o.vocabulary, o.width, bias=False)
            self.position = nn.Parameter(torch.zeros(o.sequence, o.width))
            self.blocks = nn.ModuleList(Block() for _ in range(o.layers))
            self.head = nn.Linear(o.width, o.vocabulary)

        def forward(self, tokens):
            x = self.embed(nn.functional.one_hot(tokens, o.vocabulary).float()) + self.position
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if o.spare_memory == "checkpoint" else block(x)
            return self.head(x)

    return Model()


class HostOptimizer:
    """AdamW whose states and arithmetic are on the host: gradients go there, parameters come back."""

    def __init__(self, torch, parameters):
        self.device = list(parameters)
        self.host = [torch.nn.Parameter(p.detach().to("cpu", copy=True)) for p in self.device]
        self.adam = torch.optim.AdamW(self.host, lr=1e-3)
        self.torch = torch

    def zero_grad(self, set_to_none):
        for p in self.device:
            p.grad = None

    def step(self):
        for host, device in zip(self.host, self.device):
            host.grad = device.grad.to("cpu")
        self.adam.step()
        with self.torch.no_grad():
            for host, device in zip(self.host, self.device):
                device.copy_(host)


def train(torch, o):
    torch.manual_seed(o.seed)
    torch.use_deterministic_algorithms(True)
    on_gpu = o.device.startswith("cuda")
    if o.cap and on_gpu:
        torch.cuda.set_per_process_memory_fraction(min(o.cap / torch.cuda.get_device_properties(o.device).total_memory, 1.0))
    model = build(torch, o).to(o.device)
    if o.spare_memory == "cpu-optimizer":
        optimizer = HostOptimizer(torch, model.parameters())
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saved = torch.autograd.graph.save_on_cpu(pin_memory=on_gpu) if o.spare_memory == "save-on-cpu" else contextlib.nullcontext()
    tokens = torch.randint(o.vocabulary, (o.steps, o.batch, o.sequence + 1), generator=torch.Generator().manual_seed(o.seed))
    for step in range(o.steps):
        batch = tokens[step].to(o.device)
        begin = time.monotonic()
        with saved:
            logits = model(batch[:, :-1])
            # The one-hot form again: a gather's gradient is scattered in no fixed order.
            wanted = torch.nn.functional.one_hot(batch[:, 1:], o.vocabulary).float()
            loss = -(logits.log_softmax(-1) * wanted).sum(-1).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        value = loss.item()  # waits for the device
        print(f"step {step} loss {value!r} ms {(time.monotonic() - begin) * 1e3:.3f}", flush=True)
    checksum = sum(p.detach().double().sum().item() for p in model.parameters())
    print(f"parameters {sum(p.numel() for p in model.parameters())} checksum {checksum!r}")
    if on_gpu:
        print(f"peak {torch.cuda.max_memory_reserved()} bytes", file=sys.stderr)


def main():
    o = options()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it before it is deterministic
    try:
        import torch
    except ImportError as error:
        print(f"no PyTorch: {error}", file=sys.stderr)
        return 4
    if o.device.startswith("cuda") and not torch.cuda.is_available():
        print("PyTorch finds no CUDA device", file=sys.stderr)
        return 4
    try:
        train(torch, o)
    except torch.cuda.OutOfMemoryError as error:
        print(f"out of memory: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
