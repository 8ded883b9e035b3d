# SPDX-License-Identifier: Apache-2.0
"""Five small programs in Numba, each compared with numpy.  numba_programs.py NAME [MEGABYTES]

They use what kernels of Numba use beyond plain arithmetic: device functions and libdevice, shared memory and warp shuffles, atomics, local arrays
and printf, cooperative groups. Each holds about MEGABYTES (default 24) of arrays and prints a checksum. Exit: 0 right, 1 wrong, 2 out of memory.
"""

import hashlib
import math
import sys

import numpy as np
from numba import cuda, float32
from numba.cuda.cudadrv.driver import CudaAPIError

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
BLOCK = 128


def blocks(count):
    return -(-count // BLOCK)


def close(got, expected, tolerance):
    return bool(np.all(np.abs(got - expected) <= tolerance * np.maximum(1, np.abs(expected))))


@cuda.jit(device=True)
def bent(x):
    return math.exp(-x * x) * math.cos(float32(3) * x) + math.sqrt(abs(x)) * math.log(abs(x) + float32(1))


@cuda.jit
def bend(values, out):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        out[i] = bent(values[i])


def device_functions(random, count):
    arrays = [random.standard_normal(count // 4, dtype=np.float32) for _ in range(4)]
    held = [(cuda.to_device(array), cuda.device_array_like(array)) for array in arrays]
    for _ in range(2):
        for values, out in held:
            bend[64, BLOCK](values, out)
    result = np.concatenate([out.copy_to_host() for _, out in held])
    x = np.concatenate(arrays).astype(np.float64)
    return result, close(result, np.exp(-x * x) * np.cos(3 * x) + np.sqrt(np.abs(x)) * np.log(np.abs(x) + 1), 1e-5)


@cuda.jit
def block_sums(values, out):
    """Sum of 8 values a thread: by shuffles in a warp, then through shared memory."""
    warps = cuda.shared.array(4, float32)
    total = float32(0)
    for k in range(8):
        i = (cuda.blockIdx.x * 8 + k) * BLOCK + cuda.threadIdx.x
        if i < values.size:
            total += values[i]
    offset = 16
    while offset > 0:
        total += cuda.shfl_down_sync(0xffffffff, total, offset)
        offset //= 2
    if cuda.threadIdx.x % 32 == 0:
        warps[cuda.threadIdx.x // 32] = total
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = warps[0] + warps[1] + warps[2] + warps[3]


def shared_memory(random, count):
    arrays = [random.random(count // 4, dtype=np.float32) for _ in range(8)]
    held = [cuda.to_device(array) for array in arrays]
    sums = []
    for _ in range(2):
        for values in held:
            out = cuda.device_array(blocks(values.size // 8 + 1), np.float32)
            block_sums[out.size, BLOCK](values, out)
            sums.append(out.copy_to_host().sum(dtype=np.float64))
    result = np.array(sums)
    return result, close(result, np.array([array.sum(dtype=np.float64) for array in arrays] * 2), 1e-5)


@cuda.jit
def count_values(values, bins, largest):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)
        cuda.atomic.max(largest, 0, values[i])


def atomics(random, count):
    arrays = [random.integers(0, 500, count // 8, dtype=np.int32) for _ in range(16)]
    held = [cuda.to_device(array) for array in arrays]
    bins, largest = cuda.to_device(np.zeros(512, np.int32)), cuda.to_device(np.zeros(1, np.int32))
    for values in held:
        count_values[blocks(values.size), BLOCK](values, bins, largest)
    result = np.concatenate([bins.copy_to_host(), largest.copy_to_host()])
    every = np.concatenate(arrays)
    return result, bool((result == np.append(np.bincount(every, minlength=512), every.max())).all())


@cuda.jit
def medians(values, out):
    """Median of each run of nine, by insertion into an array of the thread's own."""
    i = cuda.grid(1)
    if i >= out.size:
        return
    window = cuda.local.array(9, float32)
    for k in range(9):
        value = values[i * 9 + k]
        at = k
        while at > 0 and window[at - 1] > value:
            window[at] = window[at - 1]
            at -= 1
        window[at] = value
    out[i] = window[4]
    if i == 7:
        print("median", i, window[4])


def local_arrays(random, count):
    rows = count // 40
    arrays = [random.standard_normal(9 * rows, dtype=np.float32) for _ in range(8)]
    held = [(cuda.to_device(array), cuda.device_array(rows, np.float32)) for array in arrays]
    for values, out in held:
        medians[blocks(rows), BLOCK](values, out)
    cuda.synchronize()
    result = np.concatenate([out.copy_to_host() for _, out in held])
    return result, bool((result == np.median(np.concatenate(arrays).reshape(-1, 9), axis=1)).all())


@cuda.jit
def diffuse(first, second, steps):
    """Steps of a stencil in one launch: the whole grid waits between two of them."""
    grid = cuda.cg.this_grid()
    for step in range(steps):
        source, target = (first, second) if step % 2 == 0 else (second, first)
        for i in range(cuda.grid(1) + 1, source.size - 1, cuda.gridsize(1)):
            target[i] = float32(0.25) * (source[i - 1] + source[i + 1]) + float32(0.5) * source[i]
        grid.sync()


def cooperative_groups(random, count):
    arrays = [random.random(count // 4, dtype=np.float32) for _ in range(4)]
    held = [(cuda.to_device(array), cuda.to_device(array)) for array in arrays]
    for first, second in held:
        diffuse[8, BLOCK](first, second, 4)
    result = np.stack([first.copy_to_host() for first, _ in held])
    expected = np.stack(arrays)
    for _ in range(4):
        inside = np.float32(0.25) * (expected[:, :-2] + expected[:, 2:]) + np.float32(0.5) * expected[:, 1:-1]
        expected = np.concatenate([expected[:, :1], inside, expected[:, -1:]], axis=1)
    return result, close(result, expected, 1e-6)


PROGRAMS = {function.__name__: function for function in (device_functions, shared_memory, atomics, local_arrays, cooperative_groups)}


def main():
    name, megabytes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24
    try:
        result, right = PROGRAMS[name](np.random.default_rng(5), megabytes * (1 << 20) // 8)
    except CudaAPIError as error:
        if error.code != OUT_OF_MEMORY:
            raise
        print(f"out of memory: {error}", file=sys.stderr)
        return 2
    print(f"{name}: {'right' if right else 'WRONG'}, {result.size} values, checksum {hashlib.sha256(result.tobytes()).hexdigest()[:16]}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
