# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace fit` on thirty programs (cases.py): its verdicts against really setting that memory, and what static estimators
make of the same programs. Writes a row for each into a file of JSON lines, goes on where it stopped, and with --write the
tables of docs/fit.md.

Usage: .venv-frameworks/bin/python tests/fit/table.py ROWS.jsonl [--case NAME]... [--write]"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOL = str(ROOT / "build/gpumemtrace")
MIB = 1 << 20
CONTEXT = 520 * MIB  # of the h100-80g; else it would be less on a card that is smaller
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
ENV.update(OMP_NUM_THREADS="1", SIMGPU_CONTEXT=f"{CONTEXT}", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
PROGRAM = [sys.executable, str(HERE / "cases.py")]


def fit(name, card):
    done = subprocess.run([TOOL, "fit", "--json", "--steps", "2", "--cards", card, "--", *PROGRAM, name], env=ENV, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["cards"][0]


def run(name, card, *more):
    """Whether it runs to its end on that card, and the last line that it prints in capitals."""
    where = f"{tempfile.gettempdir()}/fit-table.{os.getpid()}.gmt"
    done = subprocess.run([TOOL, "run", "-q", "--sim", card, "-o", where, "--", *PROGRAM, name, *more], env=ENV, capture_output=True, text=True)
    lines = [x.split(" ", 1)[1] for x in done.stdout.splitlines() if x.startswith(("TRUTH ", "ESTIMATE "))]
    # Libraries say it in other words: cuDNN has no engine left where none of them gets its workspace.
    assert done.returncode == 0 or "OutOfMemoryError" in done.stderr or "find an engine" in done.stderr or "ALLOC_FAILED" in done.stderr, done.stderr[-2000:]
    for path in Path(tempfile.gettempdir()).glob(f"fit-table.{os.getpid()}.*"):
        path.unlink()
    return done.returncode == 0, json.loads(lines[-1]) if lines else {}


def measure(name):
    fitted = fit(name, "h100-80g")
    need, allocated = fitted["device_bytes"], fitted["peak_bytes"]
    _, truth = run(name, "h100-80g")
    row = dict(case=name, need=need, allocated=allocated, reserved=fitted["peak_reserved_bytes"], truth=truth, sizes=[])
    for what, size in (("need + 1 MiB", need + MIB), ("need - 1 MiB", need - MIB), ("allocated and context - 1 MiB", CONTEXT + allocated - MIB)):
        card = f"card={size}"
        row["sizes"].append([what, size, fit(name, card)["fits"], run(name, card)[0]])
    row["estimates"] = run(name, "h100-80g", "--estimate")[1]
    return row


def percent(estimate, truth):
    return "" if estimate is None else f"{100 * (estimate - truth) / truth:+.0f} %"


def verdicts(rows):
    yield "| Program | Allocated | Reserved | Needed on the card | need + 1 MiB | need - 1 MiB | allocated - 1 MiB |"
    yield "| --- | ---: | ---: | ---: | --- | --- | --- |"
    word = {True: "runs", False: "refused"}
    for r in rows:
        cells = [f"{word[said]}{'' if said == real else ', really ' + word[real]}" for _, _, said, real in r["sizes"]]
        yield f"| {r['case']} | {r['allocated'] / MIB:.0f} MiB | {r['reserved'] / MIB:.0f} MiB | {r['need'] / MIB:.0f} MiB | {' | '.join(cells)} |"


def errors(rows):
    names = ["accelerate", "16 bytes", "deepspeed", "memtracker"]
    yield "| Program | PyTorch allocated | `fit` | accelerate | 16 bytes a parameter | DeepSpeed | MemTracker |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for r in rows:
        truth = r["truth"]["allocated"]
        cells = [percent(r["allocated"], truth)] + [percent(r["estimates"].get(n), truth) for n in names]
        yield f"| {r['case']} | {truth / MIB:.0f} MiB | {' | '.join(cells)} |"
    means = []
    for n in ["fit", *names]:
        off = [abs((r["allocated"] if n == "fit" else r["estimates"][n]) - r["truth"]["allocated"]) / r["truth"]["allocated"]
               for r in rows if n == "fit" or n in r["estimates"]]
        means.append(f"{100 * sum(off) / len(off):.1f} % of {len(off)}" if off else "")
    yield f"| mean error | | {' | '.join(means)} |"


def write(rows):
    page = ROOT / "docs/fit.md"
    text = page.read_text()
    for name, lines in (("verdicts", verdicts(rows)), ("errors", errors(rows))):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        text = text[:text.index(begin) + len(begin)] + "\n".join(lines) + "\n" + text[text.index(end):]
    page.write_text(text)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("rows")
    options.add_argument("--case", action="append")
    options.add_argument("--write", action="store_true")
    o = options.parse_args()
    names = [x.split('"')[1] for x in (HERE / "cases.py").read_text().splitlines() if x.startswith('    "') and '": (' in x]
    path = Path(o.rows)
    rows = {r["case"]: r for r in map(json.loads, path.read_text().splitlines())} if path.exists() else {}
    for name in o.case or names:
        if name in rows:
            continue
        try:
            rows[name] = measure(name)
        except AssertionError as error:
            print(name, "failed:", str(error)[-1500:], flush=True)
            continue
        with path.open("a") as f:
            f.write(json.dumps(rows[name]) + "\n")
        print(name, json.dumps(rows[name]), flush=True)
    if o.write:
        write([rows[n] for n in names if n in rows])


if __name__ == "__main__":
    main()
