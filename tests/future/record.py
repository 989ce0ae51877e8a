# SPDX-License-Identifier: Apache-2.0
"""record.py FOLDER [NAME...]: records programs on a large simulated card, those that are not there yet."""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from programs import ROOT, programs

TOOL = str(Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", ROOT / "build")) / "gpumemtrace")


def record(name, command, folder, card="h100-80g", timeout=300):
    """The recording, or None where the program failed."""
    path = Path(folder).resolve() / (name.replace("/", "+") + ".gmt")
    if path.exists():
        return path
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRUTH=str(path) + ".truth")
    work = path.parent / "work" / path.stem  # a folder each, because programs that run at the same time write files of the same names
    work.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    try:
        done = subprocess.run([TOOL, "run", "-q", "--sim", card, "-o", new, "--", *command], env=env, cwd=work, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode and card == "h100-80g" or not new.exists():
        print(f"{name}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    new.rename(path)
    return path


def record_all(names, folder, jobs=2):
    """name -> recording of those that ended well."""
    commands = {n: c for n, c in programs().items() if not names or n in names or any(n.startswith(x + "/") for x in names)}
    with ThreadPoolExecutor(jobs) as pool:
        paths = pool.map(lambda n: record(n, commands[n], folder), commands)
        return {n: p for n, p in zip(commands, paths) if p}


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    print(len(record_all(sys.argv[2:], sys.argv[1])), "recordings")
