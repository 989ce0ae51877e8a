# SPDX-License-Identifier: Apache-2.0
"""make_it_fit.py [--rows ROWS.jsonl] [--write] [--most N] [NAME...]: runs `fit --make-it-fit` on cards with a part of the memory that each program needs,
then the program itself, to its end, on each card with the cheapest set. A line of ROWS.jsonl (made_to_fit.jsonl beside this file) is a program: one
that is there is not run again, so that the command goes on where it was stopped. --write: the table of docs/make-it-fit.md. `--list`: the names."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "future"))

import programs as others  # noqa: E402
from record import TOOL  # noqa: E402

MIB = 1 << 20
LONGEST = 3600  # seconds of a search
SHARES = 0.9, 0.7, 0.5
CARD = "h100-80g"  # with less memory
NAMES = """fit/mlp-large-batch fit/mlp fit/cnn fit/lstm reports/frozen_tower/broken reports/cached_loss/broken reports/rotary_layers/broken reports/rnnt_joint/broken
reports/cls_view/broken reports/kfold/broken reports/sliding_window/broken reports/micro_outputs/broken reports/bge_sparse/broken reports/k9_grad_stats/broken
reports/profiler_shapes/broken reports/k1_dead_model/broken reports/cached_loss/pieces reports/frozen_tower/fixed examples/train
fit/bert fit/gpt2 fit/llama-wide-vocabulary fit/vit shapes/vit_frozen shapes/llama_8b_lora shapes/whisper_small frameworks/lightning_fit frameworks/trainer shapes/unet
fit/gpt2-autocast fit/gpt2-momentum fit/gpt2-eager fit/llama-keep-grads fit/qwen3-bf16 fit/t5 fit/vit-autocast frameworks/trl_sft frameworks/timm_train frameworks/compiled
frameworks/diffusers_train frameworks/ddpm_train frameworks/open_clip_train frameworks/sentence_train frameworks/accelerate_shuffle frameworks/ignite_fit frameworks/smp_train
frameworks/x_transformers_train frameworks/monai_segment frameworks/skorch_fit frameworks/mixtral frameworks/encoders frameworks/trl_dpo frameworks/liger
shapes/resnet shapes/llama_1b_lora shapes/unet_autocast shapes/vit_large shapes/llama_8b_lora_bf16 shapes/llama_8b_full shapes/llama_1b_full shapes/qwen_7b_lora shapes/qwen_7b_full
shapes/qwen_half_b_full shapes/teacher shapes/dpo""".split()
PAGE, BEGIN, END = others.ROOT / "docs/make-it-fit.md", "<!-- sets -->\n", "<!-- end of sets -->\n"
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
       "PYTHONPATH": str(others.TESTS / "quick")}


def programs():
    shapes = re.findall(r"^def (\w+)\(\):", (HERE / "shapes.py").read_text(), re.M)
    return {**others.programs(), **{f"shapes/{name}": [sys.executable, str(HERE / "shapes.py"), name] for name in shapes}}


def fit(command, folder, cards, *options):
    words = [TOOL, "fit", "--json", "--cards", ",".join(cards), *options, "--", *command]
    try:
        done = subprocess.run(words, env=ENV, capture_output=True, text=True, cwd=folder, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return {"error": "the search took too long"}
    return json.loads(done.stdout) if done.stdout else {"error": done.stderr.strip().splitlines()[-1]}


def runs_to_its_end(command, card, changes, folder):
    """(whether it does, peak)"""
    out = Path(folder) / "run.gmt"
    words = [word for change in changes for word in ("--with", change)]
    done = subprocess.run([TOOL, "run", "-q", "--sim", card, "-o", out, *words, "--", *command], env=ENV, capture_output=True, cwd=folder, stdin=subprocess.DEVNULL)
    report = json.loads(subprocess.run([TOOL, "report", "--json", out], capture_output=True, text=True).stdout or "{}")
    out.unlink(missing_ok=True)
    return done.returncode == 0, max((d["peak_bytes"] for d in report.get("devices", ())), default=0)


def row_of(command, card, share, found, folder):
    sets = [s for s in found["sets"] if s["card"] == card["card"]]
    fits = [s for s in sets if s["fits"]]
    row = {"card": card["card"], "share": share, "verdict": card["verdict"], "found": len(fits), "tried": len(sets),
           "failed": [[*s["changes"], s["error"]] for s in sets if "error" in s],
           "predictions": [[s["changes"], s["predicted_peak_bytes"], s["predicted_most_bytes"], s["peak_bytes"]] for s in sets if s["verdict"] not in ("failed", "not stable")
                           and s["predicted_most_bytes"] and (s["fits"] or not s["measured"])]}  # else the peak is that until memory ran out
    if card["verdict"] == "does not fit":
        row["verdict"] = "made to fit" if fits else "no set found"
    if fits:
        best = fits[0]
        ends, peak = runs_to_its_end(command, card["card"], best["changes"], folder)
        row.update(changes=best["changes"], slowdown=best["slowdown"], predicted=[best["predicted_peak_bytes"], best["predicted_most_bytes"]], said=best["peak_bytes"],
                   ends=ends, peak=peak)
    return row


def try_program(command, folder, most):
    begin, found = time.time(), fit(command, folder, [CARD + "=1TiB"])
    if "cards" not in found or not found["cards"][0]["fits"]:
        return {"error": found.get("error") or found["cards"][0]["verdict"]}
    need = found["cards"][0]["device_bytes"]
    cards = [f"{CARD}={int(need * share) >> 20}MiB" for share in SHARES]
    found = fit(command, folder, cards, "--make-it-fit", "--max-runs", str(most))
    if "cards" not in found:
        return {"need": need, "error": found["error"]}
    found.setdefault("sets", [])
    minutes = (time.time() - begin) / 60
    return {"need": need, "runs": found["runs"], "minutes": minutes, "rows": [row_of(command, card, share, found, folder) for card, share in zip(found["cards"], SHARES)]}


# ---- the page ----

def predicted(tried):
    """How good predictions were."""
    every = {json.dumps([p["program"], x]): x for p in tried for r in p.get("rows", ()) for x in r["predictions"]}.values()
    figures, ranges = ([x for x in every if (x[2] <= 1.03 * x[1]) == exact] for exact in (True, False))
    off = [max(peak - most, least - peak, 0) / peak for _, least, most, peak in figures]
    held = sum(0.97 * least <= peak <= 1.03 * most for _, least, most, peak in ranges)
    near = sum(abs(peak - least) <= 0.03 * peak for _, least, _, peak in ranges)
    return (f"{len(figures)} peaks were predicted as a figure, or as a range of 3 % or less, before they were measured: {sum(x <= 0.03 for x in off)} of them within 3 % "
            f"(median {statistics.median(off or [0]):.1%} off). The other {len(ranges)} were wider ranges: {held} peaks lay in them, or within 3 % of them, and {near} within 3 % of "
            "the lower end.")


def table(tried):
    rows = [row for p in tried for row in p.get("rows", ())]
    made, without = ([r for r in rows if r["verdict"] == verdict] for verdict in ("made to fit", "no set found"))
    old = [p["program"] for p in tried if not p.get("version")]
    text = (f"\n{len(tried)} programs. {len(made) + len(without)} times a program did not fit a card as it is. In {len(made)} of them a set was found, and in "
            f"{sum(r['ends'] for r in made)} of these the program ran to its end with it, on that card. {sum(abs(r['peak'] - r['said']) <= r['said'] / 1000 for r in made)} "
            f"of {len(made)} then had the peak that the answer says, within 0.1 %.\n\n"
            f"{predicted(tried)} Without the programs marked *: {predicted([p for p in tried if p.get('version')])}\n\n"
            f"{len(old)} programs, marked *, ran before some predictions were computed as now: see CHANGELOG.md. They stay as they were measured.\n\n"
            "| Program | Need | Card | Cheapest set | Slower | Peak | Predicted | Runs to its end | Sets | Runs | Minutes |\n|---|---:|---:|---|---:|---:|---:|---|---:|---:|---:|\n")
    for p in tried:
        text += f"| {p['program']} | {p['error']} |\n" if "error" in p else ""
        name = p["program"] + ("" if p.get("version") else r" \*")
        for i, r in enumerate(p.get("rows", ())):
            cells = [r["verdict"], "", "", "", ""]
            if "changes" in r:
                least, most = (f"{x / MIB:,.0f}" for x in r["predicted"])
                cells = [f"`{' + '.join(r['changes'])}`", f"{100 * r['slowdown'] - 100:.0f} %", f"{r['peak'] / MIB:,.0f} MiB", f"{least} MiB" if least == most else f"{least} - {most} MiB",
                         "yes" if r["ends"] else "**no**"]
            of_all = ["", "", ""] if i else [f"{p['need'] / MIB:,.0f} MiB", p["runs"], f"{p['minutes']:.1f}"]
            text += f"| {'' if i else name} | {of_all[0]} | {r['share']} | {' | '.join(cells)} | {r['found']} | {of_all[1]} | {of_all[2]} |\n"
    return text + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path, default=HERE / "made_to_fit.jsonl")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--most", type=int, default=len(NAMES), help="programs in all")
    parser.add_argument("--max-runs", type=int, default=12, help="for each card")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_intermixed_args()
    known = programs()
    version = subprocess.run(["git", "log", "-1", "--format=%h", "--", "viewer", "python"], cwd=others.ROOT, capture_output=True, text=True).stdout.strip()
    if args.list:
        print(*(name for name in NAMES if name in known), sep="\n")
        return
    tried = [json.loads(line) for line in args.rows.read_text().splitlines()] if args.rows.exists() else []
    for name in args.names or NAMES:
        if len(tried) >= args.most or name not in known or any(p["program"] == name for p in tried):
            continue
        with tempfile.TemporaryDirectory() as folder:
            tried.append({"program": name, "version": version, **try_program(known[name], folder, args.max_runs)})
        with args.rows.open("a") as f:
            f.write(json.dumps(tried[-1]) + "\n")
        print(tried[-1], flush=True)
    if args.write:
        page = PAGE.read_text()
        tried.sort(key=lambda p: p["program"])
        PAGE.write_text(page[:page.index(BEGIN)] + BEGIN + table(tried) + page[page.index(END):])


if __name__ == "__main__":
    main()
