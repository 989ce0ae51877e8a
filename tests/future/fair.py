# SPDX-License-Identifier: Apache-2.0
"""fair.py FOLDER [NAME...]: real refusals on cards smaller than a program needs, and staged ones at the same allocation of its whole
recording: does `oom` say the same of both?"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import future
from judge import CUT, ask
from programs import programs
from record import TOOL, record

CONTEXT = 520 << 20  # of the card that `record` simulates
SHARES = 0.9, 0.7, 0.5


def allocations(path):
    """Events of blocks on device 0 until the first refusal."""
    found = []
    for e in future.dump(TOOL, path):
        if e["kind"] == "block_oom":
            return found, e
        if e["kind"] == "block_alloc" and e["device"] == 0:
            found.append(e["seq"])
    return found, None


def answer(doc):
    return doc["cause"], doc["step"], doc["phase"], sorted({r["name"] for r in doc["remedies"]} - {"allocator", "free_device"})


def compare(name, whole, folder, share):
    """(of the real one, of the staged one), or None where memory did not run out."""
    report = json.loads(subprocess.run([TOOL, "report", str(whole), "--json"], check=True, capture_output=True, text=True).stdout)
    size = int(report["devices"][0]["peak_reserved_bytes"] * share) + CONTEXT >> 20
    small = Path(folder) / f"{name.replace('/', '+')}.{share}"
    small.mkdir(parents=True, exist_ok=True)
    real = record(name, programs()[name], small, card=f"mine={size}MiB")
    before, refusal = allocations(real) if real else ([], None)
    seqs, _ = allocations(whole)
    if not refusal or len(before) >= len(seqs):
        return None
    with tempfile.TemporaryDirectory() as scratch:
        staged = str(Path(scratch) / "cut.gmt")
        subprocess.run([CUT, whole, str(seqs[len(before)]), staged], check=True)
        first = json.loads(subprocess.run([TOOL, "oom", str(real), "--nth", "1", "--json"], check=True, capture_output=True, text=True).stdout)
        return answer(first), answer(ask(staged))


def main():
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    same = all_of = 0
    for name in names or [n for n in programs() if n.startswith(("future/", "reports/"))]:
        whole = record(name, programs()[name], folder)
        for share in SHARES if whole else ():
            found = compare(name, whole, folder / "small", share)
            if not found:
                continue
            all_of += 1
            same += found[0] == found[1]
            print("same" if found[0] == found[1] else f"DIFFERS {found}", name, share, flush=True)
    print(f"{same} of {all_of} the same")


if __name__ == "__main__":
    main()
