# SPDX-License-Identifier: Apache-2.0
"""docs/accuracy.md, the sentence of README and the constant that `fit` prints, from rows.py and results.json."""
import hashlib
import json
import re
import statistics
import subprocess
from pathlib import Path

from rows import CAUSES, ROWS, UNITS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE, README, CONSTANT = ROOT / "docs/accuracy.md", ROOT / "README.md", ROOT / "python/gpumemtrace/search/search_text.py"
MISS = 0.01  # above it a row names its cause


def results():
    path = HERE / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def version():
    return re.search(r"[\d.]+", (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1])[0]


def commit():
    return subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True).stdout.strip()


def digest(row):
    """Of what a result depends on besides this project: the program at its commit, its arguments and environment, its packages."""
    packages = (ROOT / f"tests/requirements/{row.venv or row.source.environment}.txt").read_text()
    of = row.source.commit, row.command, row.simulated or row.source.simulated, packages, *row.environment.items(), *filter(None, [row.ranks])
    return hashlib.sha256(repr(of).encode()).hexdigest()[:12]


def is_new(row, result):
    """Was it measured with this version, and with the row as it is?"""
    return bool(result) and result["version"] == version() and result["row"] == digest(row)


def off(row, result):
    return result["ours"] / row.figure - 1


def difference(row, result):
    return f"{100 * off(row, result):+.2f} %"


def measured():
    found = results()
    return [(row, found[name]) for name, row in ROWS.items() if is_new(row, found.get(name))]


def figures():
    """Rows that were run, the median of their differences, how many are within 1 % and 5 %."""
    every = [abs(off(*pair)) for pair in measured()]
    return {"runs": len(every), "median": f"{100 * statistics.median(every):.2f} %", "rows": len(ROWS),
            "within 1": sum(x <= 0.01 for x in every), "within 5": sum(x <= 0.05 for x in every)}


def first_try():
    """Figures that were chosen before anything was run, run once, and never tuned: no later version changes them."""
    return json.loads((HERE / "first_try.json").read_text())


def sentence():
    f = first_try()
    return f"Of {f['figures']} published figures that were new to it, half came out within {f['median']} and {f['within 1']} within 1 %"


def digits(row):
    return f"{row.figure:g}".partition(".")[2]


def table():
    yield "| Row | Program | Published by | Card, PyTorch then | PyTorch here | Figure | Published | Here | Difference | Time | Host memory |"
    yield "| --- | --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"
    found = results()
    for name, row in ROWS.items():
        result, s = found.get(name), row.source
        where = f"| {name} | {row.program} | [{s.title}](https://github.com/{s.repository}/tree/{s.commit[:12]}), {s.date} | {s.card}, {s.torch} |"
        published = f"{s.measure} | {row.figure:g} {row.unit}"
        if not is_new(row, result):
            yield f"{where} | {published} | not run | | | |"
            continue
        ours = f"{result['ours']:.{max(2, len(digits(row)))}f}"
        yield (f"{where} {result['torch'].partition('+')[0]} | {published} | {ours} | {difference(row, result)} | {result['seconds']} s | "
               f"{result['host'] / 2**30:.1f} GiB |")


def causes():
    missed = [(row, result) for row, result in measured() if abs(off(row, result)) > MISS]
    if not missed:
        return
    yield "| Row | Difference | Cause |"
    yield "| --- | ---: | --- |"
    for row, result in missed:
        yield f"| {row.name} | {difference(row, result)} | {CAUSES.get(row.name, 'not known')} |"


def summary():
    f = figures()
    yield (f"{f['runs']} of {f['rows']} rows were run with version {version()}: half of them are within {f['median']}, {f['within 1']} within 1 %, "
           f"{f['within 5']} within 5 %.")


def first_summary():
    f = first_try()
    shown = [abs(r["ours"] / r["published"] - 1) for r in f["rows"]]
    programs = {r["program"] for r in f["rows"]}
    yield (f"{f['figures']} figures were chosen before any of them was run, and run once, with commit {f['version']} and nothing tuned: half of them are within "
           f"{f['median']}, {f['within 1']} within 1 %, {f['within 5']} within 5 %. {len(shown)} of them, of {len(programs)} programs, follow; half of these are within "
           f"{100 * statistics.median(shown):.2f} %. The others are not shown, so that they stay new.")


def first_table():
    yield "| Program | | Card | Published | Here | Difference |"
    yield "| --- | --- | --- | ---: | ---: | ---: |"
    for r in first_try()["rows"]:
        yield f"| {r['program']} | {r['what']} | {r['card']} | {r['published']:g} {r['unit']} | {r['ours']:g} | {100 * (r['ours'] / r['published'] - 1):+.2f} % |"


PARTS = {"first try": first_summary, "first table": first_table, "summary": summary, "table": table, "causes": causes}


def filled(text):
    for name, lines in PARTS.items():
        text = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", lambda m: m[1] + "".join(line + "\n" for line in lines()) + m[2], text, flags=re.S)
    return text


def with_sentence(text):
    return re.sub(r"(<!-- accuracy -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}{sentence()}, on simulated cards: [the figures](docs/accuracy.md).\n{m[2]}", text,
                  count=1, flags=re.S)


def with_constant(text):
    return re.sub(r"^ACCURACY = .*$", f'ACCURACY = "{sentence()}."  # written by tests/cards/page.py', text, flags=re.M)


def write():
    for path, text in ((PAGE, filled(PAGE.read_text())), (README, with_sentence(README.read_text())), (CONSTANT, with_constant(CONSTANT.read_text()))):
        path.write_text(text)
