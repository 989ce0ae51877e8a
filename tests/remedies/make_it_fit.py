# SPDX-License-Identifier: Apache-2.0
"""make_it_fit.py ROWS.jsonl [--write] [--shares 0.9,0.7,0.5] [NAME...]: runs `fit --make-it-fit` on cards with a part of the memory that each
program needs, then the program itself, to its end, on that card with the cheapest set. Rows that are there are not made again. --write: the
table of docs/make-it-fit.md."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "future"))

from programs import ROOT, programs  # noqa: E402
from record import TOOL  # noqa: E402

MIB = 1 << 20
NAMES = ["fit/gpt2", "fit/bert", "fit/mlp-large-batch", "fit/llama-wide-vocabulary", "fit/t5", "examples/train", "fit/vit", "fit/cnn"]
PAGE, BEGIN, END = ROOT / "docs/make-it-fit.md", "<!-- sets -->\n", "<!-- end of sets -->\n"
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def fit(name, card, *options):
    done = subprocess.run([TOOL, "fit", "--json", "--cards", card, *options, "--", *programs()[name]], env=ENV, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout else {"error": done.stderr.strip().splitlines()[-1]}


def runs_to_its_end(name, card, changes, folder):
    """(whether it does, peak)"""
    out = folder / "run.gmt"
    out.unlink(missing_ok=True)
    words = [word for change in changes for word in ("--with", change)]
    done = subprocess.run([TOOL, "run", "-q", "--sim", card, "-o", out, *words, "--", *programs()[name]], env=ENV, capture_output=True, cwd=folder)
    report = json.loads(subprocess.run([TOOL, "report", "--json", out], capture_output=True, text=True).stdout or "{}")
    return done.returncode == 0, max((d["peak_bytes"] for d in report.get("devices", ())), default=0)


def row_of(name, share, need, folder):
    card, begin = f"mine={int(need * share) >> 20}MiB", time.time()
    found = fit(name, card, "--make-it-fit")
    row = {"program": name, "share": share, "need": need, "card": card, "runs": found.get("runs", 0), "minutes": (time.time() - begin) / 60}
    sets = found.get("sets", [])
    if "cards" not in found or found["cards"][0]["verdict"] not in ("fits", "does not fit"):
        return {**row, "verdict": found.get("error") or found["cards"][0]["verdict"]}
    fits = [s for s in sets if s["fits"]]
    row.update(verdict="fits as it is" if found["cards"][0]["fits"] else "made to fit" if fits else "no set found", found=len(fits), tried=len(sets),
               failed=[[*s["changes"], s["error"]] for s in sets if "error" in s], predictions=[[s["predicted_peak_bytes"], s["peak_bytes"]] for s in sets if s["verdict"] != "failed"])
    if fits:
        ends, peak = runs_to_its_end(name, card, fits[0]["changes"], folder)
        row.update(changes=fits[0]["changes"], slowdown=fits[0]["slowdown"], predicted=fits[0]["predicted_peak_bytes"], said=fits[0]["peak_bytes"], ends=ends, peak=peak)
    return row


def table(rows):
    made = [r for r in rows if r["verdict"] == "made to fit"]
    tried = [r for r in rows if r["verdict"] in ("made to fit", "no set found")]
    off = [abs(a - b) / b for r in tried for a, b in r["predictions"]]
    text = (f"\n{len(tried)} times a program did not fit as it is. In {len(made)} of them a set was found, and in {sum(r['ends'] for r in made)} of these the program ran to its end "
            f"with it, on that card. {sum(abs(r['peak'] - r['said']) <= r['said'] / 1000 for r in made)} of {len(made)} then had the peak that the answer says, within 0.1 %. "
            f"The peak as predicted before the run was within 3 % in {sum(x <= 0.03 for x in off)} of {len(off)} runs (median {statistics.median(off or [0]):.1%} off).\n\n"
            "| Program | Need | Card | Cheapest set | Slower | Peak | Predicted | Runs to its end | Sets | Runs | Minutes |\n|---|---:|---:|---|---:|---:|---:|---|---:|---:|---:|\n")
    for r in sorted(rows, key=lambda r: (r["program"], -r["share"])):
        figures = [f"`{' + '.join(r['changes'])}`", f"{100 * r['slowdown'] - 100:.0f} %", f"{r['peak'] / MIB:,.0f} MiB", f"{r['predicted'] / MIB:,.0f} MiB", "yes" if r["ends"] else "**no**"] \
            if "changes" in r else [r["verdict"], "", "", "", ""]
        text += f"| {r['program']} | {r['need'] / MIB:,.0f} MiB | {r['share']} | {' | '.join(figures)} | {r.get('found', 0)} | {r['runs']} | {r['minutes']:.1f} |\n"
    return text + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--shares", default="0.9,0.7,0.5")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.rows.read_text().splitlines()] if args.rows.exists() else []
    needs = {r["program"]: r["need"] for r in rows}
    for share in map(float, args.shares.split(",")):
        for name in args.names or NAMES:
            if any((r["program"], r["share"]) == (name, share) for r in rows):
                continue
            if name not in needs:
                needs[name] = fit(name, "h100-80g")["cards"][0]["device_bytes"]
            rows.append(row_of(name, share, needs[name], args.rows.resolve().parent))
            with args.rows.open("a") as f:
                f.write(json.dumps(rows[-1]) + "\n")
            print(rows[-1], flush=True)
    if args.write:
        page = PAGE.read_text()
        PAGE.write_text(page[:page.index(BEGIN)] + BEGIN + table(rows) + page[page.index(END):])


if __name__ == "__main__":
    main()
