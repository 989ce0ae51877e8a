# SPDX-License-Identifier: Apache-2.0
"""Every page as it is laid out and drawn, at the widths of a phone and a notebook, in light and dark: no line crosses a label, no column is shifted
against its heading, nothing leaves the page. `page_boxes.js` measures: the boxes of elements, and of all that a canvas is told to draw."""
import itertools
import json
import re

import pytest

from conftest import BUILD, ROOT, Tool
from test_html import MIB, SETTLE, browse, look, makers, needs_browser, record  # noqa: F401 (makers: a fixture)
from test_page_looks import others  # noqa: F401 (a fixture)

pytestmark = needs_browser
BOXES = (ROOT / "tests/e2e/page_boxes.js").read_text()
LINE = "event block_%s time_ns=%d addr=%d size=%d arg0=%d arg1=%d thread=1\n"
DATA = ROOT / "tests/data/example"
VIEWER = BUILD / "gpumemtrace.html"

# What else a page shows: clicked before it is measured again.
STATES = {
    "run": ["#timeline button[value=time]", "#timeline button[value=block]", "#moment button[value=flame]", "#moment button[value=segments]", "#moment button[value=events]", ".legend button", ".line-used"],
    "refused": ["#moment button[value=line]", "#moment button[value=class]", "#timeline button[value=events]"],
    "ranks": ["#timeline button[value=rank]"],
    "diff": ["#timeline button[value=time]", "#timeline button[value=events]", ".changes .sort"],
    "unlike": ["#timeline button[value=time]"],
}


def refused(folder):
    """Memory runs out at the peak, under named ranges, in a process whose interpreter has a long path."""
    text = "meta argv /home/x/.venv/bin/python train.py --batch 64\nthread 1 1 main\nmeta device.0.total 1073741824\n"
    text += "".join(f"string {i + 1} a range with a long name {i}\n" for i in range(6))
    at = 0
    for i in range(6):
        at += 160 * MIB
        text += f"event range_begin time_ns={1000 * i} arg0={i + 1} arg1=1 name={i + 1} thread=1\n" + LINE % ("alloc", 1000 * i + 10, (i + 1) << 30, 160 * MIB, at, at + 8 * MIB)
    text += f"event block_oom time_ns=5990 size={200 * MIB} arg0={at} arg1={at + 8 * MIB} thread=1\n"
    return record(folder, text, "refused.gmt")


def unlike(folder):
    """Two runs whose peaks lie at the left edge."""
    files = []
    for name, most in (("old", 100), ("new", 120)):
        text = "thread 1 1 main\n" + LINE % ("alloc", 10, 1 << 28, most * MIB, most * MIB, 160 * MIB) + LINE % ("free", 20, 1 << 28, most * MIB, 0, 160 * MIB)
        files.append(record(folder, text + LINE % ("alloc", 9000, 1 << 29, MIB, MIB, 160 * MIB), f"{name}.gmt"))
    return files


def alike(search, page):
    """The page of a search of three cards that need nearly the same: their curves lie on each other."""
    text = search.read_text()
    before, rest = text.split('<script type="application/json" id="first">', 1)
    document, after = rest.split("</script>", 1)
    doc = json.loads(document)
    rows = [r for r in doc["fit"]["cards"] if r["fits"] and r["measured"]]
    doc["fit"]["cards"] = [{**r, "card": name, "capacity_bytes": capacity << 30} for r in rows for name, capacity in (("l4-24g", 1), ("a100-40g", 2), ("h100-80g", 3))]
    doc["pages"] = [""] * len(doc["fit"]["cards"])
    page.write_text(before + '<script type="application/json" id="first">' + json.dumps(doc).replace("<", "\\u003c") + "</script>" + after)
    return page


@pytest.fixture(scope="module")
def pages(others, tmp_path_factory):  # noqa: F811
    folder, tool = tmp_path_factory.mktemp("boxes"), Tool()
    ranks = []
    for i in range(4):
        text = f"meta rank {i}\nthread 1 1 main\n" + LINE % ("alloc", 0, 1 << 28, (20 + i) * MIB, (20 + i) * MIB, 90 * MIB) + LINE % ("alloc", 600, 1 << 30, 40 * MIB, (60 + i) * MIB, 90 * MIB)
        ranks.append(record(folder, text, f"rank{i}.gmt"))
    tool("html", DATA / "new.gmt", "-o", folder / "run.html")
    tool("html", refused(folder), "-o", folder / "refused.html")
    tool("html", *ranks, "-o", folder / "ranks.html")
    tool("diff", DATA / "old.gmt", DATA / "new.gmt", "-o", folder / "diff.html")
    tool("diff", *unlike(folder), "-o", folder / "unlike.html")
    return {**{name: folder / f"{name}.html" for name in ("run", "refused", "ranks", "diff", "unlike")}, **others, "alike": alike(others["search"], folder / "alike.html")}


WATCH = f"(() => {{ {BOXES}\nwatchCanvases(); window.pageFaults = pageFaults }})()"
PAINT = "(dispatchEvent(new Event('beforeprint')), dispatchEvent(new Event('afterprint')), 0)"


def faults(page, width, theme, states):
    look = PAINT, SETTLE, "pageFaults()"
    steps = [look, *((f"document.querySelector('{state}').click()", *look) for state in states)]
    got = browse(page, WATCH, *itertools.chain(*steps), theme=theme, width=width)
    return sorted({fault for answer in got if isinstance(answer, list) for fault in answer})


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.more)])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("which", ["run", "refused", "ranks", "diff", "unlike", "search", "alike", "lake"])
def test_nothing_is_crossed_shifted_or_cut(pages, which, width, theme):
    if not pages[which]:
        pytest.skip("no .venv-tools: scripts/setup.sh tools")
    assert faults(pages[which], width, theme, STATES.get(which, ()) if theme == "light" else ()) == []


@pytest.mark.skipif(not VIEWER.exists(), reason="no build/gpumemtrace.html (make viewer)")
@pytest.mark.parametrize("theme, width", [("light", 400), ("dark", 1280)])
def test_the_viewer(theme, width):
    """Its first page, and a recording that is opened in it."""
    inside = [{"inside": WATCH}, {"inside": PAINT}, SETTLE, {"inside": "pageFaults()"}]
    actions = [{"evaluate": WATCH}, {"evaluate": "pageFaults()"}, {"open": str(DATA / "new.gmt"), "on": "#files"}, {"await": "iframe"}, *inside, {"evaluate": "pageFaults()"}]
    heard = look(VIEWER, *actions, theme=theme, width=width)["results"]
    assert heard[1] == heard[7] == heard[8] == []


def test_the_measure_finds_what_it_is_for(pages):
    """A line over each label, a cell that is moved, a link without a colour, a wide element, an empty column: each is found."""
    spoil = """(() => { const main = document.querySelector('.chart canvas'), g = main.getContext('2d'), row = document.querySelector('#steps tbody tr');
      g.fillRect(0, 0, main.clientWidth, 1); for (let y = 0; y < main.clientHeight; y += 4) g.fillRect(0, y, main.clientWidth, 1);
      row.cells[2].style.cssText = 'position: relative; left: 40px'; document.querySelector('#findings .body').insertAdjacentHTML('beforeend', '<a href="#x" style="color: blue">blue</a><s>old</s><div style="width: 3000px">wide</div>');
      document.querySelector('#leaks table').tHead.rows[0].append(document.createElement('th')); return pageFaults() })()"""
    found = "\n".join(browse(pages["run"], WATCH, PAINT, SETTLE, spoil)[3])
    for words in ('a line crosses "peak', "is not below", 'the link "blue"', "leaves the page: wide", '"old" is struck through', "nothing in the column", "the page scrolls sideways"):
        assert words in found, words


def test_what_a_card_lacks(pages):
    """As the table and the reasons of the text: a column, and a sentence with what the program took elsewhere."""
    doc = json.loads(pages["search"].read_text().split('<script type="application/json" id="first">')[1].split("</script>")[0])
    small = [r for r in doc["fit"]["cards"] if r.get("lacking_bytes")]
    titles, cells, reasons = browse(pages["search"], "[...document.querySelectorAll('#cards th')].map((c) => c.textContent)", "[...document.querySelectorAll('#cards tbody tr')].map((r) => [...r.cells].map((c) => c.title || (c.firstElementChild || c).title || c.textContent))",
                                    "document.querySelector('#reasons').textContent")
    lacks = [row[titles.index("lacks")] for row in cells]
    assert small and lacks == [f"{r['lacking_bytes']:,} B" if r.get("lacking_bytes") else "" for r in doc["fit"]["cards"]]
    for r in small:
        assert re.search(rf"The program took [\d.,]+ \w+ of {r['needed_on']}, this card has [\d.,]+ \w+ and lacks [\d.,]+ \w+\.", reasons)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_curve_of_a_search_is_hidden(pages, theme):
    """Each of three curves that lie on each other has pixels of its own colour on its way, not only at its ends."""
    seen = """(() => { const c = document.querySelector('#curves canvas'), g = c.getContext('2d'), d = g.getImageData(0, 0, c.width, c.height).data, probe = document.createElement('i'), out = [];
      document.body.append(probe);
      for (const k of [0, 1, 2]) { probe.style.color = `var(--line-${k})`; const want = getComputedStyle(probe).color.match(/\\d+/g).map(Number), columns = new Set();
        for (let i = 0; i < d.length; i += 4) if (want.every((v, j) => Math.abs(d[i + j] - v) < 3) && d[i + 3] > 250) columns.add(i / 4 % c.width);
        out.push(columns.size); }
      return out })()"""
    columns, = browse(pages["alike"], seen, theme=theme)
    assert all(n > 200 for n in columns), columns


def test_rows_of_a_lake_are_low(pages):
    """However long a command, a module or a sentence is: two lines, and all of it after a click."""
    if not pages["lake"]:
        pytest.skip("no .venv-tools: scripts/setup.sh tools")
    highest = "Math.max(...[...document.querySelectorAll('table.lake tbody tr')].map((r) => r.getBoundingClientRect().height))"
    for width in (1280, 400):
        low, long_ones, high = browse(pages["lake"], highest, "[...document.querySelectorAll('.long')].filter((e) => e.scrollHeight > e.clientHeight + 1).map((e) => { e.click(); return e.title === e.textContent && e.scrollHeight <= e.clientHeight + 1 })", highest, width=width)
        assert low <= 50 and long_ones and all(long_ones) and high > low


def test_titles(pages, tmp_path, tool):
    """The command without the interpreter's folder; a file's name in any script."""
    assert browse(pages["refused"], "document.getElementById('command').textContent")[0] == "python train.py --batch 64"
    command, title = browse(pages["search"], "document.getElementById('command').textContent", "document.title")
    assert command.startswith("takes ") and title == f"fit: {command} - gpumemtrace"
    for name, shown in (("modèle-été.gmt", ""), ("モデル <&> 50 %.gmt", ""), ("x\udcff\udce9\u202e.gmt", "x\\xff\\xe9\\u202e.gmt")):
        tool("html", record(tmp_path, "thread 1 1 main\n" + LINE % ("alloc", 1, 1 << 28, MIB, MIB, MIB), name), "-o", tmp_path / "page.html")
        assert browse(tmp_path / "page.html", "document.title") == [f"{shown or name} - gpumemtrace"]


def test_words(pages):
    """The panel of blocks says when, and follows the moment."""
    heading = "[document.querySelector('#moment h2').textContent, document.querySelector('nav a[href=\"#moment\"]').textContent, document.querySelector('#account h2').textContent]"
    got = browse(pages["run"], heading, {"press": "Home", "on": ".chart"}, SETTLE, heading)
    assert got[0][0] == got[0][1] and got[0][0].startswith("Blocks at ") and got[0][2] == "Formulas" and got[3][0] == got[3][1] == "Blocks at 0 ns" != got[0][0]
