# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace diff` on released versions of packages (pairs.py): each is recorded once, in FOLDER, and the first finding is
compared with what the maintainers say. The same for the commit that `gpumemtrace bisect` finds in a history (histories.py).
Packages are installed by version, each into a folder of the cache, where repositories are cloned to. With --table the tables of
docs/diff.md are written. Exit code 1: one of them is not right.

Usage: .venv/bin/python tests/versions/run.py FOLDER [--only NAME]... [--table docs/diff.md]"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from array import array
from pathlib import Path

from histories import HISTORIES
from pairs import PAIRS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOL = str(ROOT / "build/gpumemtrace")
CACHE = Path(os.environ.get("GPUMEMTRACE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpumemtrace") / "versions"
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_", "PYTHONPATH"))}
ENV.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
# What none of these pairs is, and was said of some of them.
FALSE = "larger model|smaller model|inputs are|precision or width|including the parameters|no_grad|detached"


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
    return sum(f["delta"] for f in said["findings"] if f["cause"] not in ("peak", "reserved")) == compared


def problems(pair, said, back):
    """What is wrong with the answer, in both directions; empty if nothing is."""
    first = said["findings"][0] if said["findings"] else {"function": "", "file": "", "text": "nothing differs"}
    out = []
    if not re.search(pair.where, f"{first['function']} {first['file'].split('/')[-1]}"):
        out.append("line")
    if not re.search(pair.reason, first["text"]):
        out.append("reason")
    out += ["false: " + f["text"] for f in said["findings"] + back["findings"] if re.search(FALSE, f["text"]) and not re.search(FALSE, pair.reason)]
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


def clone(history):
    folder = CACHE / "repositories" / history.repository.split("/")[-1]
    if not folder.is_dir():
        subprocess.run(["git", "clone", "-q", history.repository, folder], check=True)
    return folder


def tokens(folder):
    """Files as a repository's own training reads them."""
    random.seed(0)
    folder.mkdir(exist_ok=True)
    for name in "train.bin", "val.bin":
        (folder / name).write_bytes(array("H", (random.randrange(50000) for _ in range(20000))).tobytes())
    return str(folder)


def bisect(history, folder):
    """The answer, and in how many seconds; the folder has the recordings then."""
    env = {**ENV, "PYTHONPATH": ":".join([".", *map(package, history.specs.split())])}
    program = HERE / "programs" / history.command[0]
    command = [program if program.exists() else history.command[0], *(x.format(data=tokens(folder.parent / "tokens")) for x in history.command[1:])]
    start = time.monotonic()
    done = subprocess.run([TOOL, "bisect", "--json", "-o", folder, history.good, history.bad, "--", sys.executable, *command], cwd=clone(history), env=env,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout), time.monotonic() - start


def judge_history(history, folder):
    found, seconds = bisect(history, folder.resolve() / history.name)
    commit = found["commit"][:12]
    files = [folder / history.name / (x[:12] + ".gmt") for x in (found["parent"], commit)]
    said, back = diff(*files)[0], diff(*reversed(files))[0]
    wrong = ["commit"] * (commit != history.commit) + problems(history, said, back)
    count = subprocess.run(["git", "rev-list", "--count", f"{history.good}..{history.bad}"], cwd=clone(history), capture_output=True, text=True, check=True).stdout.strip()
    peak, first = f"{found['peak_old'] / 2**20:,.1f} to {found['peak_new'] / 2**20:,.1f}", said["findings"][0]["text"]
    print(f"{history.name}: {'right' if not wrong else '; '.join(wrong)} ({seconds:.0f} s)\n  {commit} {found['subject']}\n  {first}", flush=True)
    return (f"| {history.repository.split('/', 3)[-1]} {history.good[:7]}..{history.bad[:7]} | {count} | {len(found['measured'])} | {commit} | "
            f"{history.words} ({history.source}) | {peak} | {first} | {'yes' if not wrong else '; '.join(wrong)} | {seconds:.0f} |"), not wrong


HEADS = {"pairs": "| versions | what changed | peak in MiB | first finding | right | seconds |\n|---|---|---|---|---|---|",
         "histories": "| history | commits | run | found | what changed | peak in MiB | first finding | right | seconds |\n|---|---|---|---|---|---|---|---|---|"}


def write(page, name, right, rows):
    """A table between its marks on the page."""
    text, begin, end = page.read_text(), f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    table = "\n".join([f"Right: {right} of {len(rows)}.\n", HEADS[name], *rows])
    page.write_text(text[:text.index(begin) + len(begin)] + table + "\n" + text[text.index(end):])


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder", type=Path)
    args.add_argument("--only", action="append", metavar="NAME")
    args.add_argument("--table", type=Path)
    args = args.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    all_right = True
    for name, all_of, judged_by in ("pairs", PAIRS, judge), ("histories", HISTORIES, judge_history):
        rows = [judged_by(x, args.folder) for x in all_of if not args.only or x.name in args.only]
        right = sum(ok for _, ok in rows)
        if args.table:
            write(args.table, name, right, [row for row, _ in rows])
        print(f"{right} of {len(rows)} {name} right")
        all_right &= right == len(rows)
    return not all_right


if __name__ == "__main__":
    sys.exit(main())
