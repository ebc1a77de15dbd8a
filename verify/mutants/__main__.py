"""Plants known mistakes, one at a time, and reports the test that finds each.

The mistakes go into a copy of the crates, never into the tree. A mutant that survives is a hole in the tests.

Usage: python3 verify/mutants PART [NUMBER…]

PART names a list beside this file: fiber, ring, slab, percpu. NUMBER picks mutants of the list, from 0. Exits with 1 if one survives.
"""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PARTS = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__main__")
# The maximum time of a test, in seconds. A test that takes longer has failed.
LIMIT_S = 600


def copy_workspace(to):
    for entry in ("Cargo.toml", "Cargo.lock", "crates", "verify", "bindings", "benches", "xtask", "rustfmt.toml"):
        source = ROOT / entry
        if source.is_dir():
            shutil.copytree(source, to / entry, ignore=shutil.ignore_patterns("target"))
        else:
            shutil.copy(source, to / entry)


def executables(package, arguments, flags, scratch):
    """Builds the tests and returns the paths of their programs."""
    command = ["cargo", "test", "--no-run", "--package", package, *arguments]
    # The copy has its own target folders: cargo would take packages with the same path in another workspace for these.
    target = scratch / "target" / (flags.replace(" ", "") or "plain")
    env = os.environ | {"CARGO_TARGET_DIR": str(target), "CARGO_INCREMENTAL": "0", "RUSTFLAGS": flags}
    build = subprocess.run(command, cwd=scratch, env=env, capture_output=True, text=True)
    assert build.returncode == 0, f"the tests do not compile:\n{build.stderr}"
    lines = [line for line in build.stderr.splitlines() if "Executable" in line]
    return [scratch / line[line.rindex("(") + 1 : line.rindex(")")] for line in lines]


def tests(program, folder):
    listing = subprocess.run([program, "--list"], cwd=folder, capture_output=True, text=True, check=True)
    names = [line.removesuffix(": test") for line in listing.stdout.splitlines() if line.endswith(": test")]
    ignored = subprocess.run([program, "--list", "--ignored"], cwd=folder, capture_output=True, text=True, check=True)
    return [name for name in names if f"{name}: test" not in ignored.stdout]


def finder(part, scratch, likely):
    """Returns the first test that fails, trying the likely ones first, or `None` if all pass."""
    folder = scratch / part.FOLDER
    for arguments, flags in part.RUNS:
        # Models run at the depth of the soak.
        env = os.environ | ({"MILLSTREAM_STRESS": "2"} if "loom" in flags else {})
        programs = executables(part.PACKAGE, arguments, flags, scratch)
        todo = [(program, name) for program in programs for name in tests(program, folder)]
        todo.sort(key=lambda test: test[1] not in likely)
        for program, name in todo:
            try:
                run = subprocess.run([program, "--exact", name], cwd=folder, env=env, capture_output=True, timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                return f"{name} (does not end)"
            if run.returncode != 0:
                return name
    return None


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        found = f"expected one of {', '.join(PARTS)}, found {sys.argv[1]!r}\n\n" if len(sys.argv) > 1 else ""
        sys.exit(found + __doc__.strip())
    part = importlib.import_module(sys.argv[1])
    wanted = [int(number) for number in sys.argv[2:]] or range(len(part.MUTANTS))
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        scratch = Path(folder)
        copy_workspace(scratch)
        likely = []
        for number in wanted:
            name, old, new, what = part.MUTANTS[number]
            file = scratch / part.FOLDER / "src" / name
            text = file.read_text()
            assert text.count(old) == 1, f"{number}: {name} has changed: expected exactly one occurrence of {old!r}"
            file.write_text(text.replace(old, new))
            found = finder(part, scratch, likely)
            file.write_text(text)
            survivors += found is None
            print(f"{number:2} {'found' if found else 'SURVIVED':8} {what}: {found or 'no test fails'}", flush=True)
            # Try this test first for the next mistake, too: it often finds several.
            likely = [found.split(" ")[0], *likely] if found else likely
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
