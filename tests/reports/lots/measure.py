# SPDX-License-Identifier: Apache-2.0
"""Are the peaks of a lot's programs as its table states, and does memory run out for `broken` alone on the card that the table names?

Usage: .venv/bin/python tests/reports/lots/measure.py lot1 [NAME...]

A lot is a folder of programs after public reports and a table beside it: the thread, the command to ask first, the lines that the change
touches, the peaks in MiB (simulated h100-80g), and how the first answer was judged. The last is history: no later version changes it."""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LOTS = Path(__file__).resolve().parent
ROOT = LOTS.parents[2]
TOOL = str(Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", ROOT / "build")) / "gpumemtrace")
ALLOWED = 0.02  # of the stated peak; `varies` of a row: more, where it depends on when Python collects cycles


def record(script, mode, card, folder):
    """(peak in MiB, did memory run out)."""
    path = Path(folder) / f"{script.stem}.{mode}.{card.partition('=')[0]}.gmt"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    ended = subprocess.run([TOOL, "run", "-q", "--sim", card, "-o", path, "--", sys.executable, script, mode],
                           env={**env, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=600)
    report = json.loads(subprocess.run([TOOL, "report", "--json", path], capture_output=True, text=True).stdout)
    path.unlink()
    return report["devices"][0]["peak_bytes"] / 2**20, "OutOfMemoryError" in ended.stderr


def differences(lot, row, folder):
    script = LOTS / lot / f"{row['name']}.py"
    for mode in ("broken", "fixed"):
        stated = row[f"{mode}_mib"]
        peak, _ = record(script, mode, "h100-80g", folder)
        if abs(peak - stated) > row.get("varies", ALLOWED) * stated:
            yield f"{row['name']} {mode}: peak {peak:.1f} MiB, stated {stated}"
        if row["card"] and record(script, mode, row["card"], folder)[1] != (mode == "broken"):
            yield f"{row['name']} {mode} on {row['card']}: {'ends' if mode == 'broken' else 'runs out of memory'}"


def main():
    lot, *names = sys.argv[1:]
    rows = [r for r in json.loads((LOTS / f"{lot}.json").read_text()) if not names or r["name"] in names]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        found = [line for lines in pool.map(lambda r: list(differences(lot, r, folder)), rows) for line in lines]
    print(*found, f"{len(rows)} programs, {len(found)} differences", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
