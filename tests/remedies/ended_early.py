# SPDX-License-Identifier: Apache-2.0
"""ended_early.py FOLDER [--points N] [NAME...]: what `advise` says of a recording that ends in the middle of its program, beside the rest
of the run: recordings of tests/future that end in every phase. FOLDER: recordings, made where they are missing."""
import collections
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "future")]

import claims  # noqa: E402
import future  # noqa: E402
import judge  # noqa: E402
from record import TOOL  # noqa: E402
from try_remedies import ask  # noqa: E402


def peak_of(run, end):
    """The event of the highest peak until then."""
    changes = [(b.seq, b.size) for b in run.blocks if b.seq < end] + [(b.end, -b.size) for b in run.blocks if b.end < end]
    now = most = at = 0
    for seq, size in sorted(changes):
        now += size
        if now > most:
            most, at = now, seq
    return at


def held(m, of):
    return m.bytes(of) + (m.wanted.size if of(m.wanted) else 0)


# The most that each kind may name, by the rest of the run.
TRUE = {
    "no_grad": lambda m: held(m, lambda b: b.saves and not b.is_used_by_backward(m.seq)),
    "late_del": lambda m: held(m, lambda b: not any(after > m.seq and by_engine for after, by_engine in b.releases)),
    "overlap": lambda m: held(m, lambda b: not m.is_needed(b)),
    "kept": lambda m: held(m, lambda b: not any(s > m.seq for s in b.saves) and not b.grads),
    "set_to_none": lambda m: held(m, lambda b: b.grads),
    "idle_weights": lambda m: held(m, lambda b: not b.saves and not b.grads),
    "checkpoint": lambda m: held(m, lambda b: b.saves),
    "offload_activations": lambda m: held(m, lambda b: b.saves),
}


def claims_of(run, path, end):
    answer = ask("advise", path, "--top", "0")
    at = peak_of(run, end)
    if not at:
        return
    m = claims.Moment(run, at)
    for finding in answer["findings"]:
        if finding["kind"] in TRUE:
            so = TRUE[finding["kind"]](m)
            yield finding["kind"], claims.at_most(finding["least_bytes"], so), f"{finding['least_bytes'] >> 20} MiB said, {so >> 20} so"


def judge_program(name, recording, points):
    run = future.Run(TOOL, recording)
    done = subprocess.run([judge.CUT, recording], check=True, capture_output=True, text=True)
    chosen = dict(judge.choose(run, [tuple(map(int, line.split())) for line in done.stdout.splitlines()], points))
    with tempfile.TemporaryDirectory() as folder:
        return [(name, chosen[seq], seq, *claim) for seq, path in judge.cut(recording, chosen, folder) for claim in claims_of(run, path, seq)]


def main():
    args, paths = judge.arguments(points=5)
    found = collections.defaultdict(lambda: [0, 0])
    with ProcessPoolExecutor(2) as pool:
        for said in pool.map(judge_program, paths, map(str, paths.values()), [args.points] * len(paths)):
            for name, phase, seq, kind, so, words in said:
                found[kind][so] += 1
                if not so:
                    print(f"FALSE {kind} {name} {seq} ({phase}): {words}", flush=True)
    for kind, (false, true) in sorted(found.items()):
        print(f"{kind:22} true {true:6} false {false:6}")


if __name__ == "__main__":
    main()
