"""Runs crossbeam-channel's published tests on Millstream's channels, through the adapter beside this file.

`python3 verify/crossbeam [TEXT…]` runs the tests whose names contain one of the texts. The tests come from cargo's own
copy of the package, which the benchmarks depend on; this repository keeps none of them. Every test runs in its own process
for at most a minute, or MILLSTREAM_SECONDS. With MILLSTREAM_ONE_FOR_ZERO set, channels of capacity 0 hold one value instead
of being refused: most tests that ask for a rendezvous do not need one.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPY = ROOT / "target" / "crossbeam"
SUITES = ["array", "list", "mpsc", "golang", "ready", "select"]
SECONDS = int(os.environ.get("MILLSTREAM_SECONDS", "60"))


def package():
    """Returns the folder of cargo's copy of crossbeam-channel."""
    metadata = subprocess.run(["cargo", "metadata", "--format-version=1"], cwd=ROOT, check=True, capture_output=True).stdout
    manifests = [p["manifest_path"] for p in json.loads(metadata)["packages"] if p["name"] == "crossbeam-channel"]
    return pathlib.Path(manifests[0]).parent


def build(tests):
    """Builds the test programs, and returns their paths by suite."""
    shutil.rmtree(COPY / "tests", ignore_errors=True)
    shutil.copytree(HERE / "src", COPY / "src", dirs_exist_ok=True)
    manifest = (HERE / "Cargo.toml").read_text().replace("../../crates", str(ROOT / "crates"))
    (COPY / "Cargo.toml").write_text(manifest)
    (COPY / "tests").mkdir()
    for suite in SUITES:
        shutil.copy(tests / f"{suite}.rs", COPY / "tests")
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *(f"--test={suite}" for suite in SUITES)]
    out = subprocess.run(command, cwd=COPY, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = [json.loads(line) for line in out.splitlines()]
    return {m["target"]["name"]: m["executable"] for m in messages if m.get("executable")}


def names(program):
    listed = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout
    return [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]


def why(program, name):
    """Returns None if the test passes, otherwise the first line of its error message."""
    try:
        ran = subprocess.run([program, "--exact", name, "--test-threads=1"], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as late:
        said = "".join(part.decode(errors="replace") for part in (late.stdout, late.stderr) if part)
        return f"still running after {SECONDS} s" + (f"; {panic(said)}" if "panicked" in said else "")
    return None if ran.returncode == 0 else panic(ran.stdout + ran.stderr)


def panic(text):
    found = re.search(r"panicked at [^\n]*\n([^\n]*)", text)
    return found[1] if found else text.strip().splitlines()[-1]


def main():
    programs = build(package() / "tests")
    wanted = sys.argv[1:] or [""]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for suite in SUITES:
            program = programs[suite]
            tests = [name for name in names(program) if any(text in f"{suite}::{name}" for text in wanted)]
            reasons = dict(zip(tests, pool.map(lambda name: why(program, name), tests)))
            failed = {name: reason for name, reason in reasons.items() if reason}
            print(f"{suite}: {len(tests) - len(failed)} of {len(tests)} pass", flush=True)
            for name, reason in failed.items():
                print(f"  {name}: {reason}", flush=True)


main()
