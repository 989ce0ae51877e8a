# SPDX-License-Identifier: Apache-2.0
"""What `advise` promises beside what the same program needs with the advice followed, on the simulated device: the table of
docs/advise.md. Usage: table.py [cases|others|more|never|NAME...] [--write]"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from forks import OUTPUT, Forks  # noqa: E402

TOOL = str(ROOT / "build/gpumemtrace")
FRAMEWORKS = str(ROOT / ".venv-frameworks/bin/python")
FILES = {"cases": sys.executable, "others": FRAMEWORKS, "more": FRAMEWORKS, "never": FRAMEWORKS}
PAGE = ROOT / "docs/advise.md"
MIB = 2**20


def names(file):
    return re.findall(r'^@case\("(\w+)"\)\ndef (\w+)', (HERE / f"{file}.py").read_text(), re.M)


def record(path, file, name, *after, allocator=None, devices=1):
    command, program = [TOOL, "run", "-q", "--sim", f"h100-80g,{devices}"], [HERE / f"{file}.py", name, *after]
    env = {**os.environ, **({"PYTORCH_CUDA_ALLOC_CONF": allocator} if allocator else {})}
    if devices > 1:  # a recording of each rank
        subprocess.run([*command, "-o", path, "--", FILES[file], *program], check=True, capture_output=True, text=True, env=env)
    else:
        Forks.of([*command, "-o", OUTPUT, "--", FILES[file]], env, program[0]).record(path, program, Path(path).parent, env)
    return str(path)


def ask(*arguments):
    return json.loads(subprocess.run([TOOL, *arguments, "--json"], check=True, capture_output=True, text=True).stdout)


def judge(file, kind, name, folder):
    """The finding, and by how much the edited program's peak is really lower."""
    devices = 2 if kind == "shard_state" else 1  # a rank on each
    before = ask("advise", record(Path(folder) / f"{name}.gmt", file, name, devices=devices), "--top", "0")
    finding = next((f for f in before["findings"] if f["kind"] == kind), None)
    allocator = finding and finding["kind"] == "allocator" and re.search(r"ALLOC_CONF=(\S+):? ", finding["what"])[1].rstrip(":")
    after = ask("advise", record(Path(folder) / f"{name}.after.gmt", file, name, "after", allocator=allocator, devices=devices))
    of = "peak_reserved_bytes" if finding and finding["of"] == "reserved" else "peak_bytes"
    return before, finding, before[of] - after[of]


def row(kind, name, before, finding, measured):
    if not finding:
        return f"| {name} | {kind} | {before['peak_bytes'] / MIB:.0f} MiB | not found | {measured / MIB:.1f} MiB | |"
    low, high = finding["least_bytes"], finding["saves_bytes"]
    promised = f"{high / MIB:.1f} MiB" if low == high else f"{low / MIB:.1f} to {high / MIB:.1f} MiB"
    off = max(low - measured, measured - high, 0) / before["peak_bytes"]
    return f"| {name} | {kind} | {before['peak_bytes'] / MIB:.0f} MiB | {promised} | {measured / MIB:.1f} MiB | {off:.1%} |"


def row_of_none(file, kind, name, folder):
    """A program in which that kind would be wrong."""
    answer = ask("advise", record(Path(folder) / f"{name}.gmt", file, name, devices=2 if kind == "shard_state" else 1), "--top", "0")
    found = [f for f in answer["findings"] if f["kind"] == kind]
    says = f"**{found[0]['saves_bytes'] / MIB:.1f} MiB: {found[0]['what']}**" if found else "no"
    return f"| {name} | {kind} | {answer['peak_bytes'] / MIB:.0f} MiB | {says} |"


HEADS = {"never": "| Program | Finding that would be wrong | Peak | Found |\n| --- | --- | ---: | --- |"}


def write(file, rows):
    """The rows of a file between its marks on the page."""
    text = PAGE.read_text()
    begin, end = f"<!-- {file} -->", f"<!-- end of {file} -->"
    head = HEADS.get(file, "| Program | Finding followed | Peak | Predicted | Measured | Off by |\n| --- | --- | ---: | ---: | ---: | ---: |")
    PAGE.write_text(text[:text.index(begin)] + "\n".join([begin, head, *rows]) + "\n" + text[text.index(end):])


def main():
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        for file in FILES:
            rows = []
            for kind, name in names(file):
                if chosen and name not in chosen and file not in chosen:
                    continue
                try:
                    rows.append(row_of_none(file, kind, name, folder) if file in HEADS else row(kind, name, *judge(file, kind, name, folder)))
                except subprocess.CalledProcessError as error:
                    print(name, error.stderr[-600:], file=sys.stderr)
                    continue
                print(rows[-1], flush=True)
            if "--write" in sys.argv and rows:
                write(file, rows)


if __name__ == "__main__":
    main()
