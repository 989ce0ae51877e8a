# SPDX-License-Identifier: Apache-2.0
"""What `report` says first: nothing of a run that has nothing, else the figures that PyTorch itself counts, most bytes first."""
import json
import subprocess
import sys

import pytest

import conftest
from conftest import BUILD, ROOT
from test_html import SETTLE, browse, needs_browser

MIB = 1 << 20
PROGRAM = """
import json, statistics, sys, torch
from torch import nn
kind, counts, peaks, kept = sys.argv[1], [], [], []
model = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
truth = {}
for step in range(8):
    torch.cuda.reset_peak_memory_stats()
    out = model(torch.randn(65536 if kind == "spike" and step == 5 else 4096, 2048, device="cuda"))
    out.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if kind in ("leak", "oom"):
        kept.append(out.detach())  # here
    del out
    counts.append(torch.cuda.memory_allocated())
    peaks.append(torch.cuda.max_memory_allocated())
if kind == "leak":
    truth = {"growth": counts[-1] - counts[1]}
if kind == "spike":
    truth = {"spike": max(peaks) - statistics.median_high(peaks)}
if kind == "cache":
    torch.cuda.reset_peak_memory_stats()
    many = [torch.empty(8 << 20, dtype=torch.uint8, device="cuda") for _ in range(128)]
    del many
    large = torch.empty(900 << 20, dtype=torch.uint8, device="cuda")  # fits no hole
    truth = {"reserved": torch.cuda.memory_reserved() - max(*peaks, torch.cuda.max_memory_allocated()),
             "spike": torch.cuda.max_memory_allocated() - statistics.median_high(peaks)}
print(json.dumps(truth))
"""


def record(folder, kind, card="h100-80g", code=0):
    (folder / "train.py").write_text(PROGRAM)
    if code:  # with what `run` says itself
        done = subprocess.run([BUILD / "gpumemtrace", "run", "--sim", card, "-o", folder / "x.gmt", "--", sys.executable, folder / "train.py", kind],
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == code, done.stderr
    else:
        done = conftest.record(folder / "x.gmt", folder / "train.py", kind, card=card)
    return folder / "x.gmt", json.loads(done.stdout) if not code else done.stderr


@pytest.mark.parametrize("kind", ["none", "leak", "spike", "cache"])
def test_bytes_are_what_pytorch_counts(tool, tmp_path, kind):
    recording, truth = record(tmp_path, kind)
    report, text = tool.json("report", recording), tool("report", recording)
    said = {m["kind"]: m for m in report["summary"]}
    assert {k: m["bytes"] for k, m in said.items() if k in truth or k not in ("reserved", "advice", "line")} == truth
    if "line" in said:
        o = said["line"]
        assert o["bytes"] == sum(b["size"] for b in tool.json("live", recording)["blocks"]
                                 if (b["file"], b["line"]) == (o["file"], o["line"]) and b["category"] != "workspace")
    assert [m["bytes"] for m in report["summary"]] == sorted((m["bytes"] for m in report["summary"]), reverse=True)
    head = " ".join(text.split("Device 0:")[0].split())
    assert ("Nothing stands out." in head) == (not said)
    for m in said.values():
        assert m["text"] in head and m["action"] in head
    if kind == "leak":
        assert PROGRAM.splitlines()[said["growth"]["line"] - 1].strip().startswith("out = model(")
    if kind == "spike":
        assert "in step 6" in said["spike"]["text"] and said["spike"]["time_ns"] == report["devices"][0]["peak_time_ns"]


@pytest.mark.parametrize("kind", ["none", "leak", "spike"])
def test_the_best_advice_is_that_of_advise(tool, tmp_path, kind):
    """The first change that takes a tenth of the peak, if no other finding is about its blocks; the growth of a leak is one."""
    recording, _ = record(tmp_path, kind)
    said = [m for m in tool.json("report", recording)["summary"] if m["kind"] == "advice"]
    advise = tool.json("advise", recording)
    large = [f for f in advise["findings"] if f["of"] == "allocated" and f["least_bytes"] >= max(advise["peak_bytes"] // 10, 32 * MIB) and f["kind"] != "kept"]
    assert [(m["bytes"], m["text"].split(" lower: ")[1]) for m in said] == [(f["least_bytes"], f["what"] + ".") for f in large[:1]]
    assert said and all(m["action"] == f"gpumemtrace advise {recording}" for m in said)


def test_a_refusal_comes_first_with_its_cause_and_the_best_remedy(tool, tmp_path):
    recording, said = record(tmp_path, "oom", card="mine=720MiB", code=1)
    oom, (first, *others) = tool.json("oom", recording), tool.json("report", recording)["summary"]
    assert first["kind"] == "out_of_memory" and first["text"] == "Out of memory: " + oom["text"]
    assert f"\ngpumemtrace: {first['text']}\ngpumemtrace: next: gpumemtrace oom {recording}\n" in said
    assert first["action"].startswith(oom["remedies"][0]["what"]) and oom["remedies"][0]["saves_bytes"]
    assert oom["cause"] in ("growing", "retained_graph") and not {"growth", "advice"} & {m["kind"] for m in others}  # said as the cause
    assert first["bytes"] >= max(m["bytes"] for m in others or [first])


# The findings in the page: each one's text, its action, what its link says. `VISIBLE`: the heading, and whether all of them stand in the first 800 pixels, above the chart.
ON_PAGE = """[...document.querySelectorAll('#findings ol.findings > li')].map((li) => ({ kind: li.dataset.kind, text: li.querySelector('.text').firstChild.textContent,
  action: li.querySelector('.next').lastChild.textContent, link: (li.querySelector('a[href="#moment"]') || { textContent: '' }).textContent }))"""
VISIBLE = """[document.querySelector('#findings h2').textContent, document.getElementById('findings').getBoundingClientRect().bottom <= 800,
  document.getElementById('findings').getBoundingClientRect().bottom <= document.querySelector('#timeline .chart').getBoundingClientRect().top]"""
SHOWN = """(() => { const g = window.gpumemtrace, search = document.querySelector('input[type=search]').value; return { ns: g.moment().ns, hash: '#' + document.activeElement.id, search,
  complete: g.moment().complete, rows: [...document.querySelectorAll('.tab.blocks .space .row .line')].map((e) => e.textContent) } })()"""


@needs_browser
@pytest.mark.parametrize("kind,card", [("old.gmt", None), ("leak", "h100-80g"), ("spike", "h100-80g"), ("oom", "mine=720MiB")])
def test_on_top_of_the_page(tool, tmp_path, kind, card):
    """The same findings as `report`; each link sets the moment, and the search to its line if that has blocks then."""
    recording = record(tmp_path, kind, card, code=int(kind == "oom"))[0] if card else ROOT / "tests/data/example" / kind
    summary = tool.json("report", recording)["summary"]
    tool("html", recording, "-o", tmp_path / "x.html")
    look = {"high": 800}, SETTLE, VISIBLE, ON_PAGE, "document.getElementById('findings').textContent"
    hands = []
    for i in range(len(summary)):
        hands += [{"type": "zero_grad", "on": "input[type=search]"}, SETTLE, {"press": "Enter", "on": f"#findings li:nth-child({i + 1}) a"}, SETTLE, SHOWN]
    _, _, (heading, high, above), said, text, *rest = browse(tmp_path / "x.html", *look, *hands)
    assert heading == "What stands out" and high and above
    assert ("Nothing stands out." in text) == (not summary)
    assert [(m["kind"], m["text"], m["action"]) for m in said] == [(m["kind"], m["text"], m["action"]) for m in summary]
    for m, link, shown in zip(summary, (x["link"] for x in said), rest[4::5]):
        assert shown["ns"] == m["time_ns"] and shown["hash"] == "#moment" and shown["complete"] and shown["rows"]
        line = "" if m["kind"] == "out_of_memory" or not m["function"] else f"{m['function']} {m['file'].rsplit('/', 1)[-1]}:{m['line']}" if m["line"] else f"{m['function']} (backward)"
        assert shown["search"] == line.lower() and all(r == line for r in shown["rows"] if line)
        assert link.startswith("Go to ") and link.endswith(line)


def test_what_the_recording_lacks(tool, tmp_path):
    recording, _ = record(tmp_path, "none")
    whole = recording.read_bytes()
    for left in (whole[:-200], whole[:3000]):  # the second is without any allocation
        recording.write_bytes(left)
        assert tool.json("report", recording)["summary"][-1]["kind"] == "incomplete"
        assert "Nothing stands out" not in tool("report", recording)


def test_examples_of_the_manual(tool):
    """At most five, also of a run that has many."""
    for recording in (ROOT / "tests/data/example").glob("*.gmt"):
        matters = tool.json("report", recording)["summary"]
        assert len(matters) <= 5 and all(m["text"] and m["action"] for m in matters)


CACHE = """
import torch
width = 10_000 if {plain} else 256
model = torch.nn.Linear(width, width)
if not {plain}:
    model.register_buffer("cache", torch.zeros(130_000_000))
model.cuda()
with torch.no_grad():
    for step in range(4):
        model(torch.randn(8, width, device="cuda"))
        if not {plain}:
            model.cache[step] = 1
"""


@pytest.mark.parametrize("plain", [False, True])
def test_a_cache_that_holds_most(tool, tmp_path, plain):
    """It is named, though no change of it is known; weights are not."""
    (tmp_path / "train.py").write_text(CACHE.format(plain=plain))
    conftest.record(tmp_path / "x.gmt", tmp_path / "train.py")
    said = [m for m in tool.json("report", tmp_path / "x.gmt")["summary"] if m["kind"] == "line"]
    assert [m["line"] for m in said] == ([] if plain else [7])
    assert plain or "%, buffers) were allocated by one line, <module> train.py:7." in said[0]["text"]
