# SPDX-License-Identifier: Apache-2.0
"""run.py [--write FILE] [--only NAME]... [FOLDER]: uses_judge.py over the programs of tests/bench and tests/classes that use one device, and of a
folder of programs after public reports (FOLDER/NAME.py, FOLDER/NAME/broken.py) if one is given. --write: the table of docs/uses.md, between its
marks."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import uses_judge as judge

HERE = Path(__file__).resolve().parent
MARKS = "<!-- named -->", "<!-- end -->"


def programs(folder):
    """Name and command of each."""
    for model in ("gpt2", "qwen2", "resnet50", "experts"):
        yield f"bench/{model}", [str(HERE.parent / "bench/training.py"), model, "2"]
    for path in sorted((HERE.parent / "classes").glob("case_*.py")):
        if not re.search(r"^# devices: [2-9]", path.read_text(), re.M):
            yield "classes/" + path.stem[len("case_"):], [str(path)]
    if folder:
        for path in sorted([*Path(folder).glob("*.py"), *Path(folder).glob("*/broken.py")]):
            yield "reports/" + (path.stem if path.parent == Path(folder) else path.parent.name), [str(path)]


def row(name, command):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRUTH"] = str(Path(folder) / "truth")
        try:
            total, missed, _ = judge.judge(*judge.record(command, Path(folder), "h100-80g"))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {str(error)[-300:]}", file=sys.stderr)
            return None
    what = ", ".join(f"{w} ({n})" for w, n in missed.most_common(2) if not w.startswith("last use"))
    print(f"{name:<32} {total['named']:>6} of {total['tensors']:>6}  {what}", file=sys.stderr, flush=True)
    return total, f"| {name} | {total['launches']:,} | {total['unread']:,} | {total['tensors']:,} | {total['named']:,} | " \
                  f"{total['last uses as said']:,} of {total['last uses']:,} | {total['beside']:,} | {what} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("folder", nargs="?")
    options = parser.parse_args()
    rows = [r for name, command in programs(options.folder) if not options.only or name in options.only for r in [row(name, command)] if r]
    tensors, named = (sum(t[key] for t, _ in rows) for key in ("tensors", "named"))
    text = "\n".join([MARKS[0], f"{named:,} of {tensors:,} tensors ({100 * named / max(1, tensors):.3f} %) in {len(rows)} programs.", "",
                      "| program | launches | not read | tensors of operators | named | last use as operators say | blocks beside | not named |",
                      "|---|---:|---:|---:|---:|---:|---:|---|", *(line for _, line in rows), MARKS[1]])
    if not options.write:
        print(text)
        return
    page = Path(options.write)
    before, rest = page.read_text().split(MARKS[0], 1)
    new = page.with_suffix(".new")
    new.write_text(before + text + rest.split(MARKS[1], 1)[1])
    new.rename(page)


if __name__ == "__main__":
    main()
