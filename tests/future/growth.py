# SPDX-License-Identifier: Apache-2.0
"""growth.py FOLDER [--points N] [--write] [--there] [NAME...]: what `leaks` says of a recording that ends in the middle of its program, beside
the rest of the run. FOLDER: recordings, made where they are missing. --write: the table of docs/conclusions.md."""
import bisect
import collections
import itertools
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import claims  # noqa: E402
import future  # noqa: E402
import judge  # noqa: E402
from record import TOOL  # noqa: E402

BEGIN, END = "<!-- leaks -->\n", "<!-- end of leaks -->\n"
FEWEST = 4  # steps in which growth can be told from a change that comes once
WINDOWS = 24  # of a run without passes to tell steps by
NEVER = float("inf")


class Curve:
    """Bytes after each event; what never goes back is the lowest that comes from a moment on."""

    def __init__(self, changes):
        changes = sorted(c for c in changes if c[0] != NEVER)
        self.seqs = [seq for seq, _ in changes]
        self.bytes = list(itertools.accumulate((size for _, size in changes), initial=0))

    def lows(self, ends):
        """Between each end of a step and the next."""
        at = [bisect.bisect_right(self.seqs, end) for end in ends]
        return [min(self.bytes[a:b + 1]) for a, b in zip(at, at[1:])]

    def rise(self, ends):
        """Bytes a step by which these steps' lows rise for good; None: too few of them."""
        lows = self.lows(ends)
        if len(lows) < FEWEST:
            return None
        middle = len(lows) // 2
        return (min(lows[middle:]) - min(lows)) / middle


    def goes_on(self, before, after):
        """In the rest. None: it does not, but until here it has never paused for so long that this could be seen."""
        rest = self.rise(after)
        if rest is None or rest > 0:
            return rest and True
        lows = self.lows([*before, before[-1]])  # the last: as it is there
        rises = [i for i in range(1, len(lows)) if min(lows[i:]) > min(lows[i - 1:])]
        gaps = [b - a for a, b in zip(rises, rises[1:])]
        return None if rises and len(lows) - 1 - rises[-1] <= max(gaps, default=1) else False


def curve_of(blocks):
    return Curve([x for b in blocks for x in ((b.seq, b.size), (b.end, -b.size))])


def ends_of(run):
    """The ends of steps: of the optimizer's, or of backward passes; without either, moments far enough apart."""
    if run.step_ends or run.backwards:
        return sorted(run.step_ends or [end for _, end in run.backwards])
    return [run.blocks[i * len(run.blocks) // WINDOWS].seq for i in range(1, WINDOWS)] if len(run.blocks) > WINDOWS else []


def claims_of(run, ends, doc, seq):
    """(kind, True or False or None, words)"""
    before, after = [e for e in ends if e < seq], [e for e in ends if e > seq]
    whole, reserved = curve_of(run.blocks), Curve(run.reserved)
    small = max(4096, max(whole.bytes) / 1000)
    said, rest = doc["growth_per_step"], whole.rise(after) or 0
    words = f"{said >> 10} KiB a step said, {rest / 1024:.0f} in the rest"
    if said:
        yield "growth", whole.goes_on(before, after), words
        if rest > 0 and (run.step_ends or run.backwards):
            yield "bytes a step", said / 2 <= rest <= 2 * said, words
    for o in doc["owners"]:
        stacks = {o[which]["stack"] for which in ("first", "latest") if which in o}
        line = curve_of([b for b in run.blocks if b.stack in stacks])
        yield "line", line.goes_on(before, after), f"{o['bytes_per_step'] >> 10} KiB a step of {o['function']} {o['file'].split('/')[-1]}:{o['line']}"
    if doc["from_step"] < doc["to_step"] and not said and not doc["unused_bytes"]:
        past = whole.rise(before[len(before) // 4:])
        grows = past is not None and past > small and rest > small
        yield "no line grows", not grows if whole.rise(after) is not None else None, f"{(past or 0) / 1024:.0f} KiB a step until here, {rest / 1024:.0f} in the rest"
    if doc["reserved_growth_per_step"]:
        yield "reserved", reserved.goes_on(before, after), f"{doc['reserved_growth_per_step'] >> 10} KiB a step said"
    if doc["unused_bytes"]:
        yield "unused", *claims.unused(claims.Moment(run, seq), {"saves_bytes": doc["unused_bytes"]}, doc)


def choose(run, ends, points):
    """Allocations after the third step, evenly, of each phase."""
    by_phase = collections.defaultdict(list)
    for b in run.blocks:
        if len(ends) > 2 and ends[2] < b.seq:
            by_phase[run.phase(b.seq)].append(b.seq)
    return {seqs[i * len(seqs) // points]: phase for phase, seqs in by_phase.items() for i in range(min(points, len(seqs)))}


def judge_program(name, recording, points):
    run = future.Run(TOOL, recording)
    ends = ends_of(run)
    chosen, said = choose(run, ends, points), []
    with tempfile.TemporaryDirectory() as folder:
        for seq, path in ((s, f"{folder}/{s}.gmt") for s in chosen):
            subprocess.run([judge.CUT, recording, f"-{seq}", path], check=True)
            doc = json.loads(subprocess.run([TOOL, "leaks", path, "--json"], check=True, capture_output=True, text=True).stdout)
            said += [(kind, so, name, chosen[seq], seq, words) for kind, so, words in claims_of(run, ends, doc, seq)]
    return list(chosen.values()), said


def write(said, cuts):
    page = judge.PAGE.read_text()
    text = f"\n{sum(map(len, cuts))} recordings of {sum(map(bool, cuts))} programs, each ended in the middle.\n\n| claim | said | true | false |\n|---|---:|---:|---:|\n"
    text += "".join(f"| {kind} | {n} | {true} | {false} |\n" for kind, (n, true, false, _) in judge.table(said).items())
    judge.PAGE.write_text(page[:page.index(BEGIN)] + BEGIN + text + "\n" + page[page.index(END):])


def main():
    args, paths = judge.arguments(points=6)
    with ProcessPoolExecutor(2) as pool:
        found = [*pool.map(judge_program, paths, map(str, paths.values()), [args.points] * len(paths))]
    said = [claim for _, claims_said in found for claim in claims_said]
    for kind, so, name, phase, seq, words in said:
        if so is False:
            print(f"FALSE {kind:14} {name} {seq} ({phase}): {words}")
    for kind, (n, true, false, _) in judge.table(said).items():
        print(f"{kind:14} said {n:6} true {true:6} false {false:6}")
    if args.write:
        write(said, [cuts for cuts, _ in found])


if __name__ == "__main__":
    main()
