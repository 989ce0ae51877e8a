# SPDX-License-Identifier: Apache-2.0
"""score.py [--tags on|off] [--stacks all|python|none] [--case NAME]... [--keep FOLDER [--again]] [--json] [--wrong N]: runs the cases under the recorder and asks of
every block at every mark whether the tool's class is the one the program itself gives (truth.py)."""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import precision

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from forks import OUTPUT, Forks  # noqa: E402

BUILD = Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", HERE.parents[1] / "build"))
TOOL = str(BUILD / "gpumemtrace")


def cases():
    return sorted(p.stem[len("case_"):] for p in HERE.glob("case_*.py"))


def devices(case):
    found = re.search(r"^# devices: (\d+)$", (HERE / f"case_{case}.py").read_text(), re.M)
    return int(found[1]) if found else 1


def record(case, folder, tags, timeout, again=False, stacks="all"):
    """Runs a case; its recordings with their truths. `again`: those that lie there."""
    n = devices(case)
    output = "run.gmt" if n == 1 else "run.%r.gmt"
    found = [(folder / output.replace("%r", str(r)), folder / f"truth.{r}") for r in range(n)]
    if again and all(f.exists() for pair in found for f in pair):
        return found
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env.update(TRUTH=str(folder / "truth.%r"), GPUMEMTRACE_TAGS=tags, GPUMEMTRACE_STACKS=stacks, OMP_NUM_THREADS="1",
               TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"), TRITON_CACHE_DIR=str(folder / "triton"))
    command, program = [TOOL, "run", "--sim", f"h100-80g,{n}", "-q", "-o"], str(HERE / f"case_{case}.py")
    ranks = n if n > 1 else 0
    done, recordings = Forks.of([*command, OUTPUT, "--", sys.executable], env, program, ranks).run([program], folder, env, timeout, ranks)
    for recording, (file, _) in zip(recordings, found):
        if recording:
            shutil.move(recording, file)
    if done.returncode:
        raise RuntimeError(f"case {case} failed: {done.stdout[-1500:]}{done.stderr[-3000:]}")
    return found


def ask(*args):
    done = subprocess.run([TOOL, *map(str, args), "--json"], env={**os.environ, "GPUMEMTRACE_TEST_RULES": "1"}, capture_output=True,
                          text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{args}: {done.stderr}")
    return json.loads(done.stdout)


def owner(recording, stack, known={}):
    """Where a block was born, in few words: the innermost frames of Python, else of the program."""
    if (recording, stack) not in known:
        try:
            frames = ask("stack", recording, stack)["frames"]
        except RuntimeError:
            frames = []
        python = [f for f in frames if f["kind"] == "python"] or frames
        known[recording, stack] = " < ".join("%s %s:%s" % (f["function"], os.path.basename(f["file"] or ""), f["line"])
                                             for f in python[:3])
    return known[recording, stack]


def compare(recording, line, total, wrong):
    at = "mark:%s#%d" % (line["mark"], line["k"])
    live = ask("live", recording, "--at", line.get("at", at), "--device", line["device"])
    at += " at " + line["at"] if "at" in line else ""
    ours = {b["addr"]: b for b in live["blocks"] if b["addr"] not in line.get("not_there", ())}
    for said in line["blocks"]:
        block = ours.pop(said["addr"], None)
        category = block["category"] if block and block["size"] == said["size"] else "(no block)"
        size = said["size"]
        if not said["classes"]:
            total["undecided"] += size
            wrong[("undecided: " + said["why"], category)].append((size, at, recording, block))
            continue
        total["bytes"] += size
        total["unknown"] += size * (category in ("unknown", "(no block)"))
        if category != "(no block)":
            precision.note(total, block, size, said["classes"])
        if category in said["classes"]:
            total["right"] += size
        else:
            wrong[(said["classes"][0], category)].append((size, at, recording, block, said["why"]))
    for block in ours.values():
        total["bytes"] += block["size"]
        wrong[("(no block)", block["category"])].append((block["size"], at, recording, block))


def explain(wrong, most):
    """The confusions by weight: truth, ours, bytes in all marks, the largest block's birth and the marks."""
    out = []
    for (truth, ours), found in sorted(wrong.items(), key=lambda kv: -sum(f[0] for f in kv[1]))[:most]:
        largest = max(found, key=lambda f: f[0])
        out.append({"truth": truth, "ours": ours, "bytes": sum(f[0] for f in found), "blocks": len(found),
                    "at": sorted({f[1].split(":")[1].split("#")[0] for f in found}), "largest": largest[0],
                    "addr": largest[3]["addr"] if largest[3] else None, "seen": largest[1],
                    "why": largest[4] if len(largest) > 4 else "",
                    "born": owner(str(largest[2]), largest[3]["stack"]) if largest[3] else ""})
    return out


def score(case, tags="on", most=6, timeout=150, keep=None, again=False, stacks="all"):
    """Bytes over all marks of a case: in all, right, unknown, undecided by the truth; and what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(keep) / case if keep else Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        total, wrong, marks = collections.Counter(), collections.defaultdict(list), 0
        for recording, truth in record(case, folder, tags, timeout, again, stacks):
            for line in truth.read_text().splitlines():
                compare(recording, json.loads(line), total, wrong)
                marks += 1
        return {"case": case, "tags": tags, "marks": marks, "bytes": total["bytes"], "right": total["right"] / total["bytes"],
                "unknown": total["unknown"] / total["bytes"], "undecided_bytes": total["undecided"], "rules": precision.of(total),
                "wrong": explain(wrong, most)}


def show(s):
    print("%-24s %5d marks %9.1f MiB  right %7.3f %%  unknown %7.3f %%  undecided %.2f MiB" % (
        s["case"], s["marks"], s["bytes"] / 2**20, 100 * s["right"], 100 * s["unknown"], s["undecided_bytes"] / 2**20))
    for w in s["wrong"]:
        print("    %-22s said %-22s %8.2f %%  %4d blocks  at %s; %s; born in %s" % (
            w["truth"], w["ours"], 100 * w["bytes"] / s["bytes"], w["blocks"], ", ".join(w["at"]), w["why"], w["born"]))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tags", choices=("on", "off"), default="on")
    parser.add_argument("--stacks", choices=("all", "python", "none"), default="all")
    parser.add_argument("--case", action="append", choices=cases(), metavar="NAME", help="only this one; may be given again")
    parser.add_argument("--wrong", type=int, default=6, metavar="N", help="confusions to show of each case")
    parser.add_argument("--keep", metavar="FOLDER", help="keep recordings and truths there")
    parser.add_argument("--again", action="store_true", help="score what lies in that folder, without running it again")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    all_scores = []
    for case in options.case or cases():
        try:
            all_scores.append(score(case, options.tags, options.wrong, keep=options.keep, again=options.again,
                                    stacks=options.stacks))
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            all_scores.append({"case": case, "tags": options.tags, "failed": str(e)})
            print(case, "FAILED:", e, file=sys.stderr)
            continue
        if not options.json:
            show(all_scores[-1])
    done = [s for s in all_scores if "failed" not in s]
    if options.json:
        json.dump(all_scores, sys.stdout)
    elif done:
        print(precision.show(precision.gather(done)))
        whole = sum(s["bytes"] for s in done)
        print("all, by bytes            right %7.3f %%  unknown %7.3f %%;  lowest case %7.3f %%" % (
            100 * sum(s["right"] * s["bytes"] for s in done) / whole, 100 * sum(s["unknown"] * s["bytes"] for s in done) / whole,
            100 * min(s["right"] for s in done)))
    return len(done) < len(all_scores)


if __name__ == "__main__":
    sys.exit(main())
