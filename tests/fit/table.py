# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of docs/fit.md: verdicts of `gpumemtrace fit` and the ends of the same programs (verdict.py) on cards with 0.75, 0.9 and
1.1 times the memory that each needs; for the programs of cases.py also with 1 MiB more and less, and the errors of static estimators.

Each run adds a line of JSON to ROWS.jsonl and is not repeated. Verdicts count for one build of the tool, known by its hash. --write puts
the tables into docs/fit.md. Exit code 1 if a verdict is wrong.

Usage: .venv/bin/python tests/fit/table.py ROWS.jsonl [--table verdicts|close|errors]... [--tool PATH] [--jobs N] [--write] [PROGRAM]..."""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from verdict import CONTEXT, FACTORS, LARGE, MIB, ROOT, TOOL, Said, answer, ask, card, is_right, programs, run, truth


class Rows:
    """Figures of each program by name, each appended to the file when it is known."""

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
    """Measures one program, unless ROWS.jsonl has the figures."""

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
        return Said(**self.rows.get(p, f"said {size} by {self.build}", lambda: asdict(ask(self.tool, p, card(size)))))

    def cell(self, p, size):
        """The verdict, whether it is right, and the end of the run."""
        end, said = self.end(p, size), self.said(p, size)
        return said, is_right(p, end, said), end

    def verdicts(self, p):
        need = self.need(p)["need"]
        return [self.cell(p, round(need * f / MIB) * MIB) for f in FACTORS]

    def close(self, p):
        known = self.need(p)
        return [self.cell(p, size) for size in (known["need"] + MIB, known["need"] - MIB, CONTEXT + known["allocated"] - MIB)]

    def errors(self, p):
        fitted = self.rows.get(p, f"peak by {self.build}", lambda: answer(self.tool, p, LARGE)[0]["peak_bytes"])
        return fitted, self.rows.get(p, "estimates", lambda: run(p, LARGE, "--estimate").counted)


WORDS = {"fits": "runs to its end", "does not fit": "runs out of memory", "failed": "fails"}


def words(cell):
    said, right, end = cell
    if said.verdict == end and right:
        return end
    return f"{said.verdict if right else f'**{said.verdict}**'} (the run {WORDS[end]})"


def mib(n):
    return f"{n / MIB:.0f} MiB"


def rate(rows):
    cells = [cell for _, row in rows for cell in row]
    yes = sum(said.verdict == "fits" != end for said, _, end in cells)
    yield (f"{sum(right for _, right, _ in cells)} of {len(cells)} verdicts on {len(rows)} programs are right. "
           f"{yes} say \"fits\" where the program fails or runs out of memory.")
    yield f"In {sum(not said.to_end for said, _, _ in cells)} runs `fit` ended the program before its own end."
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
    """The rows of a table, without programs that cannot be measured."""
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
