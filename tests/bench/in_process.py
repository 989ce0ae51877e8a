# SPDX-License-Identifier: Apache-2.0
"""in_process.py RECORDING: what the Python package takes for a run of ten million events, in CPU time, the least of three:
opening it beside `report`, questions after it, one column of all allocations in DuckDB. "name value unit" lines; beside each stands
the most that is promised. The first part runs in the environment that has DuckDB."""
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL, PYTHON = ROOT / "build/gpumemtrace", ROOT / ".venv-tools/bin/python"
ROUNDS = 3


def asked(recording):
    sys.path.insert(0, str(ROOT / "python"))
    import duckdb
    import gpumemtrace

    def least(ask):
        times = []
        for _ in range(ROUNDS):
            start = time.process_time()
            found = ask()
            times.append(time.process_time() - start)
        return min(times), found

    opened, r = least(lambda: gpumemtrace.open(recording))
    print("open", opened)
    address = r.live().blocks[0].addr
    for name, ask in ("peak", r.highest), ("live", r.live), ("end", lambda: r.live("end")), ("why", lambda: r.why(address)):
        print(name, least(ask)[0])
    print("column", least(lambda: duckdb.from_arrow(r.allocations.select("size")).aggregate("sum(size), count(*)").fetchall())[0])


def measure(recording):
    if not PYTHON.exists():
        return
    reports = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([TOOL, "report", "--json", recording], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        reports.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    told = subprocess.run([PYTHON, __file__, "asked", recording], capture_output=True, text=True, check=True).stdout
    times = {name: float(value) for name, value in map(str.split, told.splitlines())}
    yield "python.open", f"{times.pop('open') / min(reports):.2f}", "report(most:1.3)"
    yield "python.column", f"{times.pop('column'):.2f}", "s(most:0.5)"
    yield "python.question", f"{1000 * max(times.values()):.0f}", "ms(most:50)"


if __name__ == "__main__":
    if sys.argv[1] == "asked":
        asked(sys.argv[2])
    else:
        for name, value, unit in measure(Path(sys.argv[1])):
            print(f"{name:<42} {value:>12} {unit}", flush=True)
