# SPDX-License-Identifier: Apache-2.0
"""Imports a framework and asks whether CUDA is there.  wheel_probe.py NAME

Prints what it answers and what workers made by fork give back, on a line of its own ("memory ...") how it will ask for memory, and as its last
line the environment as JSON. For comparison with and without the preload library: whatever else differs is the library's doing.
It names no framework in an import, so that the library must find out by what is installed.
"""

import importlib
import json
import os
import sys


def attempt(function):
    """Prints what it gives, or the error and its message."""
    try:
        print(function())
    except Exception as error:  # pylint: disable=broad-except  # the message is what is compared
        print(type(error).__name__, error)


def torch():
    framework = importlib.import_module("torch")
    loader = importlib.import_module("torch.utils.data").DataLoader
    print("version", framework.__version__, "built for", framework.version.cuda)
    print("available", framework.cuda.is_available(), framework.cuda.device_count())
    print("memory", framework.cuda.get_allocator_backend())
    attempt(lambda: framework.zeros(1, device="cuda"))
    # Workers are forked here, after the parent has met the driver.
    print("workers", [int(batch.sum()) for batch in loader(range(64), batch_size=8, num_workers=2)])
    print("workers' own answer", [batch.tolist() for batch in loader(AskedInWorker(), batch_size=1, num_workers=2)])


class AskedInWorker:
    """A data set whose items are what a worker itself is told of CUDA."""

    def __len__(self):
        return 2

    def __getitem__(self, _):
        return int(importlib.import_module("torch").cuda.is_available())


def jax():
    framework = importlib.import_module("jax")
    print("version", framework.__version__)
    options = importlib.import_module("jaxlib.xla_client").generate_pjrt_gpu_plugin_options()
    print("memory", options.get("allocator", "default"), options.get("preallocate", "default"))
    attempt(framework.devices)
    print("sum", framework.numpy.arange(10).sum())


def tensorflow():
    framework = importlib.import_module("tensorflow")
    print("version", framework.__version__, framework.sysconfig.get_build_info().get("cuda_version"))
    print("devices", framework.config.list_physical_devices("GPU"))
    print("sum", int(framework.reduce_sum(framework.range(10))))


def cupy():
    framework = importlib.import_module("cupy")
    print("version", framework.__version__)
    print("available", framework.cuda.is_available())
    attempt(lambda: framework.zeros(1))


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
    print(json.dumps(dict(os.environ)))


if __name__ == "__main__":
    main()
