# SPDX-License-Identifier: Apache-2.0
"""Programs in Numba: right on the simulated machine, and the same to the bit under the preload library, on cards of half and twice their footprint.

Numba's own CUDA target is used as it is: it hands PTX text to the driver's linker (cuLink*). Its NVVM is that of the CUDA toolkit.
"""

import sys
import unittest
from pathlib import Path

import machine

PROGRAMS = {name: [machine.ROOT / "tests/frameworks/numba_programs.py", name]
            for name in ("device_functions", "shared_memory", "atomics", "local_arrays", "cooperative_groups")}
PROGRAMS["network"] = [machine.EXAMPLES / "train_numba.py", "network", "--iterations", "4"]
PROGRAMS["kmeans"] = [machine.EXAMPLES / "train_numba.py", "kmeans", "--iterations", "3"]
TOOLKIT = {"CUDA_HOME": str(Path(sys.prefix) / "cuda"), "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"}  # made by scripts/frameworks.sh


class Numba(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        big = {name: lambda program=program: machine.run(*program, trace=True, **TOOLKIT) for name, program in PROGRAMS.items()}
        cls.big = {name: run.must_succeed() for name, run in machine.side_by_side(big).items()}
        cls.footprint = {name: machine.footprint(run.trace) for name, run in cls.big.items()}
        others = {}
        for name, program in PROGRAMS.items():
            for case, share, policy in (("native", 0.5, None), ("half", 0.5, "learned"), ("double", 2, "learned")):
                card = int(share * cls.footprint[name])
                others[name, case] = lambda program=program, card=card, policy=policy: machine.run(*program, card=card, policy=policy, **TOOLKIT)
        cls.runs = machine.side_by_side(others)

    def test_kernels_came_as_ptx_through_the_drivers_linker_and_ran(self):
        for name, run in self.big.items():
            with self.subTest(name):
                self.assertGreater(run.stats["calls"]["cuLinkAddData_v2"], 0)
                self.assertEqual(run.stats["unsupported_calls"], {})
                launches = sum(run.stats["calls"].get(call, 0) for call in ("cuLaunchKernel", "cuLaunchCooperativeKernel"))
                self.assertGreaterEqual(launches, 4)

    def test_a_cooperative_grid_was_launched_as_one(self):
        self.assertEqual(self.big["cooperative_groups"].stats["calls"]["cuLaunchCooperativeKernel"], 4)

    def test_printf_of_a_kernel_is_seen(self):
        self.assertEqual(self.big["local_arrays"].out.count("median 7 "), 8)

    def test_each_needs_more_than_a_few_blocks(self):
        for name, bytes_held in self.footprint.items():
            self.assertGreater(bytes_held, 16 << 20, name)

    def test_without_the_shim_half_the_memory_ends_in_its_own_error(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.assertEqual(self.runs[name, "native"].code, 2, self.runs[name, "native"].err)
                self.assertIn("out of memory", self.runs[name, "native"].err)

    def test_under_the_shim_the_output_is_the_same_to_the_last_digit(self):
        for name in PROGRAMS:
            for case in ("half", "double"):
                with self.subTest(f"{name} {case}"):
                    self.assertEqual(self.runs[name, case].must_succeed().out, self.big[name].out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
