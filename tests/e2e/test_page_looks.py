# SPDX-License-Identifier: Apache-2.0
"""What the pages look like to their readers: the chart hides nothing, and the page works by keys, for colour-blind eyes, on
paper, in forced colours, for a screen reader, and by a link."""
import itertools
import json
import os
import re
import subprocess

import pytest

from conftest import BUILD, TOOLS, made_once
from test_html import MIB, ROOT, SETTLE, browse, document, makers, needs_browser, record  # noqa: F401 (makers: a fixture)

AXE = next((ROOT / ".venv-browser").glob("lib/python3*/site-packages/axe_playwright_python/axe.min.js"), None)
VIOLATIONS = """axe.run(document, { runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] } })
  .then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))"""
SMALL = """[...document.querySelectorAll('button, select, input, summary, nav a')].filter((e) => e.offsetParent).map((e) => [e.outerHTML, e.getBoundingClientRect()])
  .filter(([, r]) => r.width < 24 || r.height < 24).map(([html]) => html)"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    from conftest import Tool
    path = tmp_path_factory.mktemp("looks") / "run.html"
    Tool()("html", ROOT / "tests/data/example/old.gmt", "-o", path)
    return path


# The chart

def spike(tmp_path, tool):
    """8 MiB over a second, in its middle 24 MiB for a microsecond, reserved to the byte; before the end many events at once."""
    line = "event block_%s time_ns=%d addr=%d size=%d arg0=%d arg1=%d thread=1\n"
    text = "thread 1 1 main\n" + line % ("alloc", 0, 1 << 28, 8 * MIB, 8 * MIB, 24 * MIB)
    text += line % ("alloc", 5 * 10**8, 1 << 29, 16 * MIB, 24 * MIB, 24 * MIB) + line % ("free", 5 * 10**8 + 1000, 1 << 29, 16 * MIB, 8 * MIB, 24 * MIB)
    text += line % ("alloc", 10**9, 1 << 30, 4096, 8 * MIB + 4096, 24 * MIB)
    tool("html", record(tmp_path, text), "-o", tmp_path / "spike.html")
    return tmp_path / "spike.html"


# The chart as a context whose pixels may be read again and again without a word on the console.
PIXELS = "((c) => { const g = new OffscreenCanvas(c.width, c.height).getContext('2d', { willReadFrequently: true }); g.drawImage(c, 0, 0); return g })(document.querySelector('.chart canvas'))"
# The colours in the row of the canvas that many pixels below the height of that many bytes, each with how often it is there.
ROW = """((bytes, below, g) => { const { EDGE } = window.gpumemtrace, c = document.querySelector('.chart canvas'), colour = (x, y) => [...g.getImageData(x, y, 1, 1).data.slice(0, 3)].join();
  const high = c.clientHeight - EDGE.top - EDGE.strip - EDGE.steps - 18, y = Math.round(EDGE.top + high - bytes / (%d * 1.08) * high) + below, out = {};
  for (let x = EDGE.left; x < c.width - EDGE.right; x++) out[colour(x, y)] = (out[colour(x, y)] || 0) + 1;
  return out })(%d, %d, """ + PIXELS + ")"


@needs_browser
def test_a_spike_is_seen_under_all_lines(tool, tmp_path):
    path = spike(tmp_path, tool)
    top, middle, floor, above = browse(path, "window.gpumemtrace.app.lines.used = false", {"press": "p", "on": ".chart"}, SETTLE, *(ROW % (24 * MIB, *at) for at in
                                       ((24 * MIB, 1), (16 * MIB, 2), (4 * MIB, 0), (24 * MIB, -5))))[3:]
    paper, solid = max(middle, key=middle.get), max(floor, key=floor.get)
    drawn = {c: n for c, n in top.items() if c != max(top, key=top.get)}
    assert 3 <= sum(drawn.values()) <= 5, top  # the spike, just below its top: the reserved line lies above
    assert sum(n for c, n in middle.items() if c != paper) <= 5 and sum(middle.values()) > 1000
    pale = [tuple(map(int, c.split(","))) for c, n in middle.items() if c != paper and n >= 2]
    assert len(pale) == 1 and all(min(p, s) < v < max(p, s) for v, p, s in zip(pale[0], map(int, paper.split(",")), map(int, solid.split(",")))), middle
    assert floor[solid] > 1000 and len(above) > len(top)  # the mark of the peak and its name


@needs_browser
def test_many_events_in_a_column(tool, tmp_path):
    """The lowest is solid, the highest is pale, and neither hides the other."""
    line = "event block_%s time_ns=%d addr=%d size=%d arg0=%d arg1=%d thread=1\n"
    text = "thread 1 1 main\n" + line % ("alloc", 0, 1 << 28, 8 * MIB, 8 * MIB, 99 * MIB)
    for i in range(8000):
        text += line % ("alloc", 1000 + 100 * i, 1 << 29, 16 * MIB, 24 * MIB, 99 * MIB) + line % ("free", 1050 + 100 * i, 1 << 29, 16 * MIB, 8 * MIB, 99 * MIB)
    tool("html", record(tmp_path, text), "-o", tmp_path / "x.html")
    low, high, picks = browse(tmp_path / "x.html", "Object.assign(window.gpumemtrace.app.lines, { used: false, reserved: false })", {"press": "End", "on": ".chart"}, SETTLE,
                              ROW % (24 * MIB, 4 * MIB, 0), ROW % (24 * MIB, 16 * MIB, 2),
                              """(() => { const t = window.gpumemtrace.app.track, c = new window.gpumemtrace.Chart(t).columns(500, [...t.points[0].classes.keys()]), at = (i) => t.points[i].bytes;
                                return [Math.min(...[...c.best].slice(5, -5).map(at)), Math.max(...[...c.low].slice(5, -5).map(at))] })()""")[3:]
    assert picks == [24 * MIB, 8 * MIB]
    solid, pale = max(low, key=low.get), max(high, key=high.get)
    assert low[solid] > 1000 and high[pale] > 900 and solid != pale


@needs_browser
def test_a_class_alone_takes_the_axis(page):
    """Whatever the lines of the whole: its highest point is in the chart's upper eighth, and nothing else is drawn."""
    rows = """(k) => { const { app, EDGE } = window.gpumemtrace, c = document.querySelector('.chart canvas'), want = parseInt(app.doc.classes[k].colour.slice(1), 16);
      const high = c.clientHeight - EDGE.top - EDGE.strip - EDGE.steps - 18, d = PIXELS.getImageData(EDGE.left, EDGE.top, c.width - EDGE.left - EDGE.right, high).data;
      for (let i = 0; i < d.length; i += 4) if (Math.abs(d[i] - (want >> 16)) + Math.abs(d[i + 1] - (want >> 8 & 255)) + Math.abs(d[i + 2] - (want & 255)) < 12) return Math.floor(i / 4 / (c.width - EDGE.left - EDGE.right)) / high;
      return 1 }""".replace("PIXELS", PIXELS)
    kinds = browse(page, "[...document.querySelectorAll('.legend button')].map((b) => b.dataset.kind)")[0]
    alone = "document.querySelector('.legend button[data-kind=\"%s\"]').dispatchEvent(new MouseEvent('click', { shiftKey: true, bubbles: true }))"
    near = "(() => { const g = window.gpumemtrace, best = g.app.track.points.reduce((a, b) => (b.classes[%s] > a.classes[%s] ? b : a)); g.timeline.look(null, `events:${best.seq - 40}-${best.seq + 40}`) })()"
    got = browse(page, *(x for k in kinds for x in (near % (k, k), alone % k, SETTLE, f"({rows})({k})")))
    assert len(kinds) >= 6 and all(y < 0.125 for y in got[3::4]), dict(zip(kinds, got[3::4]))


def test_steps_and_phases_are_thinned_evenly(tool, tmp_path):
    """Of 4,152 steps with eight phases each not all have room: those left out lie apart from each other, and the page says how many."""
    text, ns, steps, rare = "thread 1 1 main\nstring 1 Optimizer.step#SGD.step\nstring 2 Optimizer.zero_grad#SGD.zero_grad\n", 100, 4152, 4099
    mark = "event range_%s time_ns=%d arg0=%d arg1=1 name=%d thread=1\n"
    for i in range(steps):
        text += f"string {10 + i} ProfilerStep#{i}\n" + mark % ("begin", ns, 1, 10 + i)
        for name in (1, 2) * 4:
            size = 8192 if i == rare else 4096
            text += mark % ("begin", ns + 1, 2, name) + f"event block_alloc time_ns={ns + 2} addr={1 << 28} size={size} arg0={size} arg1=8192 thread=1\n"
            text += f"event block_free time_ns={ns + 3} addr={1 << 28} size={size} arg0=0 arg1=8192 thread=1\n" + mark % ("end", ns + 4, 2, name)
            ns += 10
        text += mark % ("end", ns, 1, 10 + i)
        ns += 10
    tool("html", record(tmp_path, text), "-o", tmp_path / "x.html")
    said = document(tmp_path / "x.html")["tracks"][0]["steps"]
    numbers, phases, note, left = browse(tmp_path / "x.html", "window.gpumemtrace.app.track.steps.items.map((s) => s.number)", "window.gpumemtrace.app.track.spans.map((s) => s.seq)",
                                         "document.querySelector('#steps .note').textContent", "document.querySelector('#run ul').textContent")
    gaps = [b - a for a, b in itertools.pairwise(numbers)]
    assert len(numbers) + said["left_out"] == said["count"] >= steps and max(gaps) == 2 and numbers[-1] == said["count"] - 1 and said["left_out"] > 100
    assert said["spans_left_out"] > 3000 and phases[-1] > 0.99 * 34 * steps and max(b - a for a, b in itertools.pairwise(phases)) < 20 * (phases[-1] / len(phases))
    assert f"{said['left_out']} of them, spread evenly, are left out" in note and f"{said['left_out']} steps and {said['spans_left_out']:,} phases left out" in left


@needs_browser
def test_blocks_lines_and_modules_as_bands(page, tool):
    """Every column has exactly what was alive at its moment, the rest in grey; the band under the pointer is named, with its stack and its size."""
    state = """(() => { const { app, bands, chart } = window.gpumemtrace.timeline.drawn(), columns = chart.columns(bands.top.length, [...app.doc.classes.keys()]), seqs = [...columns.best].map((i) => app.track.points[i].seq);
      const held = (c) => bands.rows.filter((r) => r.pieces.some(([a, b]) => c >= a && c < b)), alive = (c) => bands.rows.filter(({ b }) => b.seq <= seqs[c] && (!b.endSeq || seqs[c] < b.endSeq));
      const wrong = seqs.map((q, c) => c).filter((c) => columns.best[c] >= 0 && (c % 50 === 0 && held(c).length !== alive(c).length || Math.abs(bands.top[c] - alive(c).reduce((s, r) => s + r.b.size, 0)) > 1 || bands.top[c] > app.track.points[columns.best[c]].bytes));
      return [wrong.length, bands.rows.length, new Set(bands.rows.map((r) => r.colour)).size, new Set(bands.rows.map((r) => r.name)).size, seqs.length] })()"""
    got = browse(page, {"click": "button[value=block]"}, SETTLE, state, {"click": "button[value=line]"}, SETTLE, state, {"hover": ".chart canvas", "at": {"x": 700, "y": 300}}, SETTLE,
                 "[document.querySelector('.tip').innerText, document.querySelector('.readout .band').innerText, document.querySelector('.legend').hidden]",
                 {"click": ".chart canvas", "at": {"x": 700, "y": 300}}, SETTLE, "document.querySelector('.card h3').innerText", {"click": "button[value=module]"}, SETTLE, state)
    blocks, lines, (tip, words, hidden), card, modules = got[2], got[5], got[8], got[11], got[14]
    assert blocks[0] == lines[0] == modules[0] == 0 and blocks[1] > 100 and blocks[2] > 60
    assert lines[2] == lines[3] < lines[1] and 1 < modules[3] < lines[3] and hidden
    assert tip.split(", ")[0] == " ".join(words.split()[:2]) == " ".join(card.split()[:2]) and "train.py:" in tip


@needs_browser
def test_ranks_as_lines(tool, tmp_path):
    """By rank every rank is a line of its own colour with the bytes that `live` has; the one under the pointer is named, and a click chooses it."""
    line = "event block_%s time_ns=%d addr=%d size=%d arg0=%d arg1=%d thread=1\n"
    files = []
    for i in range(4):
        low, high, end = (20 + 10 * i) * MIB, (100 - 20 * i) * MIB, (900, 1000, 600, 1000)[i]
        text = f"meta rank {i}\nthread 1 1 main\n" + line % ("alloc", 0, 1 << 28, low, low, 3 * low) + line % ("alloc", 300, 1 << 30, high, low + high, 3 * low) + line % ("free", end, 1 << 30, high, low, 3 * low)
        files.append(record(tmp_path, text, f"rank{i}.gmt"))
    tool("html", *files, "-o", tmp_path / "ranks.html")
    rows = "window.gpumemtrace.timeline.drawn().lines.rows.map((r) => [0.1, 0.5, 0.99].map((x) => r.values[Math.floor(x * r.values.length)] || 0))"
    seen = """(() => { const c = document.querySelector('.chart canvas'), all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, found = new Set();
      for (let i = 0; i < all.length; i += 4) found.add(all[i] + ',' + all[i + 1] + ',' + all[i + 2]);
      return [...document.querySelectorAll('.legend [data-rank] .swatch')].map((s) => getComputedStyle(s).backgroundColor.match(/\\d+/g).join()).map((k) => found.has(k)) })()"""
    place = """(() => { const { lines, chart } = window.gpumemtrace.timeline.drawn(), c = document.querySelector('.chart canvas').getBoundingClientRect(), low = 16 + (c.height - 16 - 16 - 16 - 18) * (1 - lines.rows[%d].values[Math.floor(0.5 * lines.rows[0].values.length)] / lines.most / 1.08);
      const e = (type) => document.querySelector('.chart canvas').dispatchEvent(new PointerEvent(type, { clientX: c.left + 62 + 0.5 * (c.width - 76), clientY: c.top + low, pointerId: 1, bubbles: true }));
      e('pointermove'); return document.querySelector('.readout .band').textContent })()"""
    got = browse(tmp_path / "ranks.html", {"click": "[aria-label=Axis] [value=time]"}, {"click": "[aria-label=Colour] [value=rank]"}, SETTLE, rows, seen, *[place % i for i in range(4)],
                 {"click": ".legend [data-rank='2']"}, SETTLE, "[window.gpumemtrace.app.track.rank, location.hash]")
    said = [[tool.json("live", f, "--at", str(at))["bytes"] for at in (100, 500)] for f in files]
    assert [r[:2] for r in got[3]] == said and [r[2] for r in got[3]] == [120 * MIB, 110 * MIB, 0, 90 * MIB]  # rank 2 has ended
    assert got[4] == [True] * 4 and [text.split(",")[0] for text in got[5:9]] == [f"rank {i}" for i in range(4)]
    assert str(got[11][0]) == "2" and "rank=2" in got[11][1]


@needs_browser
def test_two_moments(page):
    """From a marked moment to a later one: only blocks that were made in between and are still there, in table, flame graph and address."""
    state = """(() => { const g = window.gpumemtrace, { app } = g, all = g.moment().blocks, now = all.filter((e) => e.block.seq > app.mark);
      return [app.mark, document.querySelector('.blocks .summary').textContent, now.length, all.length, now.reduce((s, e) => s + e.size, 0), g.flame.tree().bytes] })()"""
    got = browse(page, "window.gpumemtrace.chooseMoment(400)", {"press": "m", "on": ".chart"}, {"press": "p", "on": ".chart"}, SETTLE, state, "location.hash", {"reload": True}, state,
                 {"press": "p", "on": ".chart"}, {"press": "m", "on": ".chart"}, {"press": "m", "on": ".chart"}, SETTLE, "[window.gpumemtrace.app.mark, document.querySelector('.filters select[aria-label=Age]').value]")
    mark, words, blocks, alive, size, flame = got[4]
    assert mark == 400 and 0 < blocks < alive and f"in {blocks} block" in words and flame == size
    assert "since=400" in got[5] and got[7] == got[4] and got[12] == [0, "0"]


@needs_browser
def test_a_line_is_copied_from_card_and_flame_graph(page):
    """The whole path with its line, of the block and of the frame that is entered."""
    grab = "(window.copied = [], Object.defineProperty(navigator, 'clipboard', { value: { writeText: (t) => { window.copied.push(t); return Promise.resolve(); } } }), 0)"
    got = browse(page, grab, {"click": ".space .row >> nth=0"}, SETTLE, {"click": ".card .copy"}, {"click": "button[value=flame]"}, {"press": "ArrowDown", "on": ".tab.flame .flame"}, {"press": "ArrowDown", "on": ".tab.flame .flame"}, SETTLE,
                 "document.querySelector('.tab.flame .copy').click()", "window.copied", "[window.gpumemtrace.app.block.origin.file + ':' + window.gpumemtrace.app.block.origin.line, document.querySelector('.tab.flame .readout .frame').title]")
    card, frame = got[9]
    assert card == got[10][0] and re.fullmatch(re.escape(got[10][1]) + r":\d+", frame)


@needs_browser
def test_strays_are_those_of_the_report(tool, tmp_path):
    """Both that differ are named, from the lower of two medians, as `report` has them."""
    line = "event block_alloc time_ns=100 addr=268435456 size=%d arg0=%d arg1=%d thread=1\n"
    files = [record(tmp_path, f"meta rank {i}\nthread 1 1 main\n" + line % (3 * (n * MIB,)), f"rank{i}.gmt") for i, n in enumerate((100, 101, 140, 100, 60, 100))]
    tool("html", *files, "-o", tmp_path / "ranks.html")
    said = tool.json("report", *files)
    odd, words, first = browse(tmp_path / "ranks.html", "[...document.querySelectorAll('table.ranks tr.odd')].map((r) => r.cells[0].textContent)", "document.querySelector('#ranks .headline').textContent",
                               "[...document.querySelectorAll('#findings [data-kind=ranks]')].map((li) => li.innerText.split(/\\s+/).join(' '))")
    assert [int(text.split()[1].strip(",")) for text in odd] == sorted(int(re.search(r"rank(\d)", s["recording"])[1]) for s in said["stray"]) == [2, 4]
    assert all("40.0 MiB" in text and "the median of all 6, mostly in unknown" in text for text in first) and ["rank 2" in text for text in first].count(True) == ["rank 4" in text for text in first].count(True) == 1
    assert "rank 2" in words and "40.0 MiB above" in words and "40.0 MiB below" in words and said["median"]["peak_bytes"] == 100 * MIB


@needs_browser
def test_an_address_names_rank_and_block(pages):
    block = browse(pages["run"], "window.gpumemtrace.chooseBlock(window.gpumemtrace.moment().blocks[3].block)", SETTLE, "location.hash", {"reload": True}, "window.gpumemtrace.app.block.seq", "document.querySelector('.card h3').innerText")
    assert f"block={block[4]}" in block[2] and block[5]
    rank = browse(pages["ranks"], {"click": "tr[data-rank='2']"}, SETTLE, "location.hash", {"reload": True}, "window.gpumemtrace.app.track.rank")
    assert "rank=2" in rank[2] and str(rank[4]) == "2"


# The address

@needs_browser
def test_the_address_holds_the_view(page):
    """A link, a reload and the way back show the moment, the classes and the stretch again; a link to a panel moves there alone."""
    state = "(() => { const { app } = window.gpumemtrace; return [app.seq, app.shown.map((on, k) => on && app.doc.classes[k].name).filter((n) => ['activations', 'parameters', 'inputs'].includes(n)), app.timeline.state()[1]] })()"
    got = browse(page, {"press": "Home", "on": ".chart"}, SETTLE, state, "location.hash", {"drag": ".chart canvas", "from": 300, "to": 500}, SETTLE,
                 {"click": ".legend button[data-words=activations]"}, SETTLE, state, "location.hash", {"reload": True}, state, {"click": "nav a[href='#steps']"}, SETTLE, "location.hash",
                 "history.back()", SETTLE, "history.back()", SETTLE, state, "location.hash", "history.back()", SETTLE, state, "location.hash",
                 "location.hash = 'at=400&class=activations,inputs&zoom=events:300-500'", SETTLE, state, "document.querySelector('.legend button[data-words=parameters]').getAttribute('aria-pressed')")
    first, hash1, zoomed, hash2, again, hash3 = got[2], got[3], got[8], got[9], got[11], got[14]
    assert hash1 == f"#at={first[0]}" and first[2] == ""
    assert "activations" not in zoomed[1] and "parameters" in zoomed[1] and re.fullmatch(r"events:\d+-\d+", zoomed[2]) and "class=" in hash2 and "zoom=" in hash2
    assert again[0] == zoomed[0] and again[1:] == zoomed[1:] and hash3 == hash2
    assert got[19] == first and got[20] == hash1
    assert got[23][0] > 900 and got[24] == "" and got[23][1:] == first[1:]
    assert got[27][:2] == [400, ["inputs", "activations"]] and got[27][2] == "events:300-500" and got[28] == "false"


@needs_browser
def test_the_address_holds_the_text(page):
    """The text of the search is in the link; reload and the way back restore it, in the field, too, though the cursor is in it."""
    search, state = ".filters input", "[window.gpumemtrace.moment().blocks.length, document.querySelector('.summary').textContent, document.querySelector('.filters input').value]"
    got = browse(page, state, {"type": " Attention & ", "on": search}, SETTLE, "location.hash", {"type": "c_attn|=+%'\"", "on": search}, SETTLE, {"type": "Conv1D", "on": search}, SETTLE,
                 state, "location.hash", {"reload": True}, state, "document.querySelector('.filters input').focus()", "history.back()", SETTLE, state, "history.back()", SETTLE, state, "history.back()", SETTLE, state)
    assert got[0][2] == "" and "text=attention%20%26" in got[3] and got[9].endswith("text=conv1d")
    assert " of " in got[8][1] and got[8][1] != got[0][1] and got[11] == got[8][:2] + ["conv1d"]
    assert [got[i][2] for i in (15, 18)] == ["c_attn|=+%'\"", "attention &"] and got[21] == got[0]


@needs_browser
def test_the_address_holds_the_filters(page):
    """Each choice is in the link and restored, in its field, too; words that mean nothing choose nothing."""
    state = "[window.gpumemtrace.moment().blocks.length, document.querySelector('.summary').textContent, ...[...document.querySelectorAll('.filters select')].map((s) => s.value)]"
    fields = {"Class": "String(window.gpumemtrace.app.doc.classes.findIndex((c) => c.name === 'parameters'))", "Size": "'1048576'", "Age": "'first'"}
    choose = [f"(() => {{ const s = document.querySelector('.filters select[aria-label={name}]'); s.value = {value}; s.dispatchEvent(new Event('change')); }})()" for name, value in fields.items()]
    got = browse(page, state, *choose, SETTLE, state, "location.hash", {"reload": True}, state, "location.hash = 'at=400&of=none&size=x&age=never&stream=77'", SETTLE, "document.querySelector('.summary').textContent",
                 "location.hash = 'at=400&of=inputs'", SETTLE, "new Set(window.gpumemtrace.moment().entries.map((e) => window.gpumemtrace.app.doc.classes[e.category].name)).size")
    assert "&of=parameters&size=1048576&age=first" in got[6] and got[5][3:5] == ["1048576", "first"] and " of " in got[5][1]
    assert got[8] == got[5] and " of " not in got[11] and got[14] == 1


# Events

@needs_browser
def test_events_around_the_moment(tool, page):
    """The list is that of `dump`, in order; the keys go along it; a free says its line, or the phase where the recording has no stack of it."""
    run = ROOT / "tests/data/example/old.gmt"
    told = [e for e in map(json.loads, tool("dump", run, "--json").splitlines()) if e.get("kind") in ("block_alloc", "block_free")]
    rows = "[...document.querySelectorAll('table.events tbody tr')].map((r) => [Number(r.dataset.seq), r.classList.contains('on'), ...[...r.cells].map((c) => c.textContent)])"
    keys, list_ = [{"press": "ArrowDown", "on": ".tab.events > div"}] * 3, {"press": "ArrowUp", "on": ".tab.events > div"}
    got = browse(page, {"click": "[aria-label=View] [value=events]"}, rows, *keys, rows, "document.querySelector('.card').innerText", list_, list_, "window.gpumemtrace.app.seq",
                 {"type": "layer.forward", "on": ".filters input"}, SETTLE, rows, {"click": ".events tbody tr:last-child"}, rows)

    def around(seq):
        (at,) = [i for i, e in enumerate(told) if e["seq"] == seq]
        return told[at - 12:at + 13], at

    def made_by(seq):
        at = around(seq)[1]
        made = next(e for e in told[at::-1] if e["addr"] == told[at]["addr"] and e["kind"] == "block_alloc")
        return [f["function"] for f in tool.json("stack", run, made["stack"])["frames"]]

    for shown in (got[1], got[5]):
        here = next(r[0] for r in shown if r[1])
        expected, at = around(here)
        assert [r[0] for r in shown] == [e["seq"] for e in expected] and sum(r[1] for r in shown) == 1
        for r, e in zip(shown, expected):
            assert r[4][0] == "+-"[e["kind"] == "block_free"] and r[6].startswith(("allocated by ", "freed")[e["kind"] == "block_free"])
            if e["kind"] == "block_free" and e["stack"]:
                frames = [f"{f['function']} {os.path.basename(f['file'])}:{f['line']}" for f in tool.json("stack", run, e["stack"])["frames"] if f["kind"] == "python"]
                assert r[6].removeprefix("freed by ") in frames
            elif e["kind"] == "block_free":
                assert e["name"].endswith("Backward0") and r[6] == "freed: step 2, backward"
    assert {"freed by" in r[6] for r in got[1] if r[4][0] == "-"} == {True, False}
    assert got[5][12][0] == told[around(got[1][12][0])[1] + 3]["seq"] and "Freed" in got[6] and got[9] == told[around(got[1][12][0])[1] + 1]["seq"]
    assert 5 < len(got[12]) <= 25 and all("Layer.forward" in made_by(r[0]) for r in got[12]) and got[14][-1][0] >= got[12][-1][0]


@needs_browser
def test_theme_is_remembered(page):
    for theme, other in (("light", "dark"), ("dark", "light")):
        assert browse(page, "document.documentElement.dataset.theme", {"click": "#theme"}, {"reload": True}, "document.documentElement.dataset.theme", theme=theme)[::3] == [theme, other]


# Keys

@needs_browser
def test_keys(page):
    """The readout follows the key though the pointer rests elsewhere; Escape closes the nearest thing; ? names all keys."""
    said = "document.querySelector('#timeline .readout').textContent"
    got = browse(page, {"hover": ".chart canvas", "at": {"x": 300, "y": 100}}, said, {"press": "End", "on": ".chart"}, said, "window.gpumemtrace.app.seq.toLocaleString('en')",
                 {"press": "p", "on": ".chart"}, {"click": ".space .row >> nth=0"}, {"press": "+", "on": ".chart"}, {"press": "Escape", "on": ".chart"},
                 "[document.querySelector('.card').hidden, window.gpumemtrace.app.timeline.state()[1]]", {"press": "Escape", "on": ".chart"}, "document.querySelector('.card').hidden",
                 {"press": "?"}, "[document.querySelector('dialog').open, document.querySelector('dialog').textContent]", {"press": "Escape"}, "document.querySelector('dialog').open", {"click": "#help"},
                 "document.querySelector('dialog').open")
    assert f"event {got[4]}" in got[3] and got[1] != got[3]
    assert got[9] == [False, ""] and got[11] is True
    assert got[13][0] and "zoom in" in got[13][1] and "[object" not in got[13][1] and got[15] is False and got[17] is True


# Readers of all kinds

@pytest.fixture(scope="session")
def others(tmp_path_factory):
    """Pages of a search and of a lake."""
    folder = made_once(tmp_path_factory, "other_pages", lambda folder: (make_search(folder), TOOLS.exists() and make_lake(folder)))
    return {"search": folder / "search/index.html", "lake": folder / "lake.html" if TOOLS.exists() else None}


@pytest.fixture(scope="module")
def pages(page, others, tmp_path_factory):
    from conftest import Tool
    folder, tool = tmp_path_factory.mktemp("pages"), Tool()
    tool("diff", *(ROOT / f"tests/data/example/{side}.gmt" for side in ("old", "new")), "-o", folder / "diff.html")
    one = "".join(f"event block_alloc time_ns={100 + i} addr={(256 + i) * MIB} size={MIB} arg0={i * MIB} arg1={64 * MIB} thread=1\n" for i in range(9))
    tool("html", *(record(folder, f"meta rank {i}\nthread 1 1 main\n{one}", f"rank{i}.gmt") for i in range(3)), "-o", folder / "ranks.html")
    return {"run": page, "diff": folder / "diff.html", "ranks": folder / "ranks.html", **others}


def make_search(folder):
    """Cards that fit and one that does not, with values that vary."""
    subprocess.run(["make", "-s", "build/programs/takes"], cwd=ROOT, check=True)
    subprocess.run([BUILD / "gpumemtrace", "fit", "-o", folder / "search", "--cards", "h100-80g,b=1GiB", "--vary", "blocks=1,2,200", "--", ROOT / "build/programs/takes", "--mib", "8"],
                   check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def make_lake(folder):
    env = {**os.environ, "GPUMEMTRACE_PYTHON": str(TOOLS)}
    for command in (["collect", *(ROOT / f"tests/data/example/{side}.gmt" for side in ("old", "new")), "-o", folder / "lake"], ["dashboard", folder / "lake", "-o", folder / "lake.html"]):
        subprocess.run([BUILD / "gpumemtrace", *command], check=True, capture_output=True, env=env)


def check_with_axe(path, theme, *before, each=True):
    """What axe-core says of a page, after each of some actions, or after them all."""
    look = VIOLATIONS, SMALL
    got = browse(path, AXE.read_text() + ";0", *(x for action in before for x in (action, *look * each)), SETTLE, *look, theme=theme)
    return [x for x in got if isinstance(x, list) and x]


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("which", ["run", "diff", "ranks", "search", "lake"])
def test_axe_finds_nothing(pages, which, theme):
    if not pages[which]:
        pytest.skip("no .venv-tools: scripts/setup.sh tools")
    opened = [] if which in ("diff", "search", "lake") else ["window.gpumemtrace.chooseBlock(window.gpumemtrace.moment().blocks[0].block)", {"click": ".legend button >> nth=0"}, {"click": "button[value=segments]"}]
    if theme == "dark":  # has other colours, and nothing else: looked at where most is open
        assert check_with_axe(pages[which], theme, *opened, each=False) + check_with_axe(pages[which], theme, {"press": "?"}, each=False) == []
        return
    assert "violations" in browse(pages[which], AXE.read_text() + ";0", "document.querySelector('#nav').innerHTML = '<a href=\"#x\"></a>'; " + VIOLATIONS.replace("r.violations.map", "r.violations.length && ['violations'] || r.violations.map"))[1]
    assert check_with_axe(pages[which], theme, SETTLE, *opened, {"press": "?"}) == []


@needs_browser
def test_terminal_and_page_show_the_same(page):
    """Marks of direction, characters that are not seen, controls and bytes that are no text: as the same escape in both; letters of any script stay."""
    points = [*range(1, 32), *range(0x7f, 0xa1), 0x61c, 0x180e, *range(0x200a, 0x2012), *range(0x2026, 0x2030), *range(0x205f, 0x2071), 0xfeff, *range(0xfff8, 0xfffe),
              0xe0001, 0xe0041, 0xe007f, 0xe0080, 0x4e2d, 0x5d0, 0x1f600, 0xe9]
    names = ["x%sy" % chr(p) for p in points] + ["x\udcffy", "x\udc80\udcc3y"]
    shown = browse(page, "(() => { %s\nreturn visible(%s) })()" % ((ROOT / "viewer/page/assets/human.js").read_text(), json.dumps("|".join(names))))[0].split("|")
    said = "".join(subprocess.run([BUILD / "gpumemtrace", "report", os.fsencode("|".join(names[i:i + 20]))], capture_output=True).stderr.decode().split(": ", 1)[1].split(": No such")[0] + "|"
                   for i in range(0, len(names), 20)).rstrip("|").split("|")
    assert {n: (a, b) for n, a, b in zip(names, shown, said) if a != b} == {} and len(shown) == len(said) == len(names)
    assert shown[-3:] == ["xéy", "x\\xffy", "x\\x80\\xc3y"] and "x\\u202ey" in shown and "x\\U000e0041y" in shown


@needs_browser
@pytest.mark.parametrize("which", ["search", "lake"])
def test_wide_tables_keep_their_headings_on_a_phone(pages, which):
    """Above each cell stands its heading, and the page itself does not scroll sideways."""
    if not pages[which]:
        pytest.skip("no .venv-tools: scripts/setup.sh tools")
    off, wide = browse(pages[which], """[...document.querySelectorAll('table.lake, table.search')].flatMap((t) => { const head = [...t.tHead.rows[0].cells].map((c) => c.getBoundingClientRect());
      return [...t.tBodies[0].rows].flatMap((r) => [...r.cells].filter((c, i) => Math.abs(c.getBoundingClientRect().left - head[i].left) > 1 || !head[i].height)).map((c) => c.textContent) })""",
                       "document.documentElement.scrollWidth - innerWidth", width=400)
    assert off == [] and wide == 0


@needs_browser
def test_states_are_said(pages):
    """A state that is off is written, too, from the start."""
    for path in (pages[name] for name in ("run", "diff", "ranks")):
        states, sorts = browse(path, "[...document.querySelectorAll('[aria-pressed]')].map((b) => b.getAttribute('aria-pressed'))", "[...document.querySelectorAll('[aria-sort]')].map((e) => e.tagName + e.getAttribute('role'))")
        assert {"true", "false"} == set(states) and {"BUTTON"} & {s[:6] for s in sorts} == set()
    hidden = browse(pages["run"], "document.querySelector('.line-used').click()", {"click": ".legend button >> nth=0"},
                    "['.legend button', '.line-used'].map((b) => document.querySelector(b).getAttribute('aria-pressed'))")
    assert hidden[2] == ["false", "false"]


@needs_browser
def test_on_paper_and_in_forced_colours(page):
    """Print is light whatever the screen is, with its swatches and a chart to match; forced colours keep swatches and words."""
    ink = "(() => { const d = " + PIXELS + ".getImageData(0, 0, 60, 300).data; let s = 0, n = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) { s += d[i]; n++; } return s / n })()"
    swatch = "(() => { const s = getComputedStyle(document.querySelector('.swatch')); return [s.backgroundColor, s.printColorAdjust, s.forcedColorAdjust] })()"
    paper = "getComputedStyle(document.body).backgroundColor"
    got = browse(page, paper, ink, swatch, "dispatchEvent(new Event('beforeprint'))", {"media": {"media": "print"}}, paper, ink, swatch, "dispatchEvent(new Event('afterprint'))", {"media": {"media": "screen"}}, SETTLE, paper,
                 {"media": {"forced_colors": "active"}}, swatch, "getComputedStyle(document.querySelector('.choice [aria-pressed=true]')).backgroundColor !== getComputedStyle(document.querySelector('.choice [aria-pressed=false]')).backgroundColor", theme="dark")
    assert got[0] == got[11] == "rgb(21, 24, 27)" and got[5] == "rgb(252, 252, 250)"
    assert got[6] < got[1] - 20  # dark figures on the paper
    assert got[2] == got[7] == got[13] and got[2][1:] == ["exact", "none"] and got[14] is True


def seen(colour, matrix):
    """CIE Lab of an 0xrrggbb as the matrix has it in linear light."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in ((colour >> shift & 255) / 255 for shift in (16, 8, 0))]
    r, g, b = (min(1, max(0, sum(m * v for m, v in zip(row, linear)))) for row in matrix)
    x, y, z = ((t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116) for t in
               ((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


# Machado, Oliveira, Fernandes 2009: all of a kind of cone missing.
EYES = {"all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))}


@pytest.mark.parametrize("eye", EYES)
def test_colours_differ_for_every_eye(eye):
    """Any two classes can lie beside each other in a stack."""
    rows = re.findall(r'^CATEGORY\((\w+), "[^"]*", 0x([0-9a-f]{6}), ', (ROOT / "viewer/classes/categories.def").read_text(), re.M)
    colours = {name: seen(int(colour, 16), EYES[eye]) for name, colour in rows}
    assert len(colours) >= 13
    near = [(a, b) for a, b in itertools.combinations(colours, 2) if sum((p - q) ** 2 for p, q in zip(colours[a], colours[b])) < 10 ** 2]
    assert near == []
