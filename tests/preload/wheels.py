# SPDX-License-Identifier: Apache-2.0
"""Libraries of NVIDIA's that tests run beside ours, as PyPI wheels."""
import os
import re
import subprocess
import sys
import tempfile
import zipfile


def fetch(wheels, cache):
    """Unpacks each wheel of a list of requirements with hashes into the cache, once: {version: folder}, or None when PyPI
    cannot be reached."""
    os.makedirs(cache, exist_ok=True)
    found = {}
    for line in open(wheels, encoding="utf-8"):
        if line.startswith("#"):
            continue
        version = re.match(r"[\w-]+==([\d.]+)", line).group(1)
        folder = os.path.join(cache, version)
        if not os.path.isdir(folder):
            with tempfile.TemporaryDirectory(dir=cache) as work:
                one = os.path.join(work, "requirement.txt")
                with open(one, "w", encoding="utf-8") as file:
                    file.write(line)
                got = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                                      "--only-binary", ":all:", "--require-hashes", "--retries", "1",
                                      "--timeout", "20", "--dest", work, "-r", one],
                                     capture_output=True, text=True)
                if got.returncode != 0:
                    print(got.stderr.strip().splitlines()[-1:] or "pip failed")
                    return None
                wheel = next(f for f in os.listdir(work) if f.endswith(".whl"))
                unpacked = os.path.join(work, "unpacked")
                zipfile.ZipFile(os.path.join(work, wheel)).extractall(unpacked)
                os.rename(unpacked, folder)
        found[version] = folder
    return found


def files(folder, pattern):
    """Paths below the folder whose file name matches."""
    return [os.path.join(base, name) for base, _, names in os.walk(folder) for name in names if re.fullmatch(pattern, name)]
