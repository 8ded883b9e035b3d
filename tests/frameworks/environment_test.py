# SPDX-License-Identifier: Apache-2.0
"""What framework profiles set, read back through os.environ of programs under the preload library.  environment_test.py BUILD_FOLDER

Needs no framework: a profile goes by what a command imports, or by folders beside its interpreter, and both are made up here.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1)).resolve()
SHIM, ATP = BUILD / "lib/libatpshim.so", BUILD / "bin/atp"
READ_BACK = "import json, os\nprint(json.dumps(dict(os.environ)))\nif 0:\n    import "
JAX = {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
TENSORFLOW = {"TF_GPU_ALLOCATOR": "cuda_malloc_async", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
TORCH_ASYNC = {name: "backend:cudaMallocAsync" for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")}
VIRTUAL, PHYSICAL = {"ATP_REPORT_MEMORY": "virtual"}, {"ATP_REPORT_MEMORY": "physical"}
OURS = ("ATP_", "XLA_", "TF_", "PYTORCH_", "JAX_", "CUPY_", "CUDF_", "RMM_", "GGML_", "OLLAMA_", "VLLM_")


class Environment(unittest.TestCase):
    """Each test has a virtual environment without packages."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with  # until the test ends
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bin").mkdir()
        self.python = self.folder / "bin/python3"
        self.python.symlink_to(os.path.realpath(sys.executable))
        (self.folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")

    def install(self, package):
        (self.folder / f"lib/python3.{sys.version_info.minor}/site-packages" / package).mkdir(parents=True)

    def output(self, command, environment, through_atp=False):
        clean = {name: value for name, value in os.environ.items() if not name.startswith((*OURS, "LD_", "PYTHON"))}
        if through_atp:
            command = [ATP, "run", "--", *command]
        else:
            clean["LD_PRELOAD"] = str(SHIM)
        done = subprocess.run([str(word) for word in command], env={**clean, **environment}, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def read_back(self, imports, environment=None, through_atp=False):
        """The variables that a framework or the library reads, as the program sees them."""
        everything = json.loads(self.output([self.python, "-c", READ_BACK + imports], environment or {}, through_atp))
        return {name: value for name, value in everything.items() if name.startswith(OURS)}

    def test_a_profile_is_there_when_python_has_started(self):
        expected = {"jax": JAX, "tensorflow": TENSORFLOW, "vllm": PHYSICAL, "transformers": VIRTUAL, "accelerate": VIRTUAL,
                    "llama_cpp": VIRTUAL, "vllm, transformers": PHYSICAL, "jax, tensorflow": {**JAX, **TENSORFLOW}}
        for imports, variables in expected.items():
            for through_atp in (False, True):
                with self.subTest(imports, through_atp=through_atp):
                    self.assertEqual(self.read_back(imports, through_atp=through_atp), variables)

    def test_frameworks_that_need_nothing_get_nothing(self):
        for imports in ("torch", "tinygrad", "numba", "cupy", "rmm", "cudf", "json"):
            with self.subTest(imports):
                self.assertEqual(self.read_back(imports), {})

    def test_an_installed_framework_is_enough(self):
        self.assertEqual(self.read_back("mine"), {})
        for package in ("jax", "tensorflow", "transformers", "torch"):
            self.install(package)
        self.assertEqual(self.read_back("mine"), {**JAX, **TENSORFLOW})

    def test_what_the_user_has_set_stays_alone(self):
        for name, value in (("XLA_PYTHON_CLIENT_PREALLOCATE", "true"), ("XLA_CLIENT_MEM_FRACTION", ".5"), ("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")):
            with self.subTest(name):
                self.assertEqual(self.read_back("jax", {name: value}), {name: value})
        self.assertEqual(self.read_back("accelerate", {"ATP_REPORT_MEMORY": "16GiB"}), {"ATP_REPORT_MEMORY": "16GiB"})

    def test_the_asynchronous_backend_of_pytorch_only_by_name(self):
        named = {"ATP_FRAMEWORK": "torch-async"}
        self.assertEqual(self.read_back("torch", named), {**named, **TORCH_ASYNC})
        for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            decided = {**named, name: "expandable_segments:True"}
            self.assertEqual(self.read_back("torch", decided), decided)

    def test_it_can_be_switched_off(self):
        for off in ({"ATP_FRAMEWORK": "off"}, {"ATP_POLICY": "off"}):
            self.assertEqual(self.read_back("jax", off), off)

    def test_a_shell_is_left_alone_and_its_python_is_not(self):
        line = f"env | grep -c ^XLA_; {self.python} -c '{READ_BACK} jax' | grep -o 'cuda_async'"
        self.assertEqual(self.output(["bash", "-c", line], {"ATP_FRAMEWORK": "jax"}), "0\ncuda_async\n")

    def test_programs_are_known_by_name(self):
        """A copy of env(1) in the place of llama.cpp's and Ollama's programs: it prints the environment that they would have."""
        for name in ("llama-server", "ollama"):
            program = self.folder / "bin" / name
            program.write_bytes(Path("/usr/bin/env").read_bytes())
            program.chmod(0o755)
            self.assertIn("ATP_REPORT_MEMORY=virtual\n", self.output([program], {}), name)

    def test_a_script_from_a_pipe_is_left_for_python_to_read(self):
        self.assertEqual(self.output(["bash", "-c", f"{self.python} <(echo 'print(7)')"], {}), "7\n")

    def test_children_have_what_the_parent_has(self):
        text = "import os, subprocess, sys\nprint(subprocess.run(['env'], capture_output=True, text=True).stdout)\nif 0:\n    import jax"
        self.assertIn("XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async\n", self.output([self.python, "-c", text], {}))


if __name__ == "__main__":
    unittest.main(verbosity=2)
