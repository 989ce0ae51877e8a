# SPDX-License-Identifier: Apache-2.0
"""Output that a document shows, beside that of a run."""
import re

from conftest import ROOT
import lint_names


def blocks(page, language=""):
    return [text for _, of, text in lint_names.pieces((ROOT / page).read_text()) if of == language]


def parts(block):
    """Each command of a block, with the lines that are shown below it."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def without_figures(line):
    """A line of which figures, commits, units and spaces vary from run to run."""
    line = re.sub(r"\b(?=[a-f]*\d)[0-9a-f]{7,40}\b", "0", line)  # a commit
    return " ".join(re.sub(r"\b[KMGT]iB\b", "B", re.sub(r"\d[\d,.:]*", "0", line)).split())


def without_time(line):
    """A line that is the same but for times, addresses, the commit and how many events there are."""
    line = re.sub(r"\b0x[0-9a-f]+", "0x0", line)
    line = re.sub(r"[\d.]+ (m?s)\b", r"0 \1", re.sub(r"commit \S+( changed)?", "commit 0", line))
    return re.sub(r"\(\d+\)|[\d,]+ events", "0 events", line).rstrip()


def difference(shown, said, same=without_figures):
    """None if all shown lines are printed, one behind the other; `...` stands for any lines."""
    shown, said = [same(line) for line in shown], [same(line) for line in "\n".join(said.splitlines()).strip("\n").split("\n")]
    while shown and not shown[-1]:
        shown.pop()
    at, skipped = 0, False
    for line in shown:
        if line == "...":
            skipped = True
            continue
        while skipped and at < len(said) and said[at] != line:
            at += 1
        if at >= len(said) or said[at] != line:
            return f"shown: {line!r}; printed: {said[at] if at < len(said) else 'no more'!r}"
        at, skipped = at + 1, False
    return None if skipped or at == len(said) else f"not shown: {said[at]!r}"
