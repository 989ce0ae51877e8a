# SPDX-License-Identifier: Apache-2.0
"""What `replay` says of a program with a setting of the allocator, from one recording with none, beside the program
run with that setting: reserved bytes after every request. Prints a table in Markdown. A program whose threads free in one
order today and in another one tomorrow is run again with a setting until it asked for the same in the same order.

    compare.py [--table docs/replay.md] [PROGRAM...]

With --table the rows are written into that file, between its two comments."""
import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from forks import OUTPUT, Forks  # noqa: E402

BUILD = Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", ROOT / "build"))
TOOL = str(BUILD / "gpumemtrace")
SETTINGS = [
    "expandable_segments:True",
    "max_split_size_mb:32",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,4:2,16:4,>:1]",
    "garbage_collection_threshold:0.3,per_process_memory_fraction:{fraction}",
    "expandable_segments:True,roundup_power2_divisions:8",
]
# The card, and the part of it that is allowed where garbage is collected: so that there is some.
CARDS = {"retries": ("small=2GiB", 0.9), "outside": ("small=2GiB", 0.9)}
FRACTIONS = {"large_pieces": 0.015, "kinds_of_sizes": 0.016, "emptied": 0.008, "evaluated": 0.008, "varied_batches": 0.009}
TIMES = 12
OTHERS = """tests/classes/case_adamw.py tests/classes/case_generate.py tests/classes/case_sgd_resnet.py
tests/classes/case_amp.py tests/classes/case_meta.py tests/classes/case_lora.py tests/classes/case_cuda_graph.py
tests/classes/case_checkpoint.py tests/classes/case_gan.py tests/classes/case_diffusion.py""".split()


def programs():
    return sorted((ROOT / "tests/replay/programs").glob("*.py")) + [ROOT / p for p in OTHERS]


def settings(name):
    return [s.format(fraction=FRACTIONS.get(name, CARDS.get(name, (0, 0.02))[1])) for s in SETTINGS]


def record(program, out, conf, python=ROOT / ".venv/bin/python"):
    """Runs the program with the setting; what was reserved after each of its requests."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'tests/classes'}:{os.environ.get('PYTHONPATH', '')}", "GPUMEMTRACE_QUIET": "1",
           "TRUTH": str(out.parent / "truth.%r")}
    env.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    if conf:
        env["PYTORCH_CUDA_ALLOC_CONF"] = conf
    card = CARDS.get(Path(program).stem, ("h100-80g",))[0]
    done, recordings = Forks.of([TOOL, "run", "--sim", card, "-o", OUTPUT, "--", python], env, program).run([program], out.parent, env)
    if done.returncode:
        raise SystemExit(f"{program} with {conf!r}: {done.stderr[-2000:]}")
    shutil.move(recordings[0], out)
    return reserved(out)


def asked(levels):
    """What was asked, in order. Frees with no allocation between them leave the same cache in any order: autocast clears its
    cache by addresses of the host."""
    out, frees = [], []
    for what, _ in levels:
        if what[0] == "block_free":
            frees.append(what)
        else:
            out += [*sorted(frees, key=str), what]
            frees = []
    return out + sorted(frees, key=str)


def record_as(first, program, out, conf, python):
    """The same, until the requests are those of the first run, in its order."""
    for _ in range(TIMES):
        levels = record(program, out, conf, python)
        if asked(levels) == asked(first):
            break
    return levels


def reserved(recording):
    """Of each request: what it was, and what was reserved after it."""
    lines = subprocess.run([TOOL, "dump", recording, "--json"], capture_output=True, text=True, check=True).stdout
    events = (json.loads(line) for line in lines.splitlines() if '"kind":"block_' in line)
    born, levels = {}, []
    for number, event in enumerate(e for e in events if e["device"] == 0):
        which = number
        if event["kind"] == "block_free":
            which = born.pop(event["addr"], None)
        elif event["kind"] == "block_alloc":
            born[event["addr"]] = number
        levels.append(((event["kind"], which, event["thread"]), event["arg1"]))
    return levels


def replayed(recording, confs, curve):
    """JSON of the replay, and for each setting what is reserved after each request."""
    curve.unlink(missing_ok=True)
    args = [a for c in confs for a in ("--alloc-conf", c)]
    done = subprocess.run([TOOL, "replay", recording, *args, "--device", "0", "--curve", curve, "--json"],
                          capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    with open(curve, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    curves = []
    for column in range(1, len(confs) + 1):
        levels = []
        for row, after in zip(rows, rows[1:] + [[answer["requests"]]]):
            levels += [int(row[column])] * (int(after[0]) - int(row[0]))
        curves.append(levels)
    return answer, curves


def compare(program, folder, confs, python=ROOT / ".venv/bin/python"):
    """For each setting: requests after which the two agree, requests, real and replayed peak."""
    base = folder / "default.gmt"
    first = record(program, base, None, python)
    answer, curves = replayed(base, ["default", *confs], folder / "curve.csv")
    for conf, curve in zip(["default", *confs], curves):
        real = first if conf == "default" else record_as(first, program, folder / "other.gmt", conf, python)
        same = asked(real) == asked(first)
        agree = sum(r == m for (_, r), m in zip(real, curve)) if same else 0
        yield conf, agree, len(real), max(r for _, r in real), max(curve), same


def cell(agree, count, real, model, same):
    if not same:
        return "other requests"
    if agree == count:
        return "all"
    return f"{agree / count:.1%}, peak {(model - real) / real:+.1%}"


def table(chosen):
    names = ["default", *(re.sub(r",per_process.*", "", s) for s in SETTINGS)]
    yield f"| Program | requests | {' | '.join(f'`{n}`' for n in names)} |"
    yield "| --- |" + " ---: |" * (len(names) + 1)
    for program in chosen:
        with tempfile.TemporaryDirectory() as place:
            rows = list(compare(program, Path(place), settings(program.stem)))
        line = f"| {program.stem} | {rows[0][2]} | {' | '.join(cell(*r[1:]) for r in rows)} |"
        print(line, file=sys.stderr, flush=True)
        yield line


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--table", type=Path)
    options.add_argument("programs", nargs="*", type=Path)
    options = options.parse_args()
    lines = "\n".join(table([p.resolve() for p in options.programs] or programs()))
    if options.table:
        text = options.table.read_text(encoding="utf-8")
        head, rest = text.split("<!-- table -->\n")
        tail = rest.split("<!-- end of table -->\n")[1]
        options.table.write_text(f"{head}<!-- table -->\n{lines}\n<!-- end of table -->\n{tail}", encoding="utf-8")
    else:
        print(lines)


if __name__ == "__main__":
    main()
