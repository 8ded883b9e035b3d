# SPDX-License-Identifier: Apache-2.0
"""The command atp with an unmodified program in Python: examples/train_tinygrad.py."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import machine

PROGRAM = [sys.executable, machine.EXAMPLES / "train_tinygrad.py", "--layers", "1", "--width", "256", "--sequence", "8"]
TRAINING = [sys.executable, machine.EXAMPLES / "train_tinygrad.py", "--sequence", "8"]
HALF = "42MiB"  # of what TRAINING needs


def atp(*words, **environment):
    return subprocess.run([str(word) for word in (machine.BUILD / "bin/atp", *words)], env={**machine.clean_environment(), "DEV": "CUDA:PTX", **environment},
                          capture_output=True, text=True, timeout=machine.TIMEOUT_S, check=False)


class Command(unittest.TestCase):
    def test_doctor_names_the_framework_its_profile_and_what_is_intercepted(self):
        done = atp("doctor", "--json", "--sim", machine.GPU, "--", *PROGRAM, "--iterations", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        program = json.loads(done.stdout)["program"]
        self.assertEqual([(found["name"], found["recognised_by"], found["sets"]) for found in program["frameworks"]], [("tinygrad", "command", {})])
        for hook in ("cuMemAlloc_v2", "cuLaunchKernel", "cuGraphLaunch", "cuModuleLoadData"):
            self.assertGreater(program["hooks"][hook], 0, hook)
        self.assertGreater(program["lookups"]["dlsym_handle"], 0)
        self.assertTrue(program["ever_managed"])
        self.assertIn("checksum", done.stderr)  # the program's own output

    def test_run_shows_progress_and_makes_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "run.html")
            done = atp("run", "--progress", "--report", page, "--sim", machine.GPU, "--sim-memory", HALF, "--",
                       *TRAINING, "--iterations", "10", XDG_RUNTIME_DIR=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            text = page.read_text(encoding="utf-8")
        self.assertRegex(done.stdout, r"iter 10 .*\nchecksum \w{16}\n$")
        said = [int(count) for count in re.findall(r"^atp: (\d+) iterations?\b", done.stderr, re.M)]
        self.assertTrue(said and said == sorted(said) and said[-1] > 0, done.stderr)
        for part in ("</html>", "train_tinygrad.py", "x bound_safe", "simulated machine"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
