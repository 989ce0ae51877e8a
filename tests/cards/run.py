# SPDX-License-Identifier: Apache-2.0
"""run.py [ROW...] [--missing] [--together] [--first-try] [--write]: published memory figures of real cards, made again on the simulated ones.
Without a row all are run, with --missing those that this version has not run, with --together those of one program after the same imports.
Results are kept in results.json; --write puts them into docs/accuracy.md. --first-try runs rows of chosen.py that have no figure yet, and
keeps what comes out in first_try.json, where it is never changed."""
import argparse
import datetime
import fcntl
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import page
import sources
from chosen import CHOSEN, Chosen
from rows import ROWS, UNITS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOL = str(ROOT / "build/gpumemtrace")
RESULTS = HERE / "results.json"
WITH_SOURCE = ("litgpt_tune.py", "peft_images.py", "titan.py")  # they find it in SOURCE
FORKED = ("{here}/litgpt_tune.py", "{here}/peft_images.py")  # their imports do not ask for a device, which a forked process cannot do again
LIMIT = 3600  # seconds
SAID = 3000  # bytes of a failure that are shown


class Failed(Exception):
    """The end of what the program printed."""


def python(row):
    found = ROOT / f".venv-{row.venv or row.source.environment}" / "bin/python"
    if not found.exists():
        raise Failed(f"no {found.parents[1].name}; make it: scripts/setup.sh {row.venv or row.source.environment}")
    return str(found)


def words(row):
    used = any("{source}" in word for word in row.command) or row.command[0].endswith(WITH_SOURCE) or isinstance(row, Chosen) and row.source.repository
    places = {"source": str(sources.at(row.source.repository, row.source.commit)) if used else "", "here": str(HERE / "programs")}
    older = [str(sources.at(*library)) for library in getattr(row, "libraries", ())]
    return ([python(row), *(word.format(**places) for word in row.command)],
            {"SOURCE": places["source"], **({"PYTHONPATH": os.pathsep.join(older)} if older else {}), **row.environment})


def card(row):
    return f"{row.simulated or row.source.simulated},{row.count}"


def environment(folder, given):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    return {**kept, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "TRITON_CACHE_DIR": str(folder / "triton"), **given}


def start(row, folder):
    """All that the program printed, and its recordings."""
    command, given = words(row)
    if row.ranks:
        before = [TOOL, "fit", "--to-end", "--ranks", row.ranks, "--cards", card(row).partition(",")[0], "-o", str(folder / "fit")]
    else:
        before = [TOOL, "run", "--sim", card(row), "--stacks", "none", "-o", str(folder / "run.%p.gmt")]
    done = subprocess.run([*before, "--", *command], cwd=folder, env=environment(folder, given), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT)
    said = done.stdout + "".join(p.read_text(errors="replace") for p in sorted(folder.glob("fit/*.log")))
    if done.returncode:
        raise Failed(said[-SAID:])
    return said, sorted(folder.glob("**/*.gmt"))


def recorded(row, recordings):
    """The largest figure of all processes."""
    found = [json.loads(subprocess.run([TOOL, "report", "--json", str(p)], capture_output=True, text=True, check=True).stdout) for p in recordings]
    return max(device[row.measured] for report in found for device in report["devices"])


def printed(row, said):
    found = re.findall(row.printed, said)
    if not found:
        raise Failed(f"the program did not print {row.printed}:\n{said[-SAID:]}")
    return max(map(float, found)) * UNITS[row.unit]


def result(row, ours, seconds, host):
    version = subprocess.run([python(row), "-c", "import importlib.metadata as m; print(m.version('torch'))"], capture_output=True, text=True).stdout
    return {"ours": round(ours / UNITS[row.unit], 4), "seconds": round(seconds), "host": host, "torch": version.strip(), "version": page.version(),
            "commit": page.commit(), "row": page.digest(row), "date": datetime.date.today().isoformat()}


def measure(row):
    with tempfile.TemporaryDirectory() as name:
        begin = time.monotonic()
        said, recordings = start(row, Path(name))
        seconds = time.monotonic() - begin
        ours = printed(row, said) if row.printed else recorded(row, recordings)
    return result(row, ours, seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)


def together(rows):
    """Each result as soon as it is there: rows of one program, environment and card, each on one device."""
    (program, *_), given = words(rows[0])[0][1:], words(rows[0])[1]
    lists = [",".join(words(row)[0][2:]) for row in rows]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        host = subprocess.Popen([TOOL, "run", "--sim", card(rows[0]), "--stacks", "none", "-q", "-o", str(folder / "run.%p.gmt"), "--", python(rows[0]),
                                 str(HERE / "programs/together.py"), program, *lists], cwd=folder, stdin=subprocess.DEVNULL,
                                env={**environment(folder, given), "PYTORCH_NVML_BASED_CUDA_CHECK": "1"})
        for i, code, seconds, memory in ended(folder / "ended", host):
            said = (folder / f"row-{i}/said").read_text(errors="replace")
            try:
                if code:
                    raise Failed(said[-SAID:])
                tell(rows[i], result(rows[i], printed(rows[i], said), seconds, memory))
            except Failed as error:
                print(f"{rows[i].name}: failed: {error}", flush=True)


def ended(path, process):
    """Lines of together.py while it runs."""
    seen, running = 0, True
    while running:
        running = process.poll() is None
        lines = path.read_text().splitlines() if path.exists() else []
        yield from map(json.loads, lines[seen:])
        seen = len(lines)
        time.sleep(1)


def once(names):
    """Chosen rows that have no figure yet; those that one run prints together."""
    found = {}
    for row in map(CHOSEN.get, names or CHOSEN):
        if row.name in page.tried():
            print(f"{row.name}: was run on {page.tried()[row.name]['date']} and is not changed", flush=True)
        else:
            found.setdefault((row.command, row.source.commit, row.ranks), []).append(row)
    return found.values()


def first_try(rows):
    """A failure is no figure: the program's stand-ins are mended, and it is run again."""
    with tempfile.TemporaryDirectory() as name:
        try:
            begin = time.monotonic()
            said, _ = start(rows[0], Path(name))
            seconds = time.monotonic() - begin
            figures = [printed(row, said) for row in rows]
        except (Failed, sources.Missing, subprocess.TimeoutExpired) as error:
            print(f"{', '.join(row.name for row in rows)}: failed: {error}", flush=True)
            return 1
    for row, figure in zip(rows, figures):
        measured = result(row, figure, seconds, 0)
        page.keep_try(row, measured)
        print(f"{row.name}: {measured['ours']} {row.unit}, published {row.figure}: {100 * (measured['ours'] / row.figure - 1):+.2f} %, {seconds:.0f} s", flush=True)
    return 0


def groups(names):
    """Rows that can be run together; the others alone."""
    found = {}
    for row in map(ROWS.get, names):
        found.setdefault(row.name if row.command[0] not in FORKED else (row.command[0], row.source, row.venv, card(row)), []).append(row)
    return found.values()


def tell(row, found):
    keep(row.name, found)
    print(f"{row.name}: {found['ours']} {row.unit}, published {row.figure}: {page.difference(row, found)}, {found['seconds']} s", flush=True)


def keep(name, found):
    """Another run may write meanwhile."""
    with open(HERE / "rows.py") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        every = {**page.results(), name: found}
        new = RESULTS.with_suffix(".new")
        new.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(every[n])}" for n in sorted(every)) + "\n}\n")
        new.rename(RESULTS)


def run(name):
    """In a process of its own, so that its children's memory is known."""
    row = ROWS[name]
    try:
        tell(row, measure(row))
    except (Failed, sources.Missing, subprocess.TimeoutExpired) as error:
        print(f"{name}: failed: {error}", flush=True)
        return 1
    return 0


def main():
    options = argparse.ArgumentParser()
    options.add_argument("rows", nargs="*")
    options.add_argument("--missing", action="store_true")
    options.add_argument("--together", action="store_true")
    options.add_argument("--first-try", action="store_true")
    options.add_argument("--write", action="store_true")
    o = options.parse_args()
    there = CHOSEN if o.first_try else ROWS
    unknown = [name for name in o.rows if name not in there]
    if unknown:
        sys.exit(f"no row {unknown[0]}; there are {', '.join(there)}")
    if o.first_try:
        failed = sum(map(first_try, once(o.rows)))
        if o.write:
            page.write()
        return failed > 0
    chosen = o.rows or [n for n in ROWS if not o.missing or not page.is_new(ROWS[n], page.results().get(n))] if o.rows or o.missing or not o.write else []
    failed = 0
    if o.together:
        for rows in groups(chosen):
            together(rows) if len(rows) > 1 else run(rows[0].name)
        failed = sum(not page.is_new(ROWS[name], page.results().get(name)) for name in chosen)
    elif len(chosen) == 1:
        failed = run(chosen[0])
    else:
        failed = sum(subprocess.run([sys.executable, __file__, name]).returncode != 0 for name in chosen)
    if o.write:
        page.write()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
