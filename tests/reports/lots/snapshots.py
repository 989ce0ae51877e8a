# SPDX-License-Identifier: Apache-2.0
"""Snapshots of PyTorch's own recorder, written as trainers write them: the programs of snapshots/ on the simulated device, without gpumemtrace.

Usage: .venv/bin/python tests/reports/lots/snapshots.py FOLDER [NAME...]

FOLDER/NAME gets the files of each program. Its row in snapshots.json says whose way of recording it follows, what is wrong in it, what a
person should be told, and how the first answer was judged. Differences: a program that does not end as its row says, or writes no file."""
import json
import os
import subprocess
import sys
from pathlib import Path

LOTS = Path(__file__).resolve().parent
ROOT = LOTS.parents[2]
BUILD = Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", ROOT / "build"))


def record(row, folder):
    """What the program said last, and the files that it wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env |= {"LD_PRELOAD": str(BUILD / "libsimgpu.so"), "LD_LIBRARY_PATH": str(BUILD / "simgpu"), "SIMGPU_CARD": row["card"],
            "SIMGPU_COUNT": str(row.get("devices", 1)), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run([sys.executable, LOTS / "snapshots" / f"{row['name']}.py", folder], env=env, capture_output=True, text=True, timeout=600)
    return ended.stderr, sorted(p for p in folder.rglob("*") if p.is_file())


def main():
    folder, *names = sys.argv[1:]
    rows = [r for r in json.loads((LOTS / "snapshots.json").read_text()) if not names or r["name"] in names]
    found = 0
    for row in rows:
        said, files = record(row, Path(folder) / row["name"])
        right = len(files) == row.get("devices", 1) and row["ends"] in said
        found += not right
        print(*files if right else (f"{row['name']}: {len(files)} files, ends so:\n{said[-500:]}",), sep="\n")
    print(f"{len(rows)} programs, {found} differences")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
