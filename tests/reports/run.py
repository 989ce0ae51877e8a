# SPDX-License-Identifier: Apache-2.0
"""Answers about programs after public reports (../shared/reports; skipped where they are not there): each is run as it was, on a card
on which its memory runs out, and once more with the change that helped, and the answers are compared with answers.py.

Usage: .venv/bin/python tests/reports/run.py FOLDER [NAME...] [--write docs/conclusions.md]

Exit code 1: something that must not be said was said."""
import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from answers import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT.parent / "shared/reports"
TOOL = str(Path(os.environ.get("GPUMEMTRACE_TEST_BUILD", ROOT / "build")) / "gpumemtrace")
LARGE = "h100-80g"
PASSING = {"activations", "inputs", "forward_temporaries", "backward_temporaries", "kv_cache"}  # weights and state are always older
BEGIN, END = "<!-- reports -->", "<!-- end of reports -->"


def record(script, path, card, ranks=1):
    """The recording of a run; of several ranks a folder of all, or, for a file, that of the first that wrote its own (torchrun ends the others)."""
    if path.exists():
        return path
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    new = path.parent / f"{path.stem}.r%r.new.gmt" if ranks > 1 else path.with_suffix(".new.gmt")
    work = path.parent / f"work.{path.stem}"
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run([TOOL, "run", "-q", "--sim", f"{card},{abs(ranks)}", "-o", new, "--", sys.executable, *launch, script],
                   env=env, cwd=work, capture_output=True, text=True, timeout=600)
    written = sorted(path.parent.glob(f"{path.stem}.*new.gmt"))
    if path.suffix == ".gmt":
        return written[0].rename(path)
    path.mkdir()
    for i, file in enumerate(written):
        file.rename(path / f"{i}.gmt")
    return path


def tool(*args):
    return subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True).stdout


def place(row):
    return f"{row['function']} {Path(row['file']).name}:{row['line']}"


def oom_words(path):
    doc = json.loads(tool("oom", path, "--json"))
    if "cause" not in doc:
        return "no refusal"
    lines = [f"cause: {doc['cause']}; step: {doc['step']}; {doc['text']}"]
    lines += [f"{h['class']} {place(h)} {'older' if h['class'] in PASSING and h['earlier_bytes'] > doc['allocated_bytes'] / 100 else ''}" for h in doc["holders"]]
    lines += [f"remedy {r['name']} {r['saves_bytes'] >> 20} MiB: {r['what']} {r['how_known']}" for r in doc["remedies"]]
    return "\n".join(lines)


def words(command, files):
    """What a command says, one sentence behind the other."""
    if command == "oom":
        return oom_words(files["small"])
    of = [files["fixed"], files["broken"]] if command == "diff" else [files["broken"]]
    return " ".join(tool(command, "--no-pager", *of).split())


def recordings(program, folder):
    name, needed = program.name, {a.command for a in program.answers}
    files = {}
    if "oom" in needed:
        files["small"] = record(REPORTS / name / "broken.py", folder / f"{name}.small.gmt", f"mine={program.card}", program.ranks)
    if needed - {"oom"}:
        files["broken"] = record(REPORTS / name / "broken.py", folder / (f"{name}.broken" + ".gmt" * (program.ranks <= 1)), LARGE, program.ranks)
    if "diff" in needed:
        files["fixed"] = record(REPORTS / name / "fixed.py", folder / f"{name}.fixed.gmt", LARGE, program.ranks)
    return files


def compare(answer, said):
    """(silent on, false): expressions that are missing, and those that must not be there."""
    silent = [x for x in answer.says if not re.search(x, said, re.S)]
    return silent, [x for x in answer.never if re.search(x, said)]


def judge(program, folder):
    files = recordings(program, folder)
    return [(program, a, *compare(a, words(a.command, files))) for a in program.answers]


def verdict(silent, false):
    return "false" if false else "silent" if silent else "right"


def table(rows):
    found = [verdict(s, f) for _, _, s, f in rows]
    text = f"{found.count('right')} of {len(rows)} answers are right, {found.count('silent')} leave out what helped, {found.count('false')} say something false.\n\n"
    text += "| program | what happens | command | answer |\n|---|---|---|---|\n"
    return text + "".join(f"| {p.name} | {p.what} | `{a.command}` | {v} |\n" for (p, a, _, _), v in zip(rows, found))


def write(page, rows):
    text = page.read_text()
    page.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{table(rows)}\n{END}", text, flags=re.S))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder", type=Path)
    args.add_argument("names", nargs="*")
    args.add_argument("--write", type=Path)
    args = args.parse_args()
    if not REPORTS.is_dir():
        print(f"{REPORTS} is not there: nothing is compared")
        return 0
    args.folder.mkdir(parents=True, exist_ok=True)
    programs = [p for p in PROGRAMS if not args.names or p.name in args.names]
    with ThreadPoolExecutor(2) as pool:
        rows = [row for found in pool.map(lambda p: judge(p, args.folder.resolve()), programs) for row in found]
    for program, answer, silent, false in rows:
        print(f"{verdict(silent, false):6} {program.name} {answer.command}", *[f"lacks {x!r}" for x in silent], *[f"SAYS {x!r}" for x in false])
    print(table(rows).split("\n", 1)[0])
    if args.write:
        write(args.write, rows)
    return any(false for *_, false in rows)


if __name__ == "__main__":
    sys.exit(main())
