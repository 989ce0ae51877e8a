# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/fit.md: verdicts of `gpumemtrace fit` against the same programs run to their end (judge.py), on cards of
0.75, 0.9 and 1.1 times what each needs; for those of cases.py also close to it, and what static estimators make of them.

Each run adds a line of JSON to ROWS.jsonl, and what is there is not run again: verdicts of the same tool, truth of any. --table
says which tables, --write puts them into docs/fit.md. Exit code 1 if a verdict of --table verdicts is wrong.

Usage: .venv/bin/python tests/fit/table.py ROWS.jsonl [--table verdicts|close|errors]... [--tool PATH] [--jobs N] [--write] [PROGRAM]..."""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import sys
import threading
from pathlib import Path

from judge import CONTEXT, FACTORS, LARGE, MIB, ROOT, TOOL, ask, card, is_right, programs, run, truth


class Rows:
    """What is known of each program, by the name of the figure; kept in a file as it comes."""

    def __init__(self, path):
        self.path, self.lock, self.known = Path(path), threading.Lock(), collections.defaultdict(dict)
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            name, figure, value = json.loads(line)
            self.known[name][figure] = value

    def get(self, program, figure, make):
        with self.lock:
            if figure in self.known[program.name]:
                return self.known[program.name][figure]
        value = make()
        with self.lock, self.path.open("a") as f:
            f.write(json.dumps([program.name, figure, value]) + "\n")
        self.known[program.name][figure] = value
        print(program.name, figure, value, flush=True)
        return value


class Judge:
    """Measures one program after the other, and keeps what came of it."""

    def __init__(self, rows, tool):
        self.rows, self.tool = rows, tool
        self.build = hashlib.sha256(Path(tool).read_bytes()).hexdigest()[:12]

    def need(self, p):
        def make():
            end = run(p, LARGE)
            return dict(need=end.device, **end.counted)
        return self.rows.get(p, "need", make)

    def end(self, p, size):
        return self.rows.get(p, f"end {size}", lambda: truth(p, run(p, card(size))))

    def said(self, p, size):
        def make():
            said = ask(self.tool, p, card(size))
            return dict(verdict=said.verdict, to_end=said.to_end, seconds=said.seconds, rising=said.card.get("rising_bytes", 0),
                        steps=said.card.get("steps"), error=said.card.get("error", "")[:200])
        return self.rows.get(p, f"said {size} by {self.build}", make)

    def cell(self, p, size):
        """What is said, whether that is right, and how it really ends."""
        end, said = self.end(p, size), self.said(p, size)
        return said, is_right(p, end, said["verdict"], said["to_end"]), end

    def verdicts(self, p):
        need = self.need(p)["need"]
        return [self.cell(p, round(need * f / MIB) * MIB) for f in FACTORS]

    def close(self, p):
        known = self.need(p)
        return [self.cell(p, size) for size in (known["need"] + MIB, known["need"] - MIB, CONTEXT + known["allocated"] - MIB)]

    def errors(self, p):
        fitted = self.rows.get(p, f"peak by {self.build}", lambda: ask(self.tool, p, LARGE).card["peak_bytes"])
        return fitted, self.rows.get(p, "estimates", lambda: run(p, LARGE, "--estimate").counted)


WORDS = {"fits": "runs to its end", "does not fit": "is refused", "failed": "fails"}


def words(cell):
    said, right, end = cell
    if right:
        return end if said["verdict"] == end else f"{said['verdict']} (the run {WORDS[end]})"
    return f"**{said['verdict']}** (the run {WORDS[end]})"


def mib(n):
    return f"{n / MIB:.0f} MiB"


def rate(rows):
    cells = [cell for _, row in rows for cell in row]
    yes = sum(said["verdict"] == "fits" and end != "fits" for said, _, end in cells)
    yield f"{len(rows)} programs, {len(cells)} verdicts: {sum(right for _, right, _ in cells)} are right. \"fits\" where the run fails or is refused: {yes}."
    yield ""


def verdicts(judge, rows):
    yield from rate(rows)
    yield "| Program | Kind | Need | 0.75 | 0.9 | 1.1 |"
    yield "| --- | --- | ---: | --- | --- | --- |"
    for p, row in rows:
        yield f"| {p.name} | {p.kind} | {mib(judge.need(p)['need'])} | {' | '.join(map(words, row))} |"


def close(judge, rows):
    yield from rate(rows)
    yield "| Program | Allocated | Reserved | Need | need + 1 MiB | need - 1 MiB | allocated - 1 MiB |"
    yield "| --- | ---: | ---: | ---: | --- | --- | --- |"
    for p, row in rows:
        known = judge.need(p)
        yield f"| {p.name} | {mib(known['allocated'])} | {mib(known['reserved'])} | {mib(known['need'])} | {' | '.join(map(words, row))} |"


def percent(estimate, truth):
    return "" if estimate is None else f"{100 * (estimate - truth) / truth:+.0f} %"


def errors(judge, rows):
    names = ["accelerate", "16 bytes", "deepspeed", "memtracker"]
    yield "| Program | PyTorch allocated | `fit` | accelerate | 16 bytes a parameter | DeepSpeed | MemTracker |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    off = {n: [] for n in ["fit", *names]}
    for p, (fitted, estimates) in rows:
        known = judge.need(p)["allocated"]
        said = {"fit": fitted, **estimates}
        yield f"| {p.name} | {mib(known)} | {' | '.join(percent(said.get(n), known) for n in off)} |"
        for n in off:
            off[n] += [abs(said[n] - known) / known] if n in said else []
    yield f"| mean error | | {' | '.join(f'{100 * sum(x) / len(x):.1f} % of {len(x)}' if x else '' for x in off.values())} |"


TABLES = {"verdicts": verdicts, "close": close, "errors": errors}


def write(name, lines):
    page = ROOT / "docs/fit.md"
    text = page.read_text()
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    page.write_text(text[:text.index(begin) + len(begin)] + "\n".join(lines) + "\n" + text[text.index(end):])


def table(judge, name, chosen, jobs):
    """Its rows; a program that cannot be measured is said, and left out."""
    def row(p):
        try:
            return p, getattr(judge, name)(p)
        except Exception as error:
            print(p.name, "could not be measured:", repr(error)[-1500:], file=sys.stderr, flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [r for r in pool.map(row, [p for p in chosen if name == "verdicts" or p.kind == "training"]) if r]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("rows")
    options.add_argument("programs", nargs="*")
    options.add_argument("--table", action="append", choices=TABLES)
    options.add_argument("--tool", default=TOOL)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--write", action="store_true")
    o = options.parse_args()
    judge, every = Judge(Rows(o.rows), o.tool), programs()
    wrong = 0
    for name in o.table or TABLES:
        rows = table(judge, name, [every[n] for n in o.programs] or every.values(), o.jobs)
        lines = list(TABLES[name](judge, rows))
        print("\n".join(lines))
        wrong += sum(not right for _, row in rows for _, right, _ in row) if name != "errors" else 0
        if o.write:
            write(name, lines)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
