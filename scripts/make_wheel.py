# SPDX-License-Identifier: Apache-2.0
"""Packs an installed tree as a Python wheel.  make_wheel.py --stage FOLDER --version V --glibc V --output FOLDER

Where the wheel is installed it lays out bin/atp, lib/libatpshim.so and lib/atp/sim/ below the environment's prefix, as an
installation does, and a module `atpshim` that tells where the library is. The format is that of PEP 427.
"""
import argparse
import base64
import hashlib
import os
import zipfile
from pathlib import Path

MODULE = '''# SPDX-License-Identifier: Apache-2.0
"""Where the preloaded library of ATP Shim is: LD_PRELOAD=$(python -m atpshim) program"""
import sys
from pathlib import Path


def library():
    """The path of libatpshim.so in this environment."""
    here = Path(__file__).resolve()
    for prefix in [*here.parents, Path(sys.prefix)]:
        if (prefix / "lib/libatpshim.so").is_file():
            return str(prefix / "lib/libatpshim.so")
    raise FileNotFoundError("libatpshim.so is not in this environment")
'''
MAIN = '''# SPDX-License-Identifier: Apache-2.0
from atpshim import library

print(library())
'''


class Wheel:
    def __init__(self, path, name):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info = f"{name}.dist-info"
        self.record = []

    def add(self, name, content, executable=False):
        entry = zipfile.ZipInfo(name)  # a fixed time: equal files give equal wheels
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self):
        self.record.append(f"{self.info}/RECORD,,")
        self.archive.writestr(zipfile.ZipInfo(f"{self.info}/RECORD"), "\n".join(self.record) + "\n")
        self.archive.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ("stage", "version", "glibc", "output"):
        parser.add_argument(f"--{option}", required=True)
    options = parser.parse_args()
    stage = Path(options.stage)
    tag = f"py3-none-manylinux_{options.glibc.replace('.', '_')}_x86_64"
    name = f"atpshim-{options.version}"
    path = os.path.join(options.output, f"{name}-{tag}.whl")
    wheel = Wheel(path, name)
    wheel.add("atpshim/__init__.py", MODULE.encode())
    wheel.add("atpshim/__main__.py", MAIN.encode())
    wheel.add(f"{name}.data/scripts/atp", (stage / "bin/atp").read_bytes(), executable=True)
    for file in sorted((stage / "lib").rglob("*")):
        # A wheel has no links: the names that programs ask for are in it as files.
        if file.is_file() and not file.is_symlink():
            wheel.add(f"{name}.data/data/lib/{file.relative_to(stage / 'lib')}", file.read_bytes())
    wheel.add(f"{wheel.info}/METADATA",
              (f"Metadata-Version: 2.1\nName: atpshim\nVersion: {options.version}\nLicense: Apache-2.0\n"
               "Summary: Runs CUDA programs that need more GPU memory than the card has\nRequires-Python: >=3.8\n").encode())
    wheel.add(f"{wheel.info}/WHEEL",
              f"Wheel-Version: 1.0\nGenerator: make_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()
