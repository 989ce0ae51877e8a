# SPDX-License-Identifier: Apache-2.0
"""check: bounds against what other commands say of the same recording; exit code, sentence, JSON, JUnit, annotations."""
import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as xml

import gpumemtrace
import pytest
from conftest import ROOT, Tool

OLD, NEW = (ROOT / "tests/data/example" / name for name in ("old.gmt", "new.gmt"))


def run(*args, **more):
    return subprocess.run([Tool.path, "check", *map(str, args)], capture_output=True, text=True, timeout=600, **more)


def most_of(tool, file, name):
    """The most of a class after any event, and after which one."""
    buckets = tool.json("timeline", file, "--by", "events", "--points", 1000000)["buckets"]
    return max(((b["categories_at_last"].get(name, 0), -b["last_ns"]) for b in buckets))


def test_a_bound_holds_up_to_the_byte(tool):
    peak, growth = tool.json("peak", NEW), tool.json("leaks", NEW)["growth_per_step"]
    values = {"max-peak": peak["bytes"], "max-reserved": tool.json("report", NEW)["devices"][0]["peak_reserved_bytes"],
              "max-growth": growth, "max-class": f"activations={most_of(tool, NEW, 'activations')[0]}"}
    for name, value in values.items():
        assert run(NEW, f"--{name}", value).returncode == 0
        head, equals, number = str(value).rpartition("=")
        less = f"{head}{equals}{int(number) - 1}"
        done = run(NEW, f"--{name}", less)
        assert done.returncode == 1 and done.stdout.startswith("fail ") and done.stderr.count("\n") == 1, (name, done)
        bound = json.loads(run(NEW, f"--{name}", less, "--json").stdout)["recordings"][0]["bounds"][0]
        assert (bound["measured_bytes"], bound["limit_bytes"]) == (int(number), int(number) - 1)


def test_where_it_was_stands_behind_its_own_preposition():
    assert "allowed, before the first step, " in run(NEW, "--max-class", "parameters=0").stdout
    assert "allowed, in step 9, " in run(NEW, "--max-peak", "1MiB").stdout


def test_each_failure_is_said_once():
    """A line for each limit on stdout, how many failed on stderr; with --json the first of them, as stdout is no text."""
    limits = ["--max-peak", "1MiB", "--max-class", "parameters=0", "--max-reserved", "1TiB"]
    done = run(NEW, *limits)
    said = json.loads(run(NEW, *limits, "--json").stdout)["recordings"][0]["bounds"]
    assert len(said) == 3 and all((done.stdout + done.stderr).count(b["text"]) == 1 for b in said)
    assert done.stderr == "gpumemtrace check: 2 of 3 limits failed\n"
    assert run(NEW, *limits, "--json").stderr == f"gpumemtrace check: {NEW}: {said[0]['text']} (2 of 3 limits failed)\n"
    assert run(NEW, *limits[:2]).stderr == "gpumemtrace check: 1 of 1 limit failed\n"


@pytest.mark.parametrize("option, value, unit", [
    ("--max-peak", "40", "GiB"), ("--max-peak", "1.5", "GiB"), ("--max-reserved", "22", "GiB"), ("--max-class", "parameters=20", "GiB"),
    ("--max-growth", "16", "MiB"), ("--fail-above", "2", "%")])
def test_a_number_without_a_unit_is_bytes_and_that_is_said(option, value, unit):
    number, base = value.rpartition("=")[2], ["--baseline", OLD] if option == "--fail-above" else []
    assert f"; {number} is {number} B: did you mean {number}{unit}?\n" in run(NEW, option, value, *base).stdout
    for plain in ("0", f"{number}B", f"{number} B", "65536"):
        assert "did you mean" not in run(NEW, option, value.replace(number, plain), *base).stdout


def test_a_class_has_a_peak_of_its_own(tool):
    """At the run's peak there are no gradients: a bound on them is of their own highest moment."""
    assert "gradients" not in tool.json("peak", NEW)["categories"]
    most, when = most_of(tool, NEW, "gradients")
    blocks = [b for b in tool.json("live", NEW, "--at", -when)["blocks"] if b["category"] == "gradients"]
    assert most == sum(b["size"] for b in blocks) > 0
    assert run(NEW, "--max-class", f"gradients={most}").returncode == 0
    done = run(NEW, "--max-class", f"gradients={most - 1}", "--max-class", "kv_cache=0")
    assert done.returncode == 1 and "ok   " in done.stdout and "peak of kv cache 0 B" in done.stdout
    step = next(s for s in tool.json("steps", NEW)["rows"] if s["begin_ns"] <= -when <= s["end_ns"])
    assert "peak of gradients 395.3 MiB: 1 B more" in done.stdout and f"in step {step['step']}, backward" in done.stdout
    bound = json.loads(run(NEW, "--max-class", "gradients=0", "--json").stdout)["recordings"][0]["bounds"][0]
    assert bound["measured_bytes"] == most and "AddmmBackward0" in bound["function"]


@pytest.mark.parametrize("limit, code", [("0", 1), ("88%", 1), ("89%", 0), ("11010146815", 1), ("11010146816", 0), ("11 GB", 1), (None, 1)])
def test_a_baseline(tool, limit, code):
    assert tool.json("diff", OLD, NEW)["delta"] == 11010146816
    done = run(NEW, "--baseline", OLD, *(["--fail-above", limit] if limit else []))
    assert done.returncode == code
    finding = tool.json("diff", OLD, NEW)["findings"][0]
    assert (finding["text"] in done.stdout) == bool(code)
    bound = json.loads(run(NEW, "--baseline", OLD, "--json").stdout)["recordings"][0]["bounds"][0]
    assert [bound[k] for k in ("function", "file", "line")] == [finding[k] for k in ("function", "file", "line")]
    assert run(OLD, "--baseline", NEW, "--fail-above", "0").returncode == 0


def test_several_bounds_and_recordings(tool, tmp_path):
    for path in OLD, NEW:
        shutil.copy(path, tmp_path)
    junit = tmp_path / "x.xml"
    args = ["--max-peak", "16GiB", "--max-growth", "0B", "--max-class", "activations=1GiB", "--max-class", "parameters=1TB"]
    done = run(tmp_path, *args, "--junit", junit, "--json")
    document = json.loads(done.stdout)
    assert tool.json("check", OLD, "--max-peak", "16GiB")["ok"] is True  # and the document is as described
    assert done.returncode == 1 and not document["ok"] and (document["bounds"], document["broken"]) == (8, 4)
    assert done.stderr.endswith(" (4 of 8 limits failed)\n") and done.stderr.count("\n") == 1
    suite = xml.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), len(suite)) == ("8", "4", 8)
    for recording in document["recordings"]:
        cases = [c for c in suite if c.get("classname") == recording["file"]]
        assert [c.get("name") for c in cases] == [" ".join(filter(None, (b["name"], b.get("class")))) for b in recording["bounds"]]
        for case, bound in zip(cases, recording["bounds"]):
            assert [f.get("message") for f in case] == ([] if bound["ok"] else [bound["text"]])
    assert run(OLD, *args[:4], "--junit", junit).returncode == 0 and xml.parse(junit).getroot().get("failures") == "0"


def test_growth_that_cannot_be_known_does_not_hold(tool, tmp_path):
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    lines = "event block_alloc time_ns=1 addr=512 size=512\nevent end time_ns=2\n"
    subprocess.run([ROOT / "build/data/make_recording", tmp_path / "a.gmt"], input=lines.encode(), check=True)
    done = run(tmp_path / "a.gmt", "--max-growth", "1TiB", "--max-peak", "512B")
    assert done.returncode == 1 and "ok   " in done.stdout and "growth is not known" in done.stdout


@pytest.mark.parametrize("file,code,words", [("bad/half_block", 1, "not known: the file is damaged"), ("bad/no_end", 0, "up to where the program was killed"),
                                             ("v3/thinned", 0, "up to where the recording stops"), ("example/old", 0, "are allowed")])
def test_of_a_part_of_a_run_it_is_said(file, code, words):
    done = run(ROOT / f"tests/data/{file}.gmt", "--max-peak", "80GiB")
    assert done.returncode == code and words in done.stdout and done.stdout.startswith("fail" if code else "ok"), done
    assert done.stderr.endswith(": 1 of 1 limit failed\n") if code else True
    bound = json.loads(run(ROOT / f"tests/data/{file}.gmt", "--max-peak", "80GiB", "--json").stdout)["recordings"][0]["bounds"][0]
    assert (bound["ok"], bound["known"]) == (code == 0, code == 0)
    if not bound["measured_bytes"]:
        return
    broken = json.loads(run(ROOT / f"tests/data/{file}.gmt", "--max-peak", "1", "--json").stdout)["recordings"][0]["bounds"][0]
    assert (broken["ok"], broken["known"]) == (False, True)


@pytest.mark.forks
def test_annotations_name_lines_of_the_tree(programs, tool):
    script = programs.folder / "src/train, 2.py"
    script.parent.mkdir()
    script.write_text("import torch\n\nkept = torch.ones(1 << 22, device='cuda')\n")
    recording = programs.traced(script)
    done = run(recording, "--max-peak", "1MB", "--annotations", cwd=programs.folder)
    line = next(line for line in done.stdout.splitlines() if line.startswith("::"))
    assert line.startswith("::error file=src/train%2C 2.py,line=3,title=gpumemtrace max-peak::") and done.returncode == 1
    elsewhere = run(recording, "--max-peak", "1MB", "--annotations", cwd="/").stdout
    assert "::error title=gpumemtrace max-peak::" in elsewhere
    assert "::" not in run(recording, "--max-peak", "1GB", "--annotations").stdout
    document = gpumemtrace.open(recording).check(max_peak="1MB", max_class={"activations": 0, "unknown": 1 << 40})
    assert not document.ok and [b.name for b in document.recordings[0].bounds if not b.ok] == ["max-peak"]
    assert document.recordings[0].bounds[0].line == 3


@pytest.mark.parametrize("args, words", [
    ([], "no bound was given"), (["--max-peak", "40 %"], "--max-peak needs a size such as 40GiB"), (["--max-peak", "much"], "not \"much\""),
    (["--max-class", "activation=1"], "activation is not one of: parameters"), (["--max-class", "inputs"], "--max-class inputs=20GiB"),
    (["--fail-above", "2%"], "--fail-above is for --baseline"), (["--baseline", "x", "--fail-above", "a"], "--fail-above needs a share"),
    (["--max-peak", "1", "--annotations", "--json"], "exclude each other"),
])
def test_wrong_use_is_one_sentence(args, words):
    done = run(NEW, *args)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and words in done.stderr


def test_what_cannot_be_read_fails(tmp_path):
    junit = tmp_path / "x.xml"
    done = run(ROOT / "README.md", "--max-peak", "1GB", "--junit", junit)
    assert done.returncode == 3 and "not a gpumemtrace recording" in done.stderr and not junit.exists()
    shutil.copy(OLD, tmp_path)
    (tmp_path / "broken.gmt").write_bytes(b"GMT no more")
    assert run(tmp_path, "--max-peak", "1TB").returncode == 3
    junit.write_text("mine")
    done = run(OLD, "--max-peak", "1TB", "--junit", junit)
    assert done.returncode == 2 and junit.read_text() == "mine"
    assert os.listdir(tmp_path).count("x.xml") == 1
