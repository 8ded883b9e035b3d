# SPDX-License-Identifier: Apache-2.0
"""examples/train_tinygrad.py on a card of half its footprint, with the preload library and without.

Times are virtual: those of the program's own CUDA events on the simulated machine.
"""

import re
import statistics
import unittest

import machine

# Some 80 MiB of weights, moments and activations, and little arithmetic, which an interpreter has to do.
PROGRAM = [machine.EXAMPLES / "train_tinygrad.py", "--layers", "2", "--width", "512", "--sequence", "8"]
ITERATIONS = ["--iterations", "20"]
STEADY = 8  # iterations in which the shim still learns; left out of the median
CUDA = {"DEV": "CUDA:PTX"}


def losses(run):
    return re.findall(r"^iter +\d+ +loss (\S+)", run.out, re.M)


def outputs(run):
    return losses(run), re.findall(r"^checksum (\S+)", run.out, re.M)


def ms_per_iteration(run):
    return statistics.median(float(ms) for ms in re.findall(r" ms (\S+)", run.out)[STEADY:])


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runs = machine.side_by_side({
            "cpu": lambda: machine.run(*PROGRAM, *ITERATIONS, DEV="CPU:X86").must_succeed(),
            "big": lambda: machine.run(*PROGRAM, *ITERATIONS, "--no-jit", trace=True, **CUDA).must_succeed(),
        })
        # The JIT launches the same kernels over as much memory, so one footprint and one bound serve both.
        trace = cls.runs["big"].trace
        card = machine.footprint(trace) // 2
        cls.bound = machine.bound_safe_ms(trace, card)

        def half(policy, *options, **environment):
            return lambda: machine.run(*PROGRAM, *(options or ITERATIONS), card=card, policy=policy, **CUDA, **environment)

        threads = {"ATP_EXECUTOR": "threads"}
        cls.runs.update(machine.side_by_side({
            "learned": half("learned", *ITERATIONS, "--no-jit"), "learned, jit": half("learned"),
            "threads": half("learned", *ITERATIONS, "--no-jit", **threads), "threads, jit": half("learned", **threads),
            "managed, jit": half("managed", "--iterations", "12"), "native": half(None),
        }))
        print(f"\nfootprint {2 * card} bytes, bound_safe {cls.bound:.3f} ms/iteration on half of it")
        for name in ("big", "learned", "learned, jit", "managed, jit"):
            ms = ms_per_iteration(cls.runs[name].must_succeed())
            print(f"{name:14}{ms:9.3f} ms/iteration {ms / cls.bound:7.3f} x bound_safe", flush=True)

    def test_without_the_shim_the_losses_are_those_of_its_own_cpu_backend(self):
        cpu, gpu = losses(self.runs["cpu"]), losses(self.runs["big"])
        self.assertEqual(len(gpu), 20)
        self.assertEqual(len(cpu), 20)
        for expected, got in zip(cpu, gpu):
            self.assertAlmostEqual(float(got) / float(expected), 1, delta=1e-4)

    def test_it_learns(self):
        values = [float(loss) for loss in losses(self.runs["big"])]
        self.assertLess(statistics.mean(values[-5:]), values[0] - 1)

    def test_the_jit_launches_graphs(self):
        """As the driver sees it: whole graphs without hints, their nodes one by one where the shim launches what is larger than the room."""
        self.assertGreater(self.runs["managed, jit"].stats["calls"]["cuGraphLaunch"], 20)
        self.assertGreater(self.runs["learned, jit"].stats["calls"]["cuGraphExecKernelNodeSetParams_v2"], 20)
        self.assertNotIn("cuGraphInstantiate_v2", self.runs["learned"].stats["calls"])

    def test_without_the_shim_half_the_memory_ends_in_its_own_error(self):
        self.assertEqual(self.runs["native"].code, 2)
        self.assertRegex(self.runs["native"].err, r"out of memory: Allocation of \S+ MB failed on CUDA")

    def test_under_the_shim_losses_and_weights_are_those_of_a_big_card_to_the_bit(self):
        for name in ("learned", "learned, jit", "threads", "threads, jit"):
            with self.subTest(name):
                self.assertEqual(outputs(self.runs[name].must_succeed()), outputs(self.runs["big"]))
        self.assertEqual(losses(self.runs["managed, jit"]), losses(self.runs["big"])[:12])

    def test_memory_is_moved_before_it_is_needed(self):
        for name in ("learned", "threads"):
            moved = self.runs[name].stats["bytes"]["h2d"]
            self.assertGreater(moved["prefetch"], moved["fault"], name)

    def test_without_graphs_an_iteration_takes_at_most_a_tenth_more_than_the_bound(self):
        self.assertLessEqual(ms_per_iteration(self.runs["learned"]), 1.10 * self.bound)

    def test_with_graphs_an_iteration_takes_at_most_fifteen_percent_more_than_the_bound(self):
        self.assertLessEqual(ms_per_iteration(self.runs["learned, jit"]), 1.15 * self.bound)


if __name__ == "__main__":
    unittest.main(verbosity=2)
