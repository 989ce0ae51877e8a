# SPDX-License-Identifier: Apache-2.0
"""Recordings of a later version, in every form in which records are written: this version gives the same figures, or one sentence.
The later version is a copy of format/ to which CONTRIBUTING's recipe for a kind of record was applied, row by row."""
import json
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT

SOURCE = ROOT / "tests/data/example/new.gmt"
FORMS = ["columns", "records", "live"]
SENTENCE = "written by gpumemtrace 9.9.9, which records kinds that this version does not know; update to read it"
DEF = 'DEF(LATER, {}, "{}", "a definition of a later version")\n'


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    """Writes SOURCE again: later(OUT, FORM, KIND, NTH)."""
    folder = tmp_path_factory.mktemp("later")
    for part in ("format", "tests/unit", "tests/e2e"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.py", "test_*", "__pycache__"))
    recipe = (ROOT / "CONTRIBUTING.md").read_text().split("**A kind of record.**")[1].split("**")[0]
    rows = re.findall(r"^EVENT\(.*\)$", recipe, re.M)
    assert [int(re.search(r", (\d+),", row)[1]) for row in rows] == [64, 128]
    table = folder / "format/records.def"
    added = "\n".join(rows) + "\n" + "".join(DEF.format(n, name).replace("LATER", name.upper()) for n, name in ((66, "hint_text"), (128, "swap_text")))
    table.write_text(table.read_text().replace("\n#undef EVENT", "\n" + added + "\n#undef EVENT"))
    version = folder / "format/version.h"
    version.write_text(re.sub(r'"[0-9.]+"', '"9.9.9"', version.read_text()))
    program = folder / "write_later"
    sources = [*(p for p in (folder / "format").glob("*.c") if p.name != "reader_ahead.c"), folder / "tests/unit/recordings.c", folder / "tests/e2e/later.c"]
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-o", program, *sources, "-lcmocka", "-l:libzstd.a"], check=True)

    def write(path, form, kind="hint", nth=7):
        subprocess.run([program, SOURCE, path, form, kind, str(nth)], check=True)
        return path

    return write


def answers(tool, path):
    """What people read, without what is about the file itself."""
    # The number of events and of bytes is the file's.
    of_file = {"file", "file_bytes", "events", "bytes_an_event", "path", "live_events", "blocks", "version"}

    def strip(value):
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in of_file}
        value = value.replace(str(path), "FILE") if isinstance(value, str) else value
        return [strip(v) for v in value] if isinstance(value, list) else value

    questions = [["report"], ["peak"], ["steps"], ["modules"], ["leaks"], ["advise"], ["account"], ["live", "--at", "peak"],
                 ["live", "--at", "end"], ["timeline"], ["replay", "--alloc-conf", "expandable_segments:True"]]
    return {" ".join(q): strip(json.loads(tool(q[0], path, *q[1:], "--json"))) for q in questions}


@pytest.mark.parametrize("form", FORMS)
def test_kinds_that_may_be_passed_over(tool, later, tmp_path, form):
    without = answers(tool, later(tmp_path / "without.gmt", form, nth=10**9))
    path = later(tmp_path / "with.gmt", form)
    assert unknown(tool, path) > 500
    assert answers(tool, path) == without
    if form != "live":
        assert "good" in tool("verify", path)
    tool("recover", path, "-o", tmp_path / "whole.gmt")
    assert unknown(tool, tmp_path / "whole.gmt") == unknown(tool, path)
    assert answers(tool, tmp_path / "whole.gmt")["report"]["devices"] == without["report"]["devices"]


def unknown(tool, path):
    return sum(e.get("kind") == "?" for e in tool.events(path))


def commands_that_read():
    text = subprocess.run([BUILD / "gpumemtrace", "--help"], capture_output=True, text=True, check=True).stdout
    every = re.findall(r"^  ([a-z]+) +\S", text, re.M)
    assert len(every) > 25
    return [c for c in every if c not in ("run", "fit", "bisect", "top", "ctl", "attach", "import", "dashboard", "open", "compact", "regressions")]


MORE = {"why": ["0x1000"], "stack": ["1"], "diff": [SOURCE], "replay": ["--alloc-conf", "backend:native"], "html": ["-o", "x.html"],
        "recover": ["-o", "x.gmt"], "collect": ["-o", "lake"], "export": ["--to", "csv", "-o", "x.csv"],
        "check": ["--max-peak", "1TiB"]}


@pytest.mark.parametrize("form", FORMS)
def test_kinds_that_must_be_known(tool, later, tmp_path, monkeypatch, form):
    """Every command that reads recordings says the same sentence, writes nothing and exits with 3."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    path = later(tmp_path / "x/later.gmt", form, "swapped", 500)
    for command in commands_that_read():
        operands = ["SELECT count(*) FROM runs", path] if command == "sql" else [path]
        if command == "info":  # says what the file's head says
            continue
        done = subprocess.run([BUILD / "gpumemtrace", command, *operands, *MORE.get(command, [])], capture_output=True, text=True)
        assert (done.returncode, SENTENCE in done.stderr) == (3, True), (command, done.returncode, done.stderr, done.stdout)
        assert len(done.stderr.strip().splitlines()) == 1, (command, done.stderr)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x"]


def test_a_rank_of_a_later_version(tool, later, tmp_path):
    shutil.copy(SOURCE, tmp_path / "0.gmt")
    later(tmp_path / "1.gmt", "columns", "swapped", 500)
    assert SENTENCE in tool("report", tmp_path)
    ranks = tool.json("report", tmp_path)["ranks"]
    print(ranks)
    assert [SENTENCE in r.get("error", "") for r in ranks] == [False, True]


def test_the_sentence_in_python(later, tmp_path):
    path = later(tmp_path / "later.gmt", "columns", "swapped", 500)
    program = f"import gpumemtrace\ntry:\n    gpumemtrace.open({str(path)!r}).peak\nexcept gpumemtrace.Error as e:\n    print(e)"
    env = {"PYTHONPATH": str(ROOT / "python"), "PATH": f"{BUILD}:/usr/bin:/bin", "GPUMEMTRACE_TOOL": str(BUILD / "gpumemtrace")}
    done = subprocess.run([ROOT / ".venv/bin/python", "-c", program], capture_output=True, text=True, env=env)
    assert SENTENCE in done.stdout, (done.stdout, done.stderr)
