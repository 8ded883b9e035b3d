#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two small trainings with kernels written in Numba: a two-layer network (`network`) and k-means (`kmeans`).

They know nothing of the shim or of the simulated machine. Every sum has a fixed order and no kernel uses float atomics, so the same options
give the same results on the same device, to the bit; numpy computes the same from the same start and every step is compared with it.

Prints one line a step (`iter N  loss L  error E`), then a checksum over the bits of the result. Exit: 0 done, 1 further from numpy than 1e-3,
2 out of memory or wrong options.
"""

import argparse
import hashlib
import sys

import numpy as np
from numba import cuda, float32
from numba.cuda.cudadrv.driver import CudaAPIError

TILE = 16
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
ALLOWED_ERROR = 1e-3


# --- kernels of the network: row-major matrices, one thread an element


@cuda.jit(device=True)
def relu(x):
    return x if x > 0 else float32(0)


@cuda.jit
def multiply(a, b, out, transpose_a, transpose_b, activate):
    """out = a b, each transposed or not, with tiles in shared memory; `activate`: relu of it."""
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    depth = a.shape[0] if transpose_a else a.shape[1]
    total = float32(0)
    for start in range(0, depth, TILE):
        k = start + x
        tile_a[y, x] = float32(0)
        if row < out.shape[0] and k < depth:
            tile_a[y, x] = a[k, row] if transpose_a else a[row, k]
        k = start + y
        tile_b[y, x] = float32(0)
        if column < out.shape[1] and k < depth:
            tile_b[y, x] = b[column, k] if transpose_b else b[k, column]
        cuda.syncthreads()
        for i in range(TILE):
            total += tile_a[y, i] * tile_b[i, x]
        cuda.syncthreads()
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = relu(total) if activate else total


@cuda.jit
def error_gradient(output, target, gradient, row_loss):
    """Gradient of the mean squared error, and each row's part of the loss: one thread a row."""
    row = cuda.grid(1)
    if row < output.shape[0]:
        total = float32(0)
        for column in range(output.shape[1]):
            difference = output[row, column] - target[row, column]
            gradient[row, column] = float32(2) * difference / float32(output.size)
            total += difference * difference
        row_loss[row] = total / float32(output.size)


@cuda.jit
def mask(gradient, hidden):
    column, row = cuda.grid(2)
    if row < hidden.shape[0] and column < hidden.shape[1] and hidden[row, column] <= 0:
        gradient[row, column] = float32(0)


@cuda.jit
def descend(weights, gradient, momentum, rate):
    column, row = cuda.grid(2)
    if row < weights.shape[0] and column < weights.shape[1]:
        momentum[row, column] = float32(0.9) * momentum[row, column] + gradient[row, column]
        weights[row, column] -= rate * momentum[row, column]


def over(matrix):
    """Launch shape with one thread for each element of a matrix."""
    rows, columns = matrix.shape
    return (-(-columns // TILE), -(-rows // TILE)), (TILE, TILE)


class Network:
    """x -> relu(x first) -> (..) second, trained to reproduce a fixed random function."""

    def __init__(self, options):
        random = np.random.default_rng(options.seed)
        width, batch = options.width, options.batch

        def normal(*shape, scale=1.0):
            return random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

        self.host = {"x": normal(batch, width), "target": normal(batch, width),
                     "first": normal(width, width, scale=width**-0.5), "second": normal(width, width, scale=width**-0.5)}
        zeros = {name: np.zeros((width, width), np.float32) for name in ("d_first", "d_second", "m_first", "m_second")}
        rows = {name: np.zeros((batch, width), np.float32) for name in ("hidden", "output", "d_output", "d_hidden")}
        self.device = {name: cuda.to_device(value) for name, value in {**self.host, **zeros, **rows, "loss": np.zeros(batch, np.float32)}.items()}
        self.host.update(zeros)
        self.rate = np.float32(0.002 * width)

    def step(self):
        d = self.device
        multiply[over(d["hidden"])](d["x"], d["first"], d["hidden"], False, False, True)
        multiply[over(d["output"])](d["hidden"], d["second"], d["output"], False, False, False)
        error_gradient[-(-len(d["loss"]) // 32), 32](d["output"], d["target"], d["d_output"], d["loss"])
        multiply[over(d["d_second"])](d["hidden"], d["d_output"], d["d_second"], True, False, False)
        multiply[over(d["d_hidden"])](d["d_output"], d["second"], d["d_hidden"], False, True, False)
        mask[over(d["hidden"])](d["d_hidden"], d["hidden"])
        multiply[over(d["d_first"])](d["x"], d["d_hidden"], d["d_first"], True, False, False)
        for name in ("first", "second"):
            descend[over(d[name])](d[name], d["d_" + name], d["m_" + name], self.rate)
        return float(d["loss"].copy_to_host().sum())

    def expected_step(self):
        h = self.host
        hidden = np.maximum(h["x"] @ h["first"], 0)
        difference = hidden @ h["second"] - h["target"]
        gradient = 2 * difference / np.float32(difference.size)
        gradients = {"first": h["x"].T @ (gradient @ h["second"].T * (hidden > 0)), "second": hidden.T @ gradient}
        for name, value in gradients.items():
            h["m_" + name] = np.float32(0.9) * h["m_" + name] + value
            h[name] = h[name] - self.rate * h["m_" + name]
        return float((difference**2).mean())

    def result(self):
        return [self.device[name].copy_to_host() for name in ("first", "second")]


# --- kernels of k-means


@cuda.jit
def nearest(points, centres, labels, distances):
    """Label of each point; the centres are read from shared memory."""
    shared = cuda.shared.array(1024, float32)
    count, size = centres.shape
    for i in range(cuda.threadIdx.x, count * size, cuda.blockDim.x):
        shared[i] = centres[i // size, i % size]
    cuda.syncthreads()
    point = cuda.grid(1)
    if point < points.shape[1]:
        best, best_distance = 0, float32(np.inf)
        for centre in range(count):
            distance = float32(0)
            for k in range(size):
                difference = points[k, point] - shared[centre * size + k]
                distance += difference * difference
            if distance < best_distance:
                best, best_distance = centre, distance
        labels[point], distances[point] = best, best_distance


@cuda.jit
def partial_sums(points, labels, distances, sums, counts, losses):
    """Sums of the points of each centre, over a slice of the points each thread: no atomics, so the order is fixed."""
    part = cuda.grid(1)
    parts = sums.shape[0]
    if part < parts:
        per_part = -(-points.shape[1] // parts)
        end = (part + 1) * per_part
        if end > points.shape[1]:
            end = points.shape[1]
        for point in range(part * per_part, end):
            label = labels[point]
            counts[part, label] += 1
            losses[part] += distances[point]
            for k in range(points.shape[0]):
                sums[part, label, k] += points[k, point]


class KMeans:
    """Points in several arrays, as they come from several files; the centres move on the host."""

    parts = 64
    size = 8

    def __init__(self, options):
        random = np.random.default_rng(options.seed)
        means = random.standard_normal((options.centres, self.size), dtype=np.float32) * 4
        self.chunks = [np.ascontiguousarray((means[random.integers(0, options.centres, options.points)]
                                             + random.standard_normal((options.points, self.size), dtype=np.float32)).T)
                       for _ in range(options.chunks)]
        self.centres = self.chunks[0][:, :options.centres].T.copy()
        self.expected_centres = self.centres.copy()
        self.points = [cuda.to_device(chunk) for chunk in self.chunks]
        self.labels = [cuda.device_array(options.points, np.int32) for _ in self.chunks]
        self.distances = [cuda.device_array(options.points, np.float32) for _ in self.chunks]

    def step(self):
        centres = cuda.to_device(self.centres)
        sums, counts, loss = np.zeros(self.centres.shape), np.zeros(len(self.centres)), 0.0
        for points, labels, distances in zip(self.points, self.labels, self.distances):
            nearest[-(-points.shape[1] // 128), 128](points, centres, labels, distances)
            part = [cuda.to_device(np.zeros((self.parts, *shape), np.float32)) for shape in (self.centres.shape, self.centres.shape[:1], ())]
            partial_sums[self.parts // 32, 32](points, labels, distances, *part)
            part_sums, part_counts, part_loss = (array.copy_to_host().astype(np.float64).sum(axis=0) for array in part)
            sums, counts, loss = sums + part_sums, counts + part_counts, loss + part_loss
        self.centres = moved(self.centres, sums, counts)
        return loss / sum(chunk.shape[1] for chunk in self.chunks)

    def expected_step(self):
        points = np.concatenate(self.chunks, axis=1)
        distances = ((points[None] - self.expected_centres[:, :, None])**2).sum(axis=1)
        labels = distances.argmin(axis=0)
        sums = np.stack([points[:, labels == k].sum(axis=1, dtype=np.float64) for k in range(len(self.centres))])
        counts = np.bincount(labels, minlength=len(self.centres)).astype(np.float64)
        self.expected_centres = moved(self.expected_centres, sums, counts)
        return float(distances.min(axis=0).mean(dtype=np.float64))

    def result(self):
        return [self.centres, *(labels.copy_to_host() for labels in self.labels)]


def moved(centres, sums, counts):
    """Means of the points, where there are any."""
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres).astype(np.float32)


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["network", "kmeans"])
    for name, default, meaning in [("iterations", 8, "steps"), ("seed", 1, "of data and weights"), ("width", 1024, "of both layers of the network"),
                                   ("batch", 8, "rows that the network sees"), ("points", 65536, "points in a chunk"), ("chunks", 12, "arrays of points"),
                                   ("centres", 6, "of k-means")]:
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{meaning} (default {default})")
    chosen = parser.parse_args()
    if chosen.centres * KMeans.size > 1024:
        parser.error(f"--centres {chosen.centres}: at most {1024 // KMeans.size}")
    return chosen


def train(options):
    training = Network(options) if options.what == "network" else KMeans(options)
    for iteration in range(1, options.iterations + 1):
        loss, expected = training.step(), training.expected_step()
        error = abs(loss - expected) / expected
        print(f"iter {iteration}  loss {loss:.9g}  error {error:.2e}", flush=True)
        if not error <= ALLOWED_ERROR:
            return 1
    digest = hashlib.sha256()
    for array in training.result():
        digest.update(array.tobytes())
    print(f"checksum {digest.hexdigest()[:16]}")
    return 0


def main():
    try:
        return train(options())
    except CudaAPIError as error:
        if error.code != OUT_OF_MEMORY:
            raise
        print(f"out of memory: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
