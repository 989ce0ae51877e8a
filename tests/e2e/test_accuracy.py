# SPDX-License-Identifier: Apache-2.0
"""docs/accuracy.md, README's sentence and the constant that `fit` prints are those of the results; a row that was not run says so."""
import json
import re
import statistics
import subprocess
import sys

import pytest
from conftest import ROOT

CARDS = ROOT / "tests/cards"
sys.path.insert(0, str(CARDS))
import page  # noqa: E402
from chosen import CHOSEN, WHY  # noqa: E402
from rows import ROWS  # noqa: E402

RESULTS = json.loads((CARDS / "results.json").read_text())


def pages():
    return {path: path.read_text() for path in (page.PAGE, page.README, page.CONSTANT)}


def test_pages_are_made_from_the_results():
    said = pages()
    assert page.filled(said[page.PAGE]) == said[page.PAGE]
    assert page.with_sentence(said[page.README]) == said[page.README]
    assert page.with_constant(said[page.CONSTANT]) == said[page.CONSTANT]


def test_one_claim_in_all_places():
    """README and `fit` say what came out at first try, not what was looked at until it did."""
    said = re.search(r"Of (\d+) published figures that were new to it, (\d+) % came out within 1 %, and half of the latest (\d+), of (\d+) programs, within ([\d.]+) %",
                     page.README.read_text())
    rows = page.latest()
    differences = sorted(abs(r["ours"] / r["published"] - 1) for r in rows)
    assert (int(said[1]), int(said[3]), int(said[4])) == (page.first_try()["figures"] + len(rows), len(rows), len({r["program"] for r in rows}))
    assert abs(float(said[5]) - 100 * statistics.median(differences)) < 0.0051
    assert all(re.search(r"of \d+ programs like this one \([a-z ]+\), half came out at first try within", words) for words in page.like().values())
    table = [abs(float(x)) for x in re.findall(r"\| ([+-][\d.]+) % \| \d+ s \|", page.PAGE.read_text())]
    half = re.search(r"(\d+) of \d+ rows were run with version [\d.]+: half of them are within ([\d.]+) %", page.PAGE.read_text())
    assert int(half[1]) == len(table) and abs(float(half[2]) - statistics.median(table)) < 0.0101  # the rows of the page are rounded


def test_rows_of_the_first_try_are_those_that_were_chosen():
    """None is left out because it is off, and none was chosen after it was run."""
    for row in page.latest():
        chosen = CHOSEN[row["name"]]
        assert (row["published"], row["unit"], row["kind"], tuple(row["of"])) == (chosen.figure, chosen.unit, chosen.kind, chosen.of), row["name"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
    assert set(WHY) <= {r.get("name") or r["what"] for r in page.first_try()["rows"] if page.away(r) > page.MISS}


def test_a_figure_is_kept_once():
    row = next(iter(CHOSEN.values()))
    with pytest.raises(AssertionError, match="has a figure"):
        page.keep_try(row, {})
    done = subprocess.run([sys.executable, CARDS / "run.py", "--first-try", row.name], capture_output=True, text=True)
    assert done.returncode == 0 and "is not changed" in done.stdout


def test_differences_are_those_of_both_figures():
    for name, published, ours, said in re.findall(r"^\| (\S+) \|.*\| ([\d.]+) \w+ \| ([\d.]+) \| ([+-][\d.]+) % \|", page.PAGE.read_text(), re.M):
        assert float(published) == ROWS[name].figure
        assert abs(100 * (float(ours) / float(published) - 1) - float(said)) < 100 * 0.006 / float(published) + 0.006, name


@pytest.mark.parametrize("result", [None, {"ours": 1.0, "version": "0.0.1"}, {"ours": 1.0, "version": page.version(), "row": "another"}])
def test_a_row_that_this_version_did_not_run(monkeypatch, result):
    name = next(iter(ROWS))
    monkeypatch.setattr(page, "results", lambda: {**RESULTS, name: result})
    row = next(line for line in page.table() if line.startswith(f"| {name} |"))
    assert row.endswith(f"| {ROWS[name].figure:g} {ROWS[name].unit} | not run | | | |")


def test_sources_are_pinned():
    for row in [*ROWS.values(), *CHOSEN.values()]:
        assert re.fullmatch(r"[0-9a-f]{40}", row.source.commit) or not row.source.repository, row.name
        assert (ROOT / f"tests/requirements/{row.venv or row.source.environment}.txt").exists()


def test_unknown_row():
    done = subprocess.run([sys.executable, CARDS / "run.py", "no-row"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("no row no-row; there are litgpt-")
