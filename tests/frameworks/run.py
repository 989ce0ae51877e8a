# SPDX-License-Identifier: Apache-2.0
"""run.py [--program NAME]... [--tags on|off] [--keep FOLDER [--again]] [--wrong N] [--table FILE]: runs programs of
frameworks on the simulated device and asks whether they end, and of every block whether its class is right.

A program runs once under prologue.py, which finds the truth, and once for each kind of judging as it is; match.py
brings both together."""
import argparse
import collections
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "classes"))

import match  # noqa: E402
import score  # noqa: E402

PROGRAMS = HERE / "programs"
RIGHT = {"on": 0.998, "off": 0.98}
UNKNOWN = 0.001
CARD = "h100-80g"
MARK, END = "<!-- table -->\n", "<!-- end -->"


def header(name, word, default):
    found = re.search(rf"^# {word}: (.+)$", (PROGRAMS / f"{name}.py").read_text(), re.M)
    return found[1] if found else default


def names():
    return sorted(p.stem for p in PROGRAMS.glob("*.py"))


def ranks(name):
    return [int(n) for n in header(name, "ranks", "1").split()]


def missing(name):
    return [p for p in header(name, "needs", "").split() if importlib.util.find_spec(p) is None]


def launch(name, n, folder, prologue, **settings):
    """Starts a program as its users do: python, or torchrun for several ranks. How it ended."""
    python = [sys.executable] if n == 1 and header(name, "launch", "python") == "python" else [
        sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n}"]
    before = [str(HERE / "prologue.py")] if prologue else []
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", HF_HOME=str(folder / "hub"),
               TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"), TRITON_CACHE_DIR=str(folder / "triton"),
               PYTHONHASHSEED="0", **settings)
    command = [score.TOOL, "run", "--sim", f"{CARD},{n}", "-q", "-o", str(folder / settings.pop("OUTPUT")), "--",
               *python, *before, str(PROGRAMS / f"{name}.py")]
    work = folder / "work"
    work.mkdir(exist_ok=True)
    start = time.monotonic()
    try:
        done = subprocess.run(command, env=env, cwd=work, capture_output=True, text=True, timeout=float(header(name, "seconds", "400")))
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as e:
        code, said = "time is up", "".join((b or b"").decode(errors="replace") for b in (e.stdout, e.stderr))
    (folder / f"{'truth' if prologue else settings['GPUMEMTRACE_TAGS']}.log").write_text(said)
    return {"code": code, "said": said, "seconds": time.monotonic() - start}


def why_it_died(said):
    """The last line that names an error."""
    lines = [l.strip() for l in said.splitlines() if re.match(r"(\[rank\d+\]: *)?[\w.]*(Error|Exception|Interrupt)\b.*:", l.strip())]
    own = [l for l in lines if "ChildFailedError" not in l]
    return (own or lines or said.strip().splitlines()[-1:] or [""])[-1][:200]


def judge(pairs, most):
    """Recordings with their truths: bytes right, unknown, undecided; what is wrong; where two runs part."""
    total, wrong, marks, differs, apart = collections.Counter(), collections.defaultdict(list), 0, 0, None
    for recording, truth in pairs:
        lines = [json.loads(line) for line in truth.read_text().splitlines()]
        lines, at, bytes_apart = match.carry_over(lines, truth.with_suffix(truth.suffix + ".gmt"), recording)
        apart = at if apart is None else apart
        differs += bytes_apart
        for line in lines:
            score.compare(recording, line, total, wrong)
            marks += 1
    whole = total["bytes"] or 1
    return {"marks": marks, "bytes": total["bytes"], "right": total["right"] / whole, "unknown": total["unknown"] / whole,
            "undecided_bytes": total["undecided"], "rules": score.precision.of(total), "differs": differs, "apart": apart, "wrong": score.explain(wrong, most)}


def run(name, n, folder, tags, most=8, again=False):
    """One program with so many ranks."""
    folder = folder / f"{name}.{n}"
    folder.mkdir(parents=True, exist_ok=True)
    out = {"program": name, "ranks": n, "ends": "yes", "judged": {}}
    truths = [folder / f"truth.{r}" for r in range(n)]
    if not again or not all(t.exists() and t.with_suffix(t.suffix + ".gmt").exists() for t in truths):
        for old in [*truths, *folder.glob("*.gmt")]:
            old.unlink(missing_ok=True)
        if header(name, "warm", "no") == "yes":
            launch(name, n, folder, False, OUTPUT="warm.%r.gmt", GPUMEMTRACE_TAGS="off")
        done = launch(name, n, folder, True, OUTPUT="truth.%r.gmt", GPUMEMTRACE_TAGS="off", TRUTH=str(folder / "truth.%r"))
        out["truth_seconds"] = done["seconds"]
        if done["code"]:
            out["ends"] = f"{done['code']} (with hooks): {why_it_died(done['said'])}"
    for kind in tags:
        recordings = [folder / f"{kind}.{r}.gmt" for r in range(n)]
        if not again or not all(r.exists() for r in recordings):
            for old in folder.glob(f"{kind}.*gmt*"):
                old.unlink()
            done = launch(name, n, folder, False, OUTPUT=f"{kind}.%r.gmt", GPUMEMTRACE_TAGS=kind)
            out["seconds"] = done["seconds"]
            if done["code"]:
                out["ends"] = f"{done['code']}: {why_it_died(done['said'])}"
        pairs = [(r, t) for r, t in zip(recordings, truths) if r.exists() and t.exists()]
        if pairs:
            out["judged"][kind] = judge(pairs, most)
    return out


def show(s):
    print("%-28s %d rank%s  ends: %s  %s" % (s["program"], s["ranks"], " s"[s["ranks"] > 1], s["ends"],
          " ".join("%s %.0f s" % (k, s[k]) for k in ("truth_seconds", "seconds") if k in s)))
    for kind, j in s["judged"].items():
        print("  tags %-3s %3d marks %9.1f MiB  right %7.3f %%  unknown %7.3f %%  undecided %.2f MiB  in one run only %.2f MiB%s" % (
            kind, j["marks"], j["bytes"] / 2**20, 100 * j["right"], 100 * j["unknown"], j["undecided_bytes"] / 2**20,
            j["differs"] / 2**20, "" if j["apart"] is None else "  the runs part at allocation %d" % j["apart"]))
        for w in j["wrong"]:
            print("    %-22s said %-22s %8.2f %%  %4d blocks  at %s; %s; %s at %s; born in %s" % (
                w["truth"], w["ours"], 100 * w["bytes"] / max(1, j["bytes"]), w["blocks"], ", ".join(w["at"]), w["why"],
                w["addr"], w["seen"], w["born"]))
    sys.stdout.flush()


def cell(s, kind, what):
    return "%.2f %%" % (100 * s["judged"][kind][what]) if kind in s["judged"] else "-"


def table(results):
    rows = ["| program | ranks | ends as on a card | right with tags | unknown | right without tags | undecided | MiB judged |",
            "|---|---|---|---|---|---|---|---|"]
    for s in results:
        mib = max((j["bytes"] for j in s["judged"].values()), default=0) / 2**20
        left = max((j["undecided_bytes"] / max(1, j["bytes"]) for j in s["judged"].values()), default=0)
        rows.append("| `%s` | %d | %s | %s | %s | %s | %.2f %% | %.0f |" % (
            s["program"], s["ranks"], s["ends"].replace("|", "/"), cell(s, "on", "right"), cell(s, "on", "unknown"),
            cell(s, "off", "right"), 100 * left, mib))
    return "\n".join(rows) + "\n"


def write_table(file, results):
    """Between the markers of the document."""
    head, _, rest = file.read_text().partition(MARK)
    file.write_text(head + MARK + table(results) + rest[rest.index(END):])


def table_file(name):
    """A document that a table can go into: known before an hour of programs has run."""
    file = Path(name)
    try:
        _, mark, rest = file.read_text().partition(MARK)
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}; "
                                         "name a document that is there, such as docs/frameworks.md") from None
    if not mark or END not in rest:
        raise argparse.ArgumentTypeError(f"{name} has no lines {MARK.strip()} and {END} to put the table between")
    return file


def short_of(s):
    """What a program lacks."""
    lacks = [] if s["ends"] == "yes" else [f"does not end: {s['ends']}"]
    for kind, j in s["judged"].items():
        if j["right"] < RIGHT[kind]:
            lacks.append(f"{100 * j['right']:.2f} % right with tags {kind}")
        if kind == "on" and j["unknown"] > UNKNOWN:
            lacks.append(f"{100 * j['unknown']:.2f} % unknown")
        if j["apart"] is not None:
            lacks.append(f"the runs part at allocation {j['apart']}")
    return lacks


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", action="append", choices=names(), metavar="NAME", help="only this one; may be given again")
    parser.add_argument("--ranks", type=int, help="only with so many")
    parser.add_argument("--tags", choices=("on", "off"), help="only with, or only without autograd's tags")
    parser.add_argument("--wrong", type=int, default=8, metavar="N", help="confusions to show of each program")
    parser.add_argument("--keep", metavar="FOLDER", help="keep recordings, truths and logs there")
    parser.add_argument("--again", action="store_true", help="judge what lies in that folder; run what is missing")
    parser.add_argument("--json", metavar="FILE", help="write the results there too")
    parser.add_argument("--table", metavar="FILE", type=table_file, help="put the table into this document")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.program or names():
            if missing(name):
                print(f"{name}: skipped, no {', '.join(missing(name))}; scripts/setup.sh frameworks", file=sys.stderr)
                continue
            for n in ranks(name):
                if options.ranks in (None, n):
                    results.append(run(name, n, Path(options.keep or folder), [options.tags] if options.tags else ["on", "off"],
                                       options.wrong, options.again))
                    show(results[-1])
    print(score.precision.show(score.precision.gather(results)))
    if options.json:
        Path(options.json).write_text(json.dumps(results))
    if options.table:
        write_table(options.table, results)
    short = [f"{s['program']}, {s['ranks']} ranks: {'; '.join(short_of(s))}" for s in results if short_of(s)]
    print(f"{len(results) - len(short)} of {len(results)} as they should be", *short, sep="\n  ")
    return bool(short)


if __name__ == "__main__":
    sys.exit(main())
