# SPDX-License-Identifier: Apache-2.0
"""The programs of the closed-loop bench: what is run, at which sizes, and whether it repeats."""

import math
from dataclasses import dataclass

GPUS = ("a100-40g", "v100-16g", "rtx3090", "h200")
# bound_safe / compute that a regime asks for; reached by scaling the time of kernels.
REGIMES = {"compute": 1.0, "balanced": 1.25, "link": 4.0}
FITS = 0.8
OVERSUBSCRIPTIONS = (FITS, 1.25, 1.5, 2.0, 4.0)
TIGHT = (*OVERSUBSCRIPTIONS, 9.2)


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    quick: tuple            # arguments at small size: seconds, results compared to the bit
    full: tuple             # arguments for figures: a card of 1 GiB or more, up to twice which is used
    grows_by: str = ""      # the option that makes more of it beyond that, so that the card stays as large
    steps: str = "--iterations"  # the option that says how many
    periodic: bool = True
    oversubscriptions: tuple = OVERSUBSCRIPTIONS
    usual: tuple = (1.5,)   # oversubscriptions of the usual set
    smoke: bool = True      # part of the reduced set that CI runs
    learns: int = 3         # a periodic program is to be locked by the end of this iteration
    modelled: bool = True   # at figures' size repeated launches may be modelled: which they are does not depend on results
    growing: bool = False   # every iteration has a bound of its own
    judged: str = ""        # "bound", "managed" or "pinned": what the time is held against; "" = bound when periodic, else managed
    of_managed: float = 0   # besides, at most this share of the time of plain managed memory; 0 = nothing is asked
    allowed: float = 0      # times that; 0 = what the oversubscription allows
    ranks: int = 1          # processes, one a card; the first one is measured, and prints the time of the slowest
    by_hand: bool = False   # the program has an option --offload BYTES, by which it moves memory itself: compared too
    iterations: int = 0     # so many instead of the default

    def target(self, oversubscription):
        """(what the time is held against, at most how many times that)"""
        if oversubscription <= 1:
            return "bound", 1.01
        judged = self.judged or ("bound" if self.periodic else "managed")
        if self.allowed:
            return judged, self.allowed
        if judged == "managed":
            return judged, 1.02
        return judged, 1.05 if oversubscription <= 2 else 1.10

    def grown(self, size, oversubscription):
        return size == "full" and self.grows_by != "" and oversubscription > 2

    def command(self, size, iterations, oversubscription):
        words = list(getattr(self, size))
        if self.grown(size, oversubscription):
            value = words.index(self.grows_by) + 1
            words[value] = str(math.ceil(int(words[value]) * oversubscription / 2))
        return [self.program, *words, self.steps, str(iterations)]


def words(text):
    return tuple(text.split())


# The same network through the allocators that frameworks bring (examples/support/allocators.h).
def residual(allocator, allowed):
    return Case(allocator, "train_residual", smoke=False, allowed=allowed,
                quick=words(f"--allocator {allocator} --blocks 6 --width 256 --batch 64 --arena 52"),
                full=words(f"--allocator {allocator} --blocks 86 --width 512 --batch 128 --arena 2350"))


CASES = {case.name: case for case in (
    Case("transformer", "train_transformer", oversubscriptions=TIGHT, usual=(FITS, 1.5), smoke=False,
         quick=words("--layers 1 --width 1024 --heads 8 --sequence 16"),
         full=words("--layers 11 --width 1024 --heads 8 --sequence 32"), grows_by="--layers", by_hand=True),
    # At figures' size the published layers and pictures.
    Case("vgg19", "train_vgg", oversubscriptions=TIGHT, smoke=False, of_managed=0.40,
         quick=words("--channels 32 --image 32 --hidden 1024 --classes 100 --batch 1"),
         full=words("--channels 64 --image 224 --hidden 4096 --classes 1000 --batch 2"), grows_by="--batch"),
    Case("lstm", "train_lstm", smoke=False,
         quick=words("--layers 4 --hidden 256 --batch 32 --sequence 8"),
         full=words("--layers 4 --hidden 2560 --batch 4 --sequence 8"), grows_by="--layers"),
    Case("sweep", "stream_sweep", steps="--passes", oversubscriptions=TIGHT,
         quick=words("--layers 24 --width 1024"),
         full=words("--layers 130 --width 2048"), grows_by="--layers"),
    # The tensors of a language model in one buffer, as llama.cpp loads them: 300 at small size.
    Case("weights", "weight_buffer", steps="--passes", smoke=False, allowed=1.15,
         quick=words("--layers 33 --width 256 --hidden 704 --vocabulary 1024"),
         full=words("--layers 48 --width 1024 --hidden 2816 --vocabulary 8192"), grows_by="--layers"),
    Case("decode", "decode", steps="--tokens", growing=True, allowed=1.10,
         quick=words("--layers 2 --width 1024 --heads 8 --batch 2 --context 64 --prompt 32"),
         full=words("--layers 11 --width 2048 --heads 16 --batch 1 --context 2048 --prompt 1152"), grows_by="--layers"),
    # Measured from the 193rd token on, as servers run for long: before that many experts are used for the first time. And in few tokens the best pinning
    # knows by hindsight which of the seldom used ones will be used.
    Case("moe", "decode", steps="--tokens", periodic=False, judged="pinned", allowed=1.10, oversubscriptions=(FITS, 1.5, 2.0, 4.0),
         modelled=False, smoke=False, learns=192, iterations=448,
         quick=words("--layers 2 --width 512 --heads 8 --batch 4 --context 448 --experts 8"),
         full=words("--layers 5 --width 1024 --heads 16 --batch 4 --context 448 --experts 12"), grows_by="--layers"),
    Case("buckets", "train_transformer", periodic=False, smoke=False, judged="bound", allowed=1.15,
         quick=words("--layers 1 --width 1024 --heads 8 --sequence 32 --buckets 8"),
         full=words("--layers 11 --width 1024 --heads 8 --sequence 32 --buckets 8"), grows_by="--layers"),
    Case("ddp", "train_ddp", smoke=False, ranks=4, oversubscriptions=(1.5,), allowed=1.10,
         quick=words("--layers 2 --width 512 --heads 8 --sequence 16 --exchange 256"),
         full=words("--layers 8 --width 1024 --heads 8 --sequence 32 --exchange 512")),
    Case("stencil", "stencil", smoke=False,
         quick=words("--slabs 16 --planes 16 --edge 256"),
         full=words("--slabs 33 --planes 32 --edge 512"), grows_by="--slabs"),
    Case("bfs", "bfs", periodic=False, modelled=False, smoke=False,
         quick=words("--parts 16 --vertices 32768 --degree 64"),
         full=words("--parts 66 --vertices 131072 --degree 64"), grows_by="--parts", iterations=6),
    Case("kmeans", "kmeans",
         quick=words("--chunks 20 --points 16384 --dimensions 64 --clusters 4"),
         full=words("--chunks 66 --points 131072 --dimensions 64 --clusters 2"), grows_by="--chunks"),
    residual("plain", 1.07),
    residual("async", 1.07),
    residual("caching", 1.10),
    residual("expandable", 1.10),
    residual("arena", 1.15),
)}
