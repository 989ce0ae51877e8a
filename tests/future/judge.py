# SPDX-License-Identifier: Apache-2.0
"""judge.py FOLDER [--points N] [--no-tags] [--write] [NAME...]: records programs, refuses memory at many of their allocations, asks `oom`, and
looks in the rest of each run whether what it says is so. --no-tags: of recordings without autograd's tags, as from a memory snapshot of PyTorch.
--write: docs/conclusions.md and viewer/oom/claims.def."""
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
MISSED = "missed"
PAGE, DEF, BEGIN = ROOT / "docs/conclusions.md", ROOT / "viewer/oom/claims.def", "<!-- table -->\n"
WITHOUT_TAGS, END = "<!-- without tags -->\n", "<!-- end of without tags -->\n"
HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
/* Written by tests/future/judge.py --write: kind of claim, how often it was right, of how many. */
/* clang-format off */
"""


def ask(recording):
    done = subprocess.run([TOOL, "oom", recording, "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"oom {recording}: {done.stderr}")
    return json.loads(done.stdout)


def choose(run, events, points):
    """So many of each phase, evenly, of its large ones."""
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


def cut(recording, seqs, folder, tags=True):
    pairs = [(seq, str(Path(folder) / f"{seq}.gmt")) for seq in seqs]
    for i in range(0, len(pairs), AT_ONCE):
        subprocess.run([CUT, *([] if tags else ["-n"]), recording, *(str(word) for pair in pairs[i:i + AT_ONCE] for word in pair)], check=True)
    return pairs


def judge(name, recording, points, with_missed=False, tags=True):
    """(kind, verdict, program, phase, seq, words) of all that was said; with_missed: and of what was not, verdict MISSED."""
    run = future.Run(TOOL, recording)
    done = subprocess.run([CUT, recording], check=True, capture_output=True, text=True)
    events = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    chosen = dict(choose(run, events, points))
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for seq, path in cut(recording, chosen, folder, tags):
            answer = ask(path)
            said += [(kind, so, name, chosen[seq], seq, words) for kind, so, words in claims.claims(run, seq, answer)]
            said += [(kind, MISSED, name, chosen[seq], seq, f"{n >> 20} MiB") for kind, n in (claims.missed(run, seq, answer) if with_missed else ())]
            os.unlink(path)
    return list(chosen.values()), said


def table(said):
    """kind -> [said, true, false, missed]"""
    found = collections.defaultdict(lambda: [0, 0, 0, 0])
    for kind, so, *_ in said:
        found[kind][0] += so != MISSED
        found[kind][1] += so is True
        found[kind][2] += so is False
        found[kind][3] += so == MISSED
    return dict(sorted(found.items()))


def phases(said, cuts):
    found = collections.Counter(phase for n in cuts for phase in n)
    return [[phase if phase.startswith("after") else f"in {phase}", found[phase]] for phase in future.PHASES if found[phase]]


def write_without_tags(said, cuts, programs):
    false = {kind: row[2] for kind, row in table(said).items() if row[2]}
    decided = sum(so is not None and so != MISSED for _, so, *_ in said)
    text = (f"\n{sum(map(len, cuts))} staged failures in {programs} programs, {decided:,} claims that the rest of a run decides; false are {sum(false.values())}: "
            + ", ".join(f"*{kind}* {n}" for kind, n in false.items()) + ".\n\n")
    whole = PAGE.read_text()
    PAGE.write_text(whole[:whole.index(WITHOUT_TAGS)] + WITHOUT_TAGS + text + whole[whole.index(END):])


def write(said, cuts, programs):
    rows = table(said)
    judged = {kind: row for kind, row in rows.items() if sum(row[1:])}
    lines = [f'{{ "{kind}", {true}, {true + false} }},' for kind, (_, true, false, _) in judged.items() if kind in claims.REMEDIES and true + false]
    DEF.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    text = PAGE.read_text().split(BEGIN)[0] + BEGIN
    text += f"\n{sum(map(len, cuts))} staged failures in {programs} programs: " + ", ".join(f"{n} {phase}" for phase, n in phases(said, cuts)) + ".\n\n"
    text += "| claim | said | true | false | missed |\n|---|---:|---:|---:|---:|\n"
    text += "".join(f"| {kind} | {n} | {true} | {false} | {missed if kind in claims.EXPECTED or kind == 'step' else ''} |\n"
                    for kind, (n, true, false, missed) in judged.items())
    silent = [kind for kind in rows if kind not in judged]
    text += f"\nThe rest of a run does not decide these: {', '.join(f'{kind} ({rows[kind][0]})' for kind in silent)}.\n"
    PAGE.write_text(text)


def arguments(points):
    """What a judge of recordings is asked, and name -> recording."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--points", type=int, default=points)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--no-tags", action="store_true")
    parser.add_argument("--there", action="store_true", help="only what is recorded already")
    args = parser.parse_args()
    Path(args.folder).mkdir(parents=True, exist_ok=True)
    if not args.there:
        return args, record_all(args.names, args.folder)
    paths = {p.stem.replace("+", "/"): p for p in sorted(Path(args.folder).glob("*.gmt"))}
    return args, {n: p for n, p in paths.items() if not args.names or any(n.startswith(x) for x in args.names)}


def main():
    args, paths = arguments(points=20)
    all_said, cuts = [], []
    with ProcessPoolExecutor(2) as pool:
        for n, said in pool.map(judge, paths, map(str, paths.values()), *([x] * len(paths) for x in (args.points, True, not args.no_tags))):
            cuts.append(n)
            all_said += said
    for kind, so, name, phase, seq, words in all_said:
        if so is False or so == MISSED:
            print(f"{so or 'FALSE'} {kind:20} {name} {seq} ({phase}): {words}")
    print(f"{sum(map(len, cuts))} staged failures in {len(paths)} programs")
    for kind, (n, true, false, missed) in table(all_said).items():
        print(f"{kind:22} said {n:6} true {true:6} false {false:6} missed {missed:6}")
    if args.write:
        (write_without_tags if args.no_tags else write)(all_said, cuts, len(paths))


if __name__ == "__main__":
    main()
