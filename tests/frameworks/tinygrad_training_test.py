# SPDX-License-Identifier: Apache-2.0
"""examples/train_tinygrad.py on a card of half its footprint, with the preload library and without.

Times are virtual: those of the program's own CUDA events on the simulated machine.
"""

import re
import statistics
import unittest

import machine

# Some 50 MiB of weights, moments and activations, and little arithmetic, which an interpreter has to do.
PROGRAM = [machine.EXAMPLES / "train_tinygrad.py", "--layers", "2", "--width", "384", "--heads", "6", "--sequence", "8", "--iterations", "20"]
STEADY = 14  # iterations in which the shim still learns; left out of the median
WITH_JIT, WITHOUT = [], ["--no-jit"]


def losses(run):
    return re.findall(r"^iter +\d+ +loss (\S+)", run.out, re.M)


def outputs(run):
    return losses(run), re.findall(r"^checksum (\S+)", run.out, re.M)


def ms_per_iteration(run):
    return statistics.median(float(ms) for ms in re.findall(r" ms (\S+)", run.out)[STEADY:])


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        gpu = {"DEV": "CUDA:PTX"}
        first = machine.side_by_side({
            "cpu": lambda: machine.run(*PROGRAM, DEV="CPU:X86"),
            "big jit": lambda: machine.run(*PROGRAM, trace=True, **gpu),
            "big": lambda: machine.run(*PROGRAM, *WITHOUT, trace=True, **gpu),
        })
        for run in first.values():
            run.must_succeed()
        cls.card = {kind: machine.footprint(first[kind].trace) // 2 for kind in ("big", "big jit")}
        cls.bound = {kind: machine.bound_safe_ms(first[kind].trace, cls.card[kind]) for kind in ("big", "big jit")}

        def small(kind, policy, **environment):
            options = WITH_JIT if kind == "big jit" else WITHOUT
            return lambda: machine.run(*PROGRAM, *options, card=cls.card[kind], policy=policy, **gpu, **environment)

        cls.runs = {**first, **machine.side_by_side({
            "native": small("big jit", None),
            "learned jit": small("big jit", "learned"), "learned": small("big", "learned"),
            "managed jit": small("big jit", "managed"),
            "threads jit": small("big jit", "learned", ATP_EXECUTOR="threads"), "threads": small("big", "learned", ATP_EXECUTOR="threads"),
        })}
        for name in ("big", "learned", "big jit", "managed jit", "learned jit"):
            run = cls.runs[name]
            bound = cls.bound["big jit" if "jit" in name else "big"]
            if run.code == 0:
                ms = ms_per_iteration(run)
                print(f"{name:12} {ms:9.3f} ms/iteration  {ms / bound:6.3f} x bound_safe", flush=True)
        print(f"footprint {2 * cls.card['big jit']} bytes with the JIT, {2 * cls.card['big']} without")

    def test_without_the_shim_the_losses_are_those_of_its_own_cpu_backend(self):
        cpu, gpu = losses(self.runs["cpu"]), losses(self.runs["big"])
        self.assertEqual(len(gpu), 20)
        self.assertEqual(len(cpu), 20)
        for expected, got in zip(cpu, gpu):
            self.assertAlmostEqual(float(got) / float(expected), 1, delta=1e-4)

    def test_it_learns(self):
        values = [float(loss) for loss in losses(self.runs["big"])]
        self.assertLess(statistics.mean(values[-5:]), values[0] - 1)

    def test_the_jit_changes_nothing_but_uses_graphs(self):
        self.assertEqual(outputs(self.runs["big"]), outputs(self.runs["big jit"]))
        self.assertGreater(self.runs["big jit"].stats["calls"]["cuGraphLaunch"], 20)
        self.assertNotIn("cuGraphLaunch", self.runs["big"].stats["calls"])

    def test_without_the_shim_half_the_memory_ends_in_its_own_error(self):
        self.assertEqual(self.runs["native"].code, 2)
        self.assertRegex(self.runs["native"].err, r"out of memory: Allocation of \S+ MB failed on CUDA")

    def test_under_the_shim_losses_and_weights_are_those_of_a_big_card_to_the_bit(self):
        for name in ("learned", "learned jit", "threads", "threads jit", "managed jit"):
            with self.subTest(name):
                self.assertEqual(outputs(self.runs[name].must_succeed()), outputs(self.runs["big"]))

    def test_memory_moved(self):
        for name in ("learned", "threads"):
            self.assertGreater(self.runs[name].stats["bytes"]["h2d"]["prefetch"], 0, name)

    def test_without_graphs_an_iteration_takes_no_more_than_a_tenth_above_the_bound(self):
        self.assertLessEqual(ms_per_iteration(self.runs["learned"].must_succeed()), 1.10 * self.bound["big"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
