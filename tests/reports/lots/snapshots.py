# SPDX-License-Identifier: Apache-2.0
"""Snapshots of PyTorch's own recorder, written as trainers write them: the programs of a lot on the simulated device, without gpumemtrace.

Usage: .venv/bin/python tests/reports/lots/snapshots.py LOT FOLDER [NAME...]

FOLDER/NAME gets the files of each program of LOT (snapshots, snapshots2). Its row in LOT.json says whose way of recording it follows, what is
wrong in it, what a person should be told, and how the first answer was judged. Differences: a program that does not end as its row says, or writes
no file; or, where the row states the peak of the mended program, does not end well with it or has another one."""
import json
import os
import subprocess
import sys
from pathlib import Path

LOTS = Path(__file__).resolve().parent
ROOT = LOTS.parents[2]
BUILD = Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", ROOT / "build"))
ALLOWED = 0.02  # of the stated peak


def record(lot, row, folder, *mode):
    """The ended program, and the files that it wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env |= {"LD_PRELOAD": str(BUILD / "libsimgpu.so"), "LD_LIBRARY_PATH": str(BUILD / "simgpu"), "SIMGPU_CARD": row["card"],
            "SIMGPU_COUNT": str(row.get("devices", 1)), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run([sys.executable, LOTS / lot / f"{row['name']}.py", folder, *mode], env=env, capture_output=True, text=True, timeout=600)
    return ended, sorted(p for p in folder.rglob("*") if p.is_file())


def is_mended(lot, row, folder):
    """With its change the program ends on the same card, and its peak (of the rank that has most) is the stated one."""
    ended, _ = record(lot, row, folder, "fixed")
    peaks = [int(line.split()[-1]) / 2**20 for line in ended.stdout.splitlines() if line.startswith("truth")]
    return not ended.returncode and abs(max(peaks) - row["fixed_mib"]) < ALLOWED * row["fixed_mib"]


def main():
    lot, folder, *names = sys.argv[1:]
    rows = [r for r in json.loads((LOTS / f"{lot}.json").read_text()) if not names or r["name"] in names]
    found = 0
    for row in rows:
        ended, files = record(lot, row, Path(folder) / row["name"])
        right = len(files) == row.get("files", row.get("devices", 1)) and row["ends"] in ended.stderr + ended.stdout
        mended = "fixed_mib" not in row or is_mended(lot, row, Path(folder) / "fixed" / row["name"])
        found += not (right and mended)
        print(*files if right else (f"{row['name']}: {len(files)} files, ends so:\n{ended.stderr[-500:]}",), sep="\n")
        if not mended:
            print(f"{row['name']}: the mended program differs")
    print(f"{len(rows)} programs, {found} differences")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
