# SPDX-License-Identifier: Apache-2.0
"""Imports a framework and asks whether CUDA is there.  wheel_probe.py NAME

Prints what it answers, the environment that a framework might read, and what workers made by fork give back. For comparison with and without
the preload library: whatever differs is the library's doing.
"""

import os
import sys


def torch():
    import torch as framework
    from torch.utils.data import DataLoader
    print("version", framework.__version__, "built for", framework.version.cuda)
    print("available", framework.cuda.is_available(), framework.cuda.device_count())
    try:
        framework.zeros(1, device="cuda")
    except Exception as error:  # pylint: disable=broad-except  # the message is what is compared
        print(type(error).__name__, error)
    print("workers", [int(batch.sum()) for batch in DataLoader(range(64), batch_size=8, num_workers=2)])


def jax():
    import jax as framework
    print("version", framework.__version__)
    print("devices", framework.devices())
    print("sum", framework.numpy.arange(10).sum())


def tensorflow():
    import tensorflow as framework
    print("version", framework.__version__, framework.sysconfig.get_build_info().get("cuda_version"))
    print("devices", framework.config.list_physical_devices("GPU"))
    print("sum", int(framework.reduce_sum(framework.range(10))))


def cupy():
    import cupy as framework
    print("version", framework.__version__)
    print("available", framework.cuda.is_available())
    try:
        print(framework.zeros(1))
    except Exception as error:  # pylint: disable=broad-except  # the message is what is compared
        print(type(error).__name__, error)


def forked():
    """Three children, as data loaders make them."""
    codes = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            os._exit(number)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return codes


def main():
    {"torch": torch, "jax": jax, "tensorflow": tensorflow, "cupy": cupy}[sys.argv[1].split("-")[0]]()
    print("forked", forked())
    for name in sorted(os.environ):
        if name.startswith(("CUDA", "PYTORCH", "TORCH", "XLA", "JAX", "TF_", "CUPY", "NCCL")):
            print("environment", name, os.environ[name])


if __name__ == "__main__":
    main()
