# SPDX-License-Identifier: Apache-2.0
"""The programs of the closed-loop bench: what is run, at which sizes, and whether it repeats."""

from dataclasses import dataclass

GPUS = ("a100-40g", "v100-16g", "rtx3090", "h200")
OVERSUBSCRIPTIONS = (1.25, 1.5, 2.0, 4.0, 9.2)
# bound_safe / compute that a regime asks for; reached by scaling the time of kernels.
REGIMES = {"compute": 1.0, "balanced": 1.25, "link": 4.0}


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    quick: tuple            # arguments at small size: seconds, results compared to the bit
    full: tuple             # arguments for figures: cards of 1 GiB and more
    steps: str              # the option that says how many iterations
    periodic: bool = True
    oversubscriptions: tuple = OVERSUBSCRIPTIONS[:4]
    learns: int = 3         # periodic programs are to be locked by the end of this iteration

    def command(self, size, iterations):
        return [self.program, *getattr(self, size), self.steps, str(iterations)]


CASES = {case.name: case for case in (
    Case("transformer", "train_transformer", steps="--iterations",
         quick=("--layers", "1", "--width", "1024", "--heads", "8", "--sequence", "16"),
         full=("--layers", "12", "--width", "1024", "--heads", "8", "--sequence", "64"),
         oversubscriptions=OVERSUBSCRIPTIONS),
    Case("sweep", "stream_sweep", steps="--passes",
         quick=("--layers", "40", "--width", "1024"),
         full=("--layers", "96", "--width", "2048"),
         oversubscriptions=OVERSUBSCRIPTIONS),
)}
