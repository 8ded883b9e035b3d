# SPDX-License-Identifier: Apache-2.0
"""Parts of gpu_check.py that no machine without a GPU reaches: counters of faults are read where there are any, and are never guessed."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import gpu_check  # noqa: E402  (the folder must be known first)


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def faults(self, *texts):
        for i, text in enumerate(texts):
            gpu = Path(self.folder.name) / f"UVM-GPU-{i}"
            gpu.mkdir(exist_ok=True)
            (gpu / "fault_stats").write_text(text, encoding="utf-8")
        return gpu_check.Machine(Path("."), True, Path(self.folder.name)).faults()

    def test_without_counters_they_are_unknown(self):
        self.assertEqual(self.faults(), gpu_check.UNKNOWN)
        self.assertEqual(gpu_check.Machine(Path("."), True, Path("/nonexistent")).faults(), gpu_check.UNKNOWN)

    def test_all_gpus_are_added(self):
        self.assertEqual(self.faults("replayable_faults      12\nduplicates             3\n", "replayable_faults      30\n"), 42)

    def test_what_cannot_be_read_is_unknown_and_not_zero(self):
        self.assertEqual(self.faults("replayable_faults      12\n", "something else\n"), gpu_check.UNKNOWN)


class Memory(unittest.TestCase):
    """No check asks for more memory than is free."""

    def ran(self, free):
        machine = gpu_check.Machine(Path("."), True, Path("/nonexistent"))
        machine.free_bytes = lambda: free
        return gpu_check.with_enough_memory(lambda _: "ran")(machine)

    def test_a_check_runs_when_enough_is_free(self):
        self.assertEqual(self.ran(gpu_check.WANTED_BYTES_QUICK), "ran")

    def test_else_it_is_skipped_and_says_so(self):
        self.assertIn("skipped: 1000 bytes are free", self.ran(1000))

    def test_a_gpu_that_does_not_tell_has_none(self):
        self.assertIn("skipped: 0 bytes are free", self.ran(0))


class Ratios(unittest.TestCase):
    def test_the_later_half_counts(self):
        self.assertEqual(gpu_check.ratio({"ms": [90.0, 50.0, 3.0, 3.0]}, {"ms": [40.0, 9.0, 2.0, 2.0]}), 1.5)

    def test_what_did_not_run_is_unknown(self):
        self.assertEqual(gpu_check.ratio(gpu_check.UNKNOWN, {"ms": [1.0]}), gpu_check.UNKNOWN)
        self.assertEqual(gpu_check.ratio({"ms": []}, {"ms": [1.0]}), gpu_check.UNKNOWN)


class Capped(unittest.TestCase):
    """What PyTorch offers, at a cap: a run that does not fit says so, and is no time."""

    def run_of(self, returncode):
        machine = gpu_check.Machine(Path("."), True, Path("/nonexistent"))
        machine.run = lambda command, timeout: subprocess.CompletedProcess(command, returncode, "step 0 loss 1.0 ms 8.0\n", "why")
        return gpu_check.capped(machine, ["train"], {"ms": [4.0]})

    def test_out_of_memory(self):
        self.assertEqual(self.run_of(gpu_check.EXIT_OUT_OF_MEMORY), "out of memory")

    def test_another_failure(self):
        self.assertIn("exit code 9: why", self.run_of(9))

    def test_a_time(self):
        self.assertEqual(self.run_of(0)["over_native"], 2.0)


if __name__ == "__main__":
    unittest.main()
