# SPDX-License-Identifier: Apache-2.0
"""The programs of the closed-loop bench: what is run, at which sizes, and whether it repeats."""

from dataclasses import dataclass

GPUS = ("a100-40g", "v100-16g", "rtx3090", "h200")
# bound_safe / compute that a regime asks for; reached by scaling the time of kernels.
REGIMES = {"compute": 1.0, "balanced": 1.25, "link": 4.0}
OVERSUBSCRIPTIONS = (1.25, 1.5, 2.0, 4.0)
TIGHT = (*OVERSUBSCRIPTIONS, 9.2)


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    quick: tuple            # arguments at small size: seconds, results compared to the bit
    full: tuple             # arguments for figures: cards of 1 GiB and more
    steps: str = "--iterations"  # the option that says how many
    periodic: bool = True
    oversubscriptions: tuple = OVERSUBSCRIPTIONS
    smoke: bool = True      # part of the reduced set that CI runs
    learns: int = 3         # a periodic program is to be locked by the end of this iteration
    modelled: bool = True   # at figures' size repeated launches may be modelled: which they are does not depend on results
    grows: bool = False     # every iteration has a bound of its own
    judged: str = ""        # "bound", "managed" or "pinned": what the time is held against; "" = bound when periodic, else managed
    of_managed: float = 0   # besides, at most this share of the time of plain managed memory; 0 = nothing is asked
    allowed: float = 0      # times that; 0 = what the oversubscription allows
    ranks: int = 1          # processes, one a card; the first one is measured, and prints the time of the slowest
    by_hand: bool = False   # the program has an option --offload BYTES, by which it moves memory itself: compared too
    iterations: int = 0     # at least so many

    def target(self, oversubscription):
        """(what the time is held against, at most how many times that)"""
        judged = self.judged or ("bound" if self.periodic else "managed")
        if self.allowed:
            return judged, self.allowed
        if judged == "managed":
            return judged, 1.02
        return judged, 1.05 if oversubscription <= 2 else 1.10

    def command(self, size, iterations):
        return [self.program, *getattr(self, size), self.steps, str(iterations)]


def words(text):
    return tuple(text.split())


# The same network through the allocators that frameworks bring (examples/support/allocators.h).
def residual(allocator, allowed):
    return Case(allocator, "train_residual", smoke=False, allowed=allowed,
                quick=words(f"--allocator {allocator} --blocks 6 --width 256 --batch 64 --arena 52"),
                full=words(f"--allocator {allocator} --blocks 64 --width 512 --batch 128 --arena 1750"))


CASES = {case.name: case for case in (
    Case("transformer", "train_transformer", oversubscriptions=TIGHT, smoke=False,
         quick=words("--layers 1 --width 1024 --heads 8 --sequence 16"),
         full=words("--layers 8 --width 1024 --heads 8 --sequence 32"), by_hand=True),
    # The published layers; pictures of 64 instead of 224, of which the first fully connected layer is narrower.
    Case("vgg19", "train_vgg", oversubscriptions=TIGHT, smoke=False, of_managed=0.40,
         quick=words("--channels 32 --image 32 --hidden 1024 --classes 100 --batch 1"),
         full=words("--channels 64 --image 64 --hidden 4096 --classes 1000 --batch 2")),
    Case("lstm", "train_lstm", smoke=False,
         quick=words("--layers 4 --hidden 256 --batch 32 --sequence 8"),
         full=words("--layers 2 --hidden 1536 --batch 32 --sequence 8")),
    Case("sweep", "stream_sweep", steps="--passes", oversubscriptions=TIGHT,
         quick=words("--layers 24 --width 1024"),
         full=words("--layers 96 --width 2048")),
    # 300 tensors of a language model in one buffer, as llama.cpp loads them.
    Case("weights", "weight_buffer", steps="--passes", smoke=False, allowed=1.15,
         quick=words("--layers 33 --width 256 --hidden 704 --vocabulary 1024"),
         full=words("--layers 33 --width 1024 --hidden 2816 --vocabulary 8192")),
    Case("decode", "decode", steps="--tokens", grows=True, allowed=1.10,
         quick=words("--layers 2 --width 1024 --heads 8 --batch 2 --context 64 --prompt 32"),
         full=words("--layers 8 --width 2048 --heads 16 --batch 2 --context 1024 --prompt 512")),
    # Measured from the ninth token on: until then some experts are used for the first time, which the best pinning knows in advance.
    Case("moe", "decode", steps="--tokens", periodic=False, judged="pinned", allowed=1.10, oversubscriptions=(1.5, 2.0, 4.0),
         modelled=False, smoke=False, learns=8, iterations=32,
         quick=words("--layers 2 --width 512 --heads 8 --batch 4 --context 32 --experts 8"),
         full=words("--layers 4 --width 1024 --heads 16 --batch 4 --context 64 --experts 12")),
    Case("buckets", "train_transformer", periodic=False, smoke=False, judged="bound", allowed=1.15,
         quick=words("--layers 1 --width 1024 --heads 8 --sequence 32 --buckets 8"),
         full=words("--layers 8 --width 1024 --heads 8 --sequence 32 --buckets 8")),
    Case("ddp", "train_ddp", smoke=False, ranks=4, oversubscriptions=(1.5,), allowed=1.10,
         quick=words("--layers 2 --width 512 --heads 8 --sequence 16 --exchange 256"),
         full=words("--layers 8 --width 1024 --heads 8 --sequence 32")),
    Case("stencil", "stencil", smoke=False,
         quick=words("--slabs 16 --planes 16 --edge 256"),
         full=words("--slabs 24 --planes 32 --edge 512")),
    Case("bfs", "bfs", periodic=False, modelled=False, smoke=False,
         quick=words("--parts 16 --vertices 32768 --degree 64"),
         full=words("--parts 24 --vertices 131072 --degree 64")),
    Case("kmeans", "kmeans",
         quick=words("--chunks 20 --points 16384 --dimensions 64 --clusters 4"),
         full=words("--chunks 32 --points 131072 --dimensions 64 --clusters 4")),
    residual("plain", 1.07),
    residual("async", 1.07),
    residual("caching", 1.10),
    residual("expandable", 1.10),
    residual("arena", 1.15),
)}
