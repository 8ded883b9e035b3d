# SPDX-License-Identifier: Apache-2.0
"""The first screen of README.md is true: its commands print what it says, and the demo keeps its promise.

readme_test.py commands|python|demo|json|update ROOT BUILD_FOLDER    exit code 0: yes, 1: no, with what differs
Commands that begin with DEV= are of tinygrad and need build/frameworks (scripts/frameworks.sh --environment); `python` runs these, `commands` the others.
update writes what the commands and the demo print now into README.md: to be looked at before it is committed.
"""
import difflib
import json
import re
import subprocess
import sys
from pathlib import Path


def blocks(text):
    """The indented blocks, each a list of lines without the indent."""
    found = [[]]
    for line in text.splitlines():
        if line.startswith("    "):
            found[-1].append(line[4:].rstrip())
        elif found[-1]:
            found.append([])
    return [block for block in found if block]


def masked(lines):
    return [re.sub(r"atpshim\[\d+\]", "atpshim[PID]", line).rstrip() for line in lines]


def compare(what, said, got):
    difference = list(difflib.unified_diff(masked(said), masked(got), "README.md", "now", lineterm=""))
    if difference:
        sys.exit(f"{what}\n" + "\n".join(difference) + "\n(if this is meant: readme_test.py update)")


BUILT, TINYGRAD = "$ build/release/", "$ DEV=CUDA:PTX build/release/"


def said_and_printed(root, build, beginnings):
    """Of each "$ command": the command, what README.md shows below it, and what it prints now, errors first."""
    for block in blocks((root / "README.md").read_text()):
        if not block[0].startswith(beginnings):
            continue
        command = block[0][2:].replace("build/release", str(build))
        done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=root)
        shown = done.stderr.splitlines() + done.stdout.splitlines()
        if done.returncode != 0:  # the program's own message is all that matters then
            shown = done.stderr.splitlines()
        yield block[0], block[1:], shown


def check_commands(root, build, beginning=BUILT):
    checked = 0
    for command, said, printed in said_and_printed(root, build, beginning):
        compare(command, said, printed)
        checked += 1
    if checked < 2:
        sys.exit("README.md shows fewer than two commands: is the pattern still right?")


def check_python(root, build):
    check_commands(root, build, TINYGRAD)


def demo(root, build, *options):
    done = subprocess.run([sys.executable, root / "scripts/demo.py", *options, build], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def demo_table(root):
    return next(block for block in blocks((root / "README.md").read_text()) if "ms/iteration" in block[0])


def check_demo(root, build):
    said = demo_table(root)
    got = demo(root, build).splitlines()
    compare("the demo", [said[0].strip()] + said[1:], [got[0].strip()] + got[1:])


def check_json(root, build):
    got = json.loads(demo(root, build, "--json"))
    managed, learned = got["managed"]["ms_per_iteration"], got["learned"]["ms_per_iteration"]
    promises = {
        "native runs out of memory": got["native"]["status"] == "out_of_memory",
        "results are identical": got["outputs_identical"] is True,
        "checksums are the same": got["managed"]["checksum"] == got["learned"]["checksum"] != "",
        "learned <= 0.40 x managed": learned <= 0.40 * managed,
        "learned <= 1.25 x bound_safe": learned <= 1.25 * got["bound_safe"]["ms_per_iteration"],
        "no faster than the bound": learned >= got["bound_any"]["ms_per_iteration"],
        "fewer faults": got["learned"]["faults"] < got["managed"]["faults"],
    }
    broken = [name for name, kept in promises.items() if not kept]
    if broken:
        sys.exit(f"not kept: {', '.join(broken)}\n{json.dumps(got, indent=1)}")


def update(root, build):
    def indented(lines):
        return "".join(f"    {line}".rstrip() + "\n" for line in lines)

    text = (root / "README.md").read_text()
    changes = [(said, printed) for _, said, printed in said_and_printed(root, build, (BUILT, TINYGRAD))]
    changes.append((demo_table(root), demo(root, build).splitlines()))
    for said, printed in changes:
        if indented(said) not in text:
            sys.exit(f"not found in README.md:\n{indented(said)}")
        if masked(said) != masked(printed):
            text = text.replace(indented(said), indented(printed))
    (root / "README.md").write_text(text)


def main():
    what, root, build = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
    {"commands": check_commands, "python": check_python, "demo": check_demo, "json": check_json, "update": update}[what](root, build)


if __name__ == "__main__":
    main()
