# SPDX-License-Identifier: Apache-2.0
"""docs/accuracy.md, the sentence of README and those that `fit` prints, from first_try.json, rows.py and results.json."""
import hashlib
import json
import re
import statistics
import subprocess
from pathlib import Path

from chosen import CHOSEN, WHY
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


def tried():
    """Rows of chosen.py that were run, by name."""
    return {r["name"]: r for r in first_try()["rows"] if "name" in r}


def keep_try(row, measured):
    """A figure is kept once; what the row says today is kept beside it."""
    every = first_try()
    assert row.name not in tried(), f"{row.name} has a figure"
    program, _, what = row.program.rpartition(": ")
    every["rows"].append({"name": row.name, "program": program, "what": what, "card": f"{row.source.card}, PyTorch {row.source.torch}", "published": row.figure,
                          "ours": measured["ours"], "unit": row.unit, "kind": row.kind, "of": list(row.of), "date": measured["date"], "commit": measured["commit"],
                          "torch": measured["torch"].partition("+")[0], "seconds": measured["seconds"]})
    head = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in every.items() if k != "rows")
    (HERE / "first_try.json").write_text("{" + head + ', "rows": [\n ' + ",\n ".join(json.dumps(r) for r in every["rows"]) + "\n]}\n")


def away(row):
    return abs(row["ours"] / row["published"] - 1)


def percent(x):
    return f"{100 * x:.2f} %"


def by_program(rows):
    """The median of each program's differences."""
    found = {}
    for row in rows:
        found.setdefault(row["program"], []).append(away(row))
    return {program: statistics.median(every) for program, every in found.items()}


def within(rows, limit=MISS):
    return f"{100 * sum(away(row) <= limit for row in rows) / len(rows):.0f} %"


def latest():
    """Rows of chosen.py; of the first lot only some are shown, so that it has no median by program."""
    return [row for row in first_try()["rows"] if "name" in row]


def sentence():
    f, rows = first_try(), latest()
    near = round(f["figures"] * int(f["within 1"].split()[0]) / 100) + sum(away(row) <= MISS for row in rows)
    return (f"Of {f['figures'] + len(rows)} published figures that were new to it, {100 * near / (f['figures'] + len(rows)):.0f} % came out within 1 %, and half of the latest "
            f"{len(rows)}, of {len(by_program(rows))} programs, within {percent(statistics.median(map(away, rows)))}")


KINDS = {"convolutions": "convolutions", "compiled": "compiled kernels", "ranks": "several ranks"}
FEWEST = 3  # programs of which a sentence is said


def said(of):
    return " and ".join(KINDS[word] for word in of) or "matrix products alone"


def like():
    """For each mixture that enough programs have: what `fit` says of a program that is made of the same."""
    found = {}
    for row in first_try()["rows"]:
        found.setdefault(tuple(word for word in KINDS if word in row["of"]), []).append(row)
    return {" ".join(of): f"Of {len(rows)} published figures of {len(by_program(rows))} programs like this one ({said(of)}), half came out at first try within "
                          f"{percent(statistics.median(map(away, rows)))} and {within(rows)} within 1 %."
            for of, rows in sorted(found.items()) if len(by_program(rows)) >= FEWEST}


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
    f, rows = first_try(), latest()
    shown = [row for row in f["rows"] if "name" not in row]
    yield (f"{f['figures']} figures were chosen before any of them was run, and run once, with commit {f['version']} and nothing tuned: half of them are within "
           f"{f['median']}, {f['within 1']} within 1 %, {f['within 5']} within 5 %. {len(shown)} of them, of {len(by_program(shown))} programs, follow; half of these are within "
           f"{percent(statistics.median(map(away, shown)))}. The others are not shown, so that they stay new.")
    yield ""
    yield (f"Then {len(CHOSEN)} figures of {len({row.program.rpartition(': ')[0] for row in CHOSEN.values()})} programs were [chosen](../tests/cards/chosen.py). "
           f"{len(rows)} of them, of {len(by_program(rows))} programs, were run since: half of these are within {percent(statistics.median(map(away, rows)))}, {within(rows)} within 1 %, "
           f"{within(rows, 0.05)} within 5 %.")


def split_table():
    """Of all rows that are shown; a program's figure is the median of its rows."""
    every = first_try()["rows"]
    groups = [("all", every), ("matrix products alone", [r for r in every if not r["of"]]),
              *((name, [r for r in every if word in r["of"]]) for word, name in KINDS.items()),
              *((f"{kind} memory", [r for r in every if r["kind"] == kind]) for kind in ("allocated", "reserved"))]
    yield "| Programs with | Programs | Median by program | Figures | Median | Within 1 % | Within 5 % |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, rows in groups:
        programs = by_program(rows)
        if programs:
            yield (f"| {name} | {len(programs)} | {percent(statistics.median(programs.values()))} | {len(rows)} | {percent(statistics.median(map(away, rows)))} | {within(rows)} | "
                   f"{within(rows, 0.05)} |")


def first_table():
    yield "| Program | | Made of | Card | Figure | Published | Here | Difference | Run |"
    yield "| --- | --- | --- | --- | --- | ---: | ---: | ---: | --- |"
    for r in first_try()["rows"]:
        made = ", ".join(KINDS[word] for word in r["of"])
        yield (f"| {r['program']} | {r['what']} | {made} | {r['card']} | {r['kind']} | {r['published']:.10g} {r['unit']} | {r['ours']:.10g} | {100 * (r['ours'] / r['published'] - 1):+.2f} % | "
               f"{r['date']} |")


def first_causes():
    yield "| Program | | Difference | Cause |"
    yield "| --- | --- | ---: | --- |"
    for r in first_try()["rows"]:
        if away(r) > MISS:
            yield f"| {r['program']} | {r['what']} | {100 * (r['ours'] / r['published'] - 1):+.2f} % | {WHY.get(r.get('name') or r['what'], 'not found')} |"


PARTS = {"first try": first_summary, "splits": split_table, "first table": first_table, "first causes": first_causes, "summary": summary, "table": table, "causes": causes}


def filled(text):
    for name, lines in PARTS.items():
        text = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", lambda m: m[1] + "".join(line + "\n" for line in lines()) + m[2], text, flags=re.S)
    return text


def with_sentence(text):
    return re.sub(r"(<!-- accuracy -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}{sentence()}, on simulated cards: [the figures](docs/accuracy.md).\n{m[2]}", text,
                  count=1, flags=re.S)


def with_constant(text):
    lines = "".join(f'    "{of}": "{words}",\n' for of, words in like().items())
    return re.sub(r"(# accuracy\n).*?(# end of accuracy\n)", lambda m: f"{m[1]}ACCURACY: Dict[str, str] = {{\n{lines}}}\n{m[2]}", text, count=1, flags=re.S)


def write():
    for path, text in ((PAGE, filled(PAGE.read_text())), (README, with_sentence(README.read_text())), (CONSTANT, with_constant(CONSTANT.read_text()))):
        path.write_text(text)
