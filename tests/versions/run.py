# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace diff` on released versions of packages (pairs.py): each is recorded once, in FOLDER, and the first finding is
compared with what the maintainers say. Packages are installed by version, each into a folder of the cache. With --table the
table of docs/diff.md is written. Exit code 1: one of them is not right.

Usage: .venv/bin/python tests/versions/run.py FOLDER [--pair NAME]... [--table docs/diff.md]"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from pairs import PAIRS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOL = str(ROOT / "build/gpumemtrace")
CACHE = Path(os.environ.get("GPUMEMTRACE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpumemtrace") / "versions"
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_", "PYTHONPATH"))}
ENV.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
# What none of these pairs is, and was said of some of them.
FALSE = "larger model|smaller model|inputs are|precision or width|the parameters too|no_grad|detached"


def package(spec):
    """The folder of a package, installed if it is not there; a broken download leaves none."""
    folder = CACHE / spec
    if not folder.is_dir():
        made = CACHE / f".{spec}.{os.getpid()}"
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", made, spec], check=True)
        made.rename(folder)
    return str(folder)


def record(pair, specs, where):
    """PyTorch's peak in bytes, as the program printed it, is the recording's, or the run counts as wrong."""
    if where.exists():
        return
    env = {**ENV, "PYTHONPATH": ":".join(map(package, specs.split()))}
    done = subprocess.run([TOOL, "run", "-q", "--sim", "h100-80g", "-o", where, "--", sys.executable, HERE / "programs" / (pair.program + ".py")],
                          env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    peak = int(re.search(r"PEAK (\d+)", done.stdout).group(1))
    said = json.loads(subprocess.run([TOOL, "report", "--json", where], capture_output=True, text=True, check=True).stdout)
    assert said["devices"][0]["peak_bytes"] == peak, (pair.name, peak)


def diff(old, new):
    start = time.monotonic()
    said = json.loads(subprocess.run([TOOL, "diff", "--json", old, new], capture_output=True, text=True, check=True).stdout)
    return said, time.monotonic() - start


def adds_up(said):
    compared = said["new"]["compared"]["bytes"] - said["old"]["compared"]["bytes"]
    return sum(f["delta"] for f in said["findings"] if f["cause"] != "peak") == compared


def problems(pair, said, back):
    """What is wrong with the answer, in both directions; empty if nothing is."""
    first = said["findings"][0] if said["findings"] else {"function": "", "file": "", "text": "nothing differs"}
    out = []
    if not re.search(pair.where, f"{first['function']} {first['file'].split('/')[-1]}"):
        out.append("line")
    if not re.search(pair.reason, first["text"]):
        out.append("reason")
    out += ["false: " + f["text"] for f in said["findings"] + back["findings"] if re.search(FALSE, f["text"])]
    deltas = [sorted((f["cause"], sign * f["delta"]) for f in x["findings"]) for x, sign in ((said, 1), (back, -1))]
    if deltas[0] != deltas[1]:
        out.append("the other direction differs")
    if not adds_up(said) or not adds_up(back):
        out.append("sum")
    return out


def versions(pair):
    """"transformers 4.38.0 to 4.39.3", of the package that differs."""
    old, new = pair.old.split(), pair.new.split()
    name, before = old[0].split("==")
    after = new[0].split("==")[1] if new else "that of .venv"
    return f"{name} {before} to {after}"


def judge(pair, folder):
    files = [folder / f"{pair.name}.{side}.gmt" for side in ("old", "new")]
    for file, specs in zip(files, (pair.old, pair.new)):
        record(pair, specs, file)
    said, seconds = diff(*files)
    wrong = problems(pair, said, diff(*reversed(files))[0])
    first = said["findings"][0]["text"] if said["findings"] else "Nothing differs."
    peak = f"{said['peak_old'] / 2**20:,.1f} to {said['peak_new'] / 2**20:,.1f}"
    print(f"{pair.name}: {'right' if not wrong else '; '.join(wrong)} ({seconds:.2f} s)\n  {first}", flush=True)
    return f"| {versions(pair)} | {pair.words} ({pair.source}) | {peak} | {first} | {'yes' if not wrong else '; '.join(wrong)} | {seconds:.2f} |", not wrong


HEAD = """# `gpumemtrace diff`, judged

Released versions of packages whose maintainers say what changed (`make test-versions` makes this table; `tests/versions` has the
programs): the peak before and after in MiB, which is PyTorch's own figure, the first finding, and whether its line and its reason are
those of the maintainers, nothing false is said in either direction, both directions mirror each other, and the findings add up. Five of
these changes, reduced to small modules, are tests in `make test` (`tests/e2e/test_diff_versions.py`).

Right: %d of %d.

| versions | what changed | peak in MiB | first finding | right | seconds |
|---|---|---|---|---|---|
%s
"""


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder", type=Path)
    args.add_argument("--pair", action="append")
    args.add_argument("--table", type=Path)
    args = args.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    rows = [judge(p, args.folder) for p in PAIRS if not args.pair or p.name in args.pair]
    right = sum(ok for _, ok in rows)
    if args.table:
        args.table.write_text(HEAD % (right, len(rows), "\n".join(row for row, _ in rows)))
    print(f"{right} of {len(rows)} right")
    return right < len(rows)


if __name__ == "__main__":
    sys.exit(main())
