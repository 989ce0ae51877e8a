# SPDX-License-Identifier: Apache-2.0
"""try_remedies.py FOLDER [--most N] [--write] [--there] [--again] [NAME...]: records programs, applies what `advise` finds in them and what `oom` marks as
enough on a smaller card, and measures: of each kind at most N, evenly over the programs, and all checkpoints. Rows go to FOLDER/rows.jsonl; --write: the table of
docs/conclusions.md and viewer/advise/measured.def."""
import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "future"), str(HERE.parents[1] / "python/gpumemtrace")]

import future  # noqa: E402
from changes import for_finding  # noqa: E402
from programs import ROOT, programs  # noqa: E402
from record import TOOL, record, record_all  # noqa: E402

sys.path.remove(str(HERE.parents[1] / "python/gpumemtrace"))  # a module there is called transformers

MIB = 1 << 20
CARD, CONTEXT = "h100-80g", 148 << 20  # that of a card of any size
SHARES = 0.9, 0.7  # of the blocks at the peak
NEAR = 0.03
PAGE, DEF = ROOT / "docs/conclusions.md", ROOT / "viewer/advise/measured.def"
BEGIN, END = "<!-- remedies -->\n", "<!-- end of remedies -->\n"
PHASES = "forward", "evaluation", "loss", "backward", "clip", "optimizer", "zero_grad"
HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
/* Written by tests/remedies/try_remedies.py --write: kind of finding, how often the peak was as predicted, of how many. */
/* clang-format off */
"""


def ask(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{arguments}: {done.stderr}")
    return json.loads(done.stdout)


def changes_of(finding):
    """How the product makes it; what it cannot make has programs with and without it in tests/advise."""
    return ["shard_state"] if finding["kind"] == "shard_state" else for_finding(finding)


def run(name, finding, folder, card=CARD):
    """(recording or None, how often the change took effect, the exit code, the program's last words)"""
    out, done = Path(folder) / "applied.gmt", Path(folder) / "done"
    for old in (done, out):
        old.unlink(missing_ok=True)
    python, *program = programs()[name]
    changes = [finding["change"]] if "change" in finding else changes_of(finding)
    before = [HERE / "shard_state.py", done] if changes == ["shard_state"] else []
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRUTH=str(Path(folder) / "truth"))
    ended = subprocess.run([TOOL, "run", "--json", "--sim", card, "-o", out, *(f"--with={c}" for c in changes if not before), "--", python, *before, *program],
                           env=env, cwd=folder, capture_output=True, text=True, timeout=300)
    *words, last = ended.stderr.strip().splitlines() or [""]
    answer = json.loads(last) if last.startswith("{") else {"exit_code": ended.returncode}
    made = answer.get("changes") or [{"times": int(done.exists()), "text": ""}]
    rows = re.search(r"batch=1/2@\d+$", made[0]["text"])
    if rows and not made[0]["times"]:
        return run(name, {**finding, "change": rows[0]}, folder, card)
    return out if out.exists() else None, made[0]["times"], answer["exit_code"], words[-1:] or [""]


def peak(path, of):
    device = ask("report", path)["devices"][0]
    return device["peak_reserved_bytes" if of == "reserved" else "peak_bytes"]


def measure(name, finding):
    """What the remedy does to the peak: bytes left, or why it could not be applied."""
    with tempfile.TemporaryDirectory() as folder:
        path, times, code, words = run(name, finding, folder)
        if not times or code or not path:
            return {"why": words[0] if code else "took no effect"}
        return {"left": peak(path, finding["of"])}


def key_of(row):
    """A remedy and its program: what was measured of these stays so when `advise` changes."""
    return " | ".join((row["program"], row["kind"], row["what"], row["at"]))


def findings(name, recording):
    """What `advise` finds and a change can make, as rows without a measurement, each with its finding."""
    before = ask("advise", recording, "--top", "0")
    whole = {"allocated": before["peak_bytes"], "reserved": before["peak_reserved_bytes"]}
    return [({"program": name, "test": "peak", "kind": f["kind"], "least": f["least_bytes"], "most": f["saves_bytes"], "what": f["what"], "peak": whole[f["of"]],
              "at": f"{f['function']} {f['file'].split('/')[-1]}:{f['line']}"}, f) for f in before["findings"] if changes_of(f)]


def evenly(found, most):
    return found if not most or len(found) <= most else [found[i * len(found) // most] for i in range(most)]


def chosen(found, most):
    """So many of each kind; all checkpoints, which depend most on how a program is written."""
    by_kind = collections.defaultdict(list)
    for row, finding in found:
        by_kind[row["kind"]].append((row, finding))
    return [pair for kind, pairs in by_kind.items() for pair in evenly(pairs, 0 if kind == "checkpoint" else most)]


def predicted(row, finding, known):
    """The row with its measurement."""
    row |= known.get(key_of(row)) or measure(row["program"], finding)
    if "why" not in row:
        row["measured"] = row["peak"] - row["left"]
        row["off"] = max(row["least"] - row["measured"], row["measured"] - row["most"], 0) / row["peak"]
    return [row]


# ---- does it make room ----

def as_finding(remedy):
    """A remedy of `oom` as `advise` would have it."""
    kind = "fused_optimizer" if remedy["name"] == "foreach_off" and "fused=True" in remedy["what"] else remedy["name"]
    return {**remedy, "kind": kind}


def granted(path, size):
    """Until the first refusal: blocks of that size, all blocks since the latest step of an optimizer (what was refused may have another
    size with the change), and such steps. Of the whole run where nothing was refused."""
    alike = since = steps = 0
    for e in future.dump(TOOL, path):
        if e["kind"] == "block_oom":
            break
        if e["kind"] == "block_alloc" and e["device"] == 0:
            alike += e["size"] == size
            since += 1
        elif e["kind"] == "range_end" and e.get("name", "").startswith("Optimizer.step"):
            since, steps = 0, steps + 1
    return alike, since, steps


def is_later(new, old):
    at = [(doc["step"], PHASES.index(doc["phase"]) if doc["phase"] in PHASES else -1) for doc in (new, old)]
    return at[0] > at[1]


def made_room(name, recording, folder, shares=SHARES, most_remedies=20):
    """A row for each remedy that `oom` marks as enough, on cards too small for the program."""
    most = peak(recording, "allocated")
    for share in shares:
        card = f"mine={int(most * share) + CONTEXT >> 20}MiB"
        small = Path(folder) / "small" / str(share)
        small.mkdir(parents=True, exist_ok=True)
        refused = record(name, programs()[name], small, card=card)
        if not refused or not any(d["ooms"] for d in ask("report", refused)["devices"]):
            continue
        old = ask("oom", refused, "--nth", "1")
        before = granted(refused, old["block_bytes"])
        enough = [f for f in (as_finding(r) for r in old["remedies"] if r["enough"]) if changes_of(f)]
        for finding in enough[:most_remedies]:
            yield judge_room(name, finding, card, old, before)


def judge_room(name, finding, card, old, before):
    row = {"program": name, "test": "enough", "kind": finding["kind"], "what": finding["what"], "at": f"step {old['step']} {old['phase']}", "card": card}
    with tempfile.TemporaryDirectory() as folder:
        path, times, code, words = run(name, finding, folder, card)
        refused = path and any(d["ooms"] for d in ask("report", path)["devices"])
        if not times or not path or code and not refused:
            return {**row, "why": words[0] if code else "took no effect"}
        new = ask("oom", path, "--nth", "1") if refused else None
        then = granted(path, old["block_bytes"]) if refused else before
        row["passed"] = not refused or is_later(new, old) or (new["step"] == old["step"] and any(a > b for a, b in zip(then, before)))
    return row


def rows_of(test, *of):
    """Of one finding, or of one program on smaller cards."""
    try:
        return list(test(*of))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(of[0], str(error)[-300:], file=sys.stderr)
        return []


# ---- the table ----

def table(rows):
    """kind -> tried, near, worst, widths of the ranges, enough, passed"""
    found = collections.defaultdict(lambda: [0, 0, 0.0, [], 0, 0])
    for row in rows:
        of = found[row["kind"]]
        if "off" in row:
            of[0] += 1
            of[1] += row["off"] <= NEAR
            of[2] = max(of[2], row["off"])
            of[3].append((row["most"] - row["least"]) / row["peak"])
        if "passed" in row:
            of[4] += 1
            of[5] += row["passed"]
    return dict(sorted((k, v) for k, v in found.items() if v[0] or v[4]))


def write(rows):
    found = table(rows)
    DEF.write_text(HEAD + "".join(f'{{ "{kind}", {near}, {tried} }},\n' for kind, (tried, near, *_) in found.items() if tried))
    whole = PAGE.read_text()
    tried = {row["program"] for row in rows}
    left = sum("why" in row for row in rows)
    text = f"\n{len(rows) - left} remedies tried in {len(tried)} programs; {left} more could not be applied from outside.\n\n"
    text += "| remedy | tried | within 3 % | worst | width of the range, median | said to be enough | was enough |\n|---|---:|---:|---:|---:|---:|---:|\n"
    text += "".join(f"| {k} | {n} | {near} | {worst:.1%} | {statistics.median(wide or [0]):.0%} | {said} | {true} |\n"
                    for k, (n, near, worst, wide, said, true) in found.items())
    PAGE.write_text(whole[:whole.index(BEGIN)] + BEGIN + text + "\n" + whole[whole.index(END):])


def show(row):
    if "why" in row:
        return f"-- {row['program']} {row['kind']}: {row['why'][:150]}"
    if "passed" in row:
        return f"{'ok' if row['passed'] else 'NOT ENOUGH'} {row['program']} {row['kind']} ({row['at']}, {row['card']}): {row['what'][:100]}"
    figures = f"{row['least'] / MIB:.0f} to {row['most'] / MIB:.0f} MiB said, {row['measured'] / MIB:.0f} measured of {row['peak'] / MIB:.0f} ({row['off']:.1%})"
    return f"{'ok' if row['off'] <= NEAR else 'OFF'} {row['program']} {row['kind']}: {figures} {row['at']}: {row['what'][:60]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--there", action="store_true", help="only what is recorded already")
    parser.add_argument("--again", action="store_true", help="what was measured in this folder before is not measured again")
    parser.add_argument("--tests", default="peak,enough")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=15, help="remedies of each kind; 0: all")
    args = parser.parse_args()
    folder = Path(args.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if args.there:
        paths = {p.stem.replace("+", "/"): p for p in sorted(folder.glob("*.gmt"))}
        paths = {n: p for n, p in paths.items() if not args.names or any(n.startswith(x) for x in args.names)}
    else:
        paths = record_all(args.names, folder)
    rows, known = [], {}
    for line in (folder / "measured.jsonl").open() if args.again and (folder / "measured.jsonl").exists() else ():
        row = json.loads(line)
        known[key_of(row)] = {k: row[k] for k in ("left", "why") if k in row}
    with ProcessPoolExecutor(args.jobs) as pool, (folder / "rows.jsonl").open("w") as out, (folder / "measured.jsonl").open("a") as kept:
        tests = []
        if "peak" in args.tests:
            found = [pair for pairs in pool.map(rows_of, [findings] * len(paths), paths, map(str, paths.values())) for pair in pairs]
            tests += [(predicted, *pair, known) for pair in chosen(found, args.most)]
        if "enough" in args.tests:
            tests += [(made_room, name, str(path), str(folder)) for name, path in evenly(list(paths.items()), 4 * args.most)]
        for found in [pool.submit(rows_of, *test) for test in tests]:
            for row in found.result():
                rows.append(row)
                print(show(row), flush=True)
                print(json.dumps(row), file=out, flush=True)
                if row["test"] == "peak" and key_of(row) not in known:
                    print(json.dumps(row), file=kept, flush=True)
    for kind, (tried, near, worst, _, said, true) in table(rows).items():
        print(f"{kind:22} tried {tried:4} near {near:4} worst {worst:6.1%}   enough said {said:4} true {true:4}")
    if args.write:
        write(rows)


if __name__ == "__main__":
    main()
