#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer with AdamW in PyTorch, from a fixed seed, and prints the loss of each step to the last bit.

An ordinary script: it knows nothing of any preload library. Deterministic kernels only, so that two runs can be compared.
Needs PyTorch; --device cpu works without a GPU. Exit: 0 done, 2 wrong options, 3 out of memory, 4 no PyTorch or no device.
"""
import argparse
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
    return parser.parse_args()


def build(torch, o):
    from torch import nn

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
                x = block(x)
            return self.head(x)

    return Model()


def train(torch, o):
    torch.manual_seed(o.seed)
    torch.use_deterministic_algorithms(True)
    model = build(torch, o).to(o.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(o.vocabulary, (o.steps, o.batch, o.sequence + 1), generator=torch.Generator().manual_seed(o.seed))
    for step in range(o.steps):
        batch = tokens[step].to(o.device)
        begin = time.monotonic()
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
