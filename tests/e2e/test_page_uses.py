# SPDX-License-Identifier: Apache-2.0
"""Uses on the page: a block is pale before its first and after its last use. At every moment the pale bytes are those that `live` says are not in use,
and what is drawn has that height; the choice shows them alone; a block says what `why` says; recordings without uses look as before."""
import re
from types import SimpleNamespace

import pytest
from conftest import ROOT, Programs, Tool
from test_html import MIB, SETTLE, browse, makers, needs_browser, record  # noqa: F401 (makers: a fixture)
from test_last_use import PROGRAM
from test_page_boxes import faults

pytestmark = needs_browser
HEIGHTS = """((seq) => { const g = window.gpumemtrace, { chart } = g.timeline.drawn(), c = document.querySelector('#timeline .chart canvas'), ratio = devicePixelRatio, t = g.app.track;
  const q = t.points.find((p) => p.seq === seq), d = chart.x(q), at = Math.round((g.EDGE.left + (d + 0.5 - chart.view[0]) / (chart.view[1] - chart.view[0]) * (c.clientWidth - g.EDGE.left - g.EDGE.right)) * ratio);
  const copy = new OffscreenCanvas(1, c.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(c, -at, 0);
  const pixels = copy.getImageData(0, 0, 1, c.height).data, sheet = getComputedStyle(document.documentElement).getPropertyValue('--sheet').trim();
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)), count = (want) => { let n = 0; for (let i = 0; i < pixels.length; i += 4) n += want.every((v, k) => Math.abs(pixels[i + k] - v) < 2); return n / ratio; };
  return Object.fromEntries(['parameters', 'optimizer_state'].map((name) => { const k = g.app.doc.classes.findIndex((x) => x.name === name), full = rgb(g.app.doc.classes[k].colour);
    return [name, [count(full), count(full.map((v, i) => Math.round(0.35 * v + 0.65 * rgb(sheet)[i]))), q.classes[k], q.pale[k]]]; })) })"""
PALE = """(seq) => { const g = window.gpumemtrace, q = g.app.track.points.find((p) => p.seq === seq);
  return Object.fromEntries(q.pale.map((n, k) => [g.app.doc.classes[k].name, n]).filter(([, n]) => n)) }"""
TEXT = "(q) => document.querySelector(q).innerText"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    programs, tool = Programs(tmp_path_factory.mktemp("uses"), forks=True), Tool()
    script = programs.folder / "twice.py"
    script.write_text(PROGRAM.replace("4096", "256") + "del old, new, state\n")
    file = programs.traced(script, output="run.gmt")
    tool("html", file, "-o", programs.folder / "run.html")
    return SimpleNamespace(file=file, page=programs.folder / "run.html")


def not_in_use(live, left):
    """Bytes by class of blocks that some launch uses, but none before that moment, or none after it. Whether one that is never freed would have been
    used again is not known."""
    out = {}
    for b in live["blocks"]:
        if b["uses"] and (b["last_use_ns"] is None or (b["next_use_ns"] is None and (b["addr"], b["born_ns"]) not in left)):
            out[b["category"]] = out.get(b["category"], 0) + b["size"]
    return out


def test_pale_bytes_are_those_of_live(tool, run):
    points, = browse(run.page, "window.gpumemtrace.app.track.points.map((p) => [p.seq, p.ns])")
    left = {(b["addr"], b["born_ns"]) for b in tool.json("live", run.file, "--at", "end")["blocks"]}
    times = [ns for _, ns in points]
    alone = [(seq, ns) for i, (seq, ns) in enumerate(points) if times.count(ns) == 1 and all(t <= ns for t in times[:i]) and all(t > ns for t in times[i + 1:])]
    picked = alone[5::len(alone) // 15]
    said = browse(run.page, *[f"({PALE})({seq})" for seq, _ in picked])
    expected = [not_in_use(tool.json("live", run.file, "--at", ns), left) for _, ns in picked]
    assert said == expected and len(picked) >= 12 and sum(bool(e) for e in expected) >= 10


@pytest.mark.parametrize("theme, width", [("light", 1280), ("dark", 400), pytest.param("dark", 1280, marks=pytest.mark.more), pytest.param("light", 400, marks=pytest.mark.more)])
def test_what_is_drawn(tool, run, theme, width):
    """The heights of both colours of a class, of all bytes and of the pale ones alone; nothing is crossed or shifted."""
    peak = tool.json("report", run.file)["devices"][0]
    find = "window.gpumemtrace.app.track.peak_seq"
    wide = "(window.gpumemtrace.timeline.look(['parameters', 'optimizer_state'], 'events:' + (%s - 20) + '-' + (%s + 20)), 0)" % (find, find)
    on_paper = f"(dispatchEvent(new Event('beforeprint')), {HEIGHTS}({find}))"
    seen = browse(run.page, wide, on_paper, {"click": "#timeline button[value=pale]"}, on_paper, f"({TEXT})('#timeline .legend')", theme=theme, width=width)
    whole, alone, legend = seen[1], seen[3], seen[4]
    up = sum(v[2] for v in whole.values()) / sum(v[0] + v[1] for v in whole.values())
    for full, pale, bytes_, unused in whole.values():
        assert unused and abs(pale * up - unused) < 3 * up and abs(full * up - (bytes_ - unused)) < 3 * up
    assert sum(v[3] for v in whole.values()) <= peak["unused_at_peak_bytes"]
    up = sum(v[3] for v in alone.values()) / sum(v[1] for v in alone.values())
    for full, pale, _, unused in alone.values():
        assert full == 0 and abs(pale * up - unused) < 3 * up
    assert re.search(r"parameters\s+8\.0 MiB", legend) and re.search(r"optimizer state\s+16\.0 MiB", legend)
    assert faults(run.page, width, theme, ["#timeline button[value=pale]", "#timeline button[value=line]"]) == []


def test_words(tool, run):
    """The table of the peak, and a block: its first and last use, how many, the longest pause, and whose they are."""
    device = tool.json("report", run.file)["devices"][0]
    block = max((b for b in tool.json("live", run.file)["blocks"] if b["category"] == "parameters" and b["next_use_ns"] is None), key=lambda b: b["size"])
    why = tool.json("why", run.file, hex(block["addr"]))
    choose = f"(() => {{ const g = window.gpumemtrace; g.chooseBlock(g.moment().blocks.find((e) => e.block.addr === {block['addr']}).block); return ['.life .pale', '.card .uses'].map((q) => document.querySelectorAll(q).length) }})()"
    peak, marks, text, exact = browse(run.page, f"({TEXT})('#peak .classes')", choose, f"({TEXT})('.card .uses')", "(() => { const b = window.gpumemtrace.app.block, t = b.track; return [b.uses.first.ns, b.uses.last.ns, b.uses.count, b.uses.pause] })()")
    assert re.search(r"not used again\s+%.1f MiB\s+kept after the last use, mostly allocated at \w+ twice.py:\d+" % (device["unused_at_peak_bytes"] / 2**20), peak)
    assert marks == [2, 1] and exact == [why[k] for k in ("first_use_ns", "last_use_ns", "uses", "longest_pause_ns")]
    assert re.fullmatch(r"Used %d times, first at [\d.]+ \w+ by \w+, last at [\d.]+ \w+ by multi_tensor_apply_kernel and not again\. Longest pause [\d.]+ \w+, from [\d.]+ \w+ between \w+ and \w+\." % why["uses"], text)


def test_a_link_keeps_the_choice(run):
    said = browse(run.page, {"click": "#timeline button[value=pale]"}, SETTLE, "location.hash", {"reload": ""}, "document.querySelector('#timeline button[value=pale]').getAttribute('aria-pressed')")
    assert "show=pale" in said[2] and said[4] == "true"


def test_without_uses_as_before(tool, tmp_path):
    tool("html", ROOT / "tests/data/example/new.gmt", "-o", tmp_path / "old.html")
    said, = browse(tmp_path / "old.html", "(() => { const g = window.gpumemtrace; g.chooseBlock(g.moment().blocks[0].block); return [document.querySelector('#timeline [aria-label=Show]').hidden, document.querySelectorAll('.uses, .pale, .unused').length, g.app.track.points.some((q) => q.pale || q.between), document.querySelector('#peak').innerText.includes('not used')] })()")
    assert said == [True, 0, False, False]


def test_after_a_refusal_nothing_is_pale(tool, tmp_path):
    """Whether the block that was there then would have been used again is not known; the one that was freed before is not used after its last use."""
    sizes, line = {1: MIB, 2: 2 * MIB}, "event %s time_ns=%d addr=%d size=%d arg0=%d arg1=%d thread=1\n"
    text = "thread 1 1 main\nstring 1 kernel\nmeta device.0.total 1073741824\n"
    text += line % ("block_alloc", 10, 1 << 28, sizes[1], MIB, 4 * MIB) + line % ("block_alloc", 20, 1 << 29, sizes[2], 3 * MIB, 4 * MIB)
    text += "event use time_ns=30 addr=%d arg1=1 thread=1\n" % (1 << 28) + "event use time_ns=40 addr=%d arg1=1 thread=1\n" % (1 << 29)
    text += line % ("block_free", 50, 1 << 28, sizes[1], 2 * MIB, 4 * MIB) + line % ("block_oom", 60, 0, 1 << 30, 2 * MIB, 4 * MIB)
    tool("html", record(tmp_path, text), "-o", tmp_path / "oom.html")
    pale = browse(tmp_path / "oom.html", "window.gpumemtrace.app.track.points.map((q) => [q.ns - window.gpumemtrace.app.track.first_ns, q.pale.reduce((a, b) => a + b, 0)])")[0]
    assert pale[:5] == [[0, MIB], [10, 3 * MIB], [20, 3 * MIB], [30, MIB], [40, 0]] and all(n == 0 for _, n in pale[5:])
