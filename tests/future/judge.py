# SPDX-License-Identifier: Apache-2.0
"""judge.py FOLDER [--points N] [--write] [NAME...]: records programs, refuses memory at many of their allocations, asks `oom`, and
looks in the rest of each run whether what it says is so. --write: docs/conclusions.md and viewer/oom/claims.def."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import claims  # noqa: E402
import future  # noqa: E402
from record import TOOL, record_all  # noqa: E402
from programs import ROOT  # noqa: E402

CUT = str(Path(TOOL).parent / "data/cut")
AT_ONCE = 40


def ask(recording):
    done = subprocess.run([TOOL, "oom", recording, "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"oom {recording}: {done.stderr}")
    return json.loads(done.stdout)


def choose(run, events, points):
    """Of each phase so many, evenly; the large ones of it."""
    by_phase = collections.defaultdict(list)
    for seq, size in events:
        by_phase[run.phase(seq)].append((seq, size))
    for phase, found in by_phase.items():
        largest = max(size for _, size in found)
        large = [seq for seq, size in found if size >= largest / 8] if len(found) > points else [seq for seq, _ in found]
        if len(large) < points:
            large = [seq for seq, _ in found]
        for i in range(min(points, len(large))):
            yield large[i * len(large) // min(points, len(large))], phase


def cut(recording, seqs, folder):
    pairs = [(seq, str(Path(folder) / f"{seq}.gmt")) for seq in seqs]
    for i in range(0, len(pairs), AT_ONCE):
        subprocess.run([CUT, recording, *(str(word) for pair in pairs[i:i + AT_ONCE] for word in pair)], check=True)
    return pairs


def judge(name, recording, points):
    """(kind, verdict, program, phase, seq, words) of all that was said."""
    run = future.Run(TOOL, recording)
    done = subprocess.run([CUT, recording], check=True, capture_output=True, text=True)
    events = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    chosen = dict(choose(run, events, points))
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for seq, path in cut(recording, chosen, folder):
            said += [(kind, so, name, chosen[seq], seq, words) for kind, so, words in claims.claims(run, seq, ask(path))]
            os.unlink(path)
    return len(chosen), said


def table(said):
    """kind -> [said, true, false]"""
    found = collections.defaultdict(lambda: [0, 0, 0])
    for kind, so, *_ in said:
        found[kind][0] += 1
        found[kind][1] += so is True
        found[kind][2] += so is False
    return dict(sorted(found.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--there", action="store_true", help="only what is recorded already")
    args = parser.parse_args()
    Path(args.folder).mkdir(parents=True, exist_ok=True)
    if args.there:
        paths = {p.stem.replace("+", "/"): p for p in sorted(Path(args.folder).glob("*.gmt"))}
        paths = {n: p for n, p in paths.items() if not args.names or any(n.startswith(x) for x in args.names)}
    else:
        paths = record_all(args.names, args.folder)
    all_said, cuts = [], 0
    with ProcessPoolExecutor(2) as pool:
        for n, said in pool.map(judge, paths, map(str, paths.values()), [args.points] * len(paths)):
            cuts += n
            all_said += said
    for kind, so, name, phase, seq, words in all_said:
        if so is False:
            print(f"FALSE {kind:20} {name} {seq} ({phase}): {words}")
    print(f"{cuts} refusals in {len(paths)} programs")
    for kind, (n, true, false) in table(all_said).items():
        print(f"{kind:22} said {n:6} true {true:6} false {false:6}")


if __name__ == "__main__":
    main()
