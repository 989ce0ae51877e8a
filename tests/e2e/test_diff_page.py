# SPDX-License-Identifier: Apache-2.0
"""The page of `gpumemtrace diff -o X.html`: its numbers are those of the text and the JSON, both runs stand on one axis,
and it keeps the promises of the page of a run (test_html.py): silent, no network, names stay text, small."""
import json
import os
import re
import subprocess

import pytest

from test_diff import ADAM, NOTHING, SGD, edit, moved, pipeline, versions
from test_html import BUILD, MIB, ROOT, SETTLE, browse, document, hostile, makers, needs_browser, record  # noqa: F401 (makers: a fixture)

CHANGE = pipeline(edit(("LAYERS = 8, 128, 512, 128, 4", "LAYERS = 8, 128, 512, 128, 5"), (ADAM, SGD[1])), moved)
ROWS = "[...document.querySelectorAll('#%s tbody tr')].map((r) => [r.dataset.name, Number(r.dataset.old), Number(r.dataset.new), r.cells[0].textContent, ...[...r.cells].slice(1).map((c) => c.textContent)])"
WORDS = {"new": lambda a, b: not a < 0 and a == 0 < b, "gone": lambda a, b: b == 0 < a, "grown": lambda a, b: 0 < a < b, "shrunk": lambda a, b: a > b > 0, "same": lambda a, b: a == b}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two versions of the program of test_diff.py: one layer more, no AdamW, all lines moved."""
    from conftest import Programs, Tool
    programs = Programs(tmp_path_factory.mktemp("pair"))
    old, new = versions(programs, "old", NOTHING), versions(programs, "new", CHANGE)
    Tool()("diff", old, new, "-o", programs.folder / "diff.html")
    return old, new, programs.folder / "diff.html"


@needs_browser
def test_same_numbers_as_text_and_json(tool, pair):
    old, new, page = pair
    said, text = tool.json("diff", old, new), tool("diff", old, new, "--top", "0")
    flat = re.sub(r"\s+", " ", text)
    delta, summary, findings, classes, phases, modules, lines = browse(
        page, "Number(document.getElementById('delta').dataset.bytes)", "document.getElementById('summary').textContent",
        "[...document.querySelectorAll('.findings li')].map((f) => [f.dataset.kind, f.querySelector('.text').textContent])",
        *(ROWS % panel for panel in ("classes", "phases", "modules", "lines")))
    assert delta == said["delta"] and summary.rstrip(".") in text
    assert findings == [[f["kind"], f["text"]] for f in said["findings"]] and len(findings) >= 2
    for _, sentence in findings:
        assert sentence in flat
    assert {r[0]: (r[1], r[2]) for r in classes} == {c["class"]: (c["bytes_old"], c["bytes_new"]) for c in said["classes"]}
    assert [(r[1], r[2]) for r in phases] == [(p["bytes_old"], p["bytes_new"]) for p in said["phases"]]
    assert [(r[0], r[1], r[2]) for r in modules] == [(m["module"], m["bytes_old"], m["bytes_new"]) for m in said["modules"]]
    assert [(r[0].split()[0], r[1], r[2]) for r in lines] == [(x["class"], x["bytes_old"], x["bytes_new"]) for x in said["lines"]]
    assert [x["function"] in r[0] for r, x in zip(lines, said["lines"])] == [True] * len(lines)
    for row in classes + modules + lines:
        assert WORDS[row[-1]](row[1], row[2]), row
        assert re.search(rf" {re.escape(row[4])} +{re.escape(row[5])} +{re.escape(row[6])}\n", text), row


@needs_browser
def test_findings_are_shown_before_the_rest_is_read(tool, pair):
    shown, read, words = browse(pair[2], "performance.getEntriesByName('findings-shown')[0].startTime", "performance.getEntriesByType('navigation')[0].domInteractive",
                                "(() => { const first = JSON.parse(document.getElementById('first').textContent); return first.head.findings.map((f) => first.texts[f.text]) })()")
    assert shown < read and words == [f["text"] for f in tool.json("diff", *pair[:2])["findings"]]


@needs_browser
def test_both_runs_on_one_axis(tool, pair):
    """Each side's curve is that of its recording, and in the aligned view step k of the one stands above step k of the other."""
    old, new, page = pair
    places, peaks, shown = browse(
        page,
        """(() => { const { pair } = window.gpumemtrace.timeline; return pair.charts.map((c) => c.track.steps.items.filter((s) => s.kind === 'step')
             .map((s) => c.place(s.firstSeq, s.firstNs))) })()""",
        "window.gpumemtrace.app.doc.tracks.map((t) => [t.peak_bytes, Math.max(...t.points.map((p) => p.bytes)), t.curve.group])",
        """(() => { const { pair, pointsAt } = window.gpumemtrace.timeline; return [0, 1].map((i) => { const t = pair.charts[i].track;
             return pointsAt(pair.charts[i].x(t.points.find((p) => p.seq === t.peak_seq)))[i].bytes }) })()""")
    assert places[0] == places[1] and len(places[0]) == 5
    reports = [tool.json("report", f)["devices"][0]["peak_bytes"] for f in (old, new)]
    assert [p[0] for p in peaks] == [p[1] for p in peaks] == shown == reports


@needs_browser
def test_hover_reads_both(tool, pair):
    old, new, page = pair
    keys = [{"press": "p", "on": ".chart"}, "[...document.querySelectorAll('#timeline .readout [data-bytes]')].map((b) => Number(b.dataset.bytes))",
            "document.querySelector('#timeline .readout').textContent",
            {"wheel": -300, "on": ".chart canvas"}, {"drag": ".chart canvas", "from": 200, "to": 400}, {"press": "ArrowRight", "on": ".chart"},
            {"click": "#timeline button[value=time]"}, {"press": "0", "on": ".chart"}, {"press": "o", "on": ".chart"},
            "[...document.querySelectorAll('#timeline .readout [data-bytes]')].map((b) => Number(b.dataset.bytes))"]
    got = browse(page, *keys)
    peaks = [tool.json("report", f)["devices"][0]["peak_bytes"] for f in (old, new)]
    assert got[1][1] == peaks[1] and f"{peaks[1]:,} B" in got[2] and "step" in got[2]
    assert got[9][0] == peaks[0]


@needs_browser
def test_flame_graph_sums(tool, pair):
    """All of both sides is in it, and of each finding what the finding says."""
    old, new, page = pair
    said = tool.json("diff", old, new)
    real = [(i + 1, f) for i, f in enumerate(said["findings"]) if f["kind"] != "moved"]
    sums, bad, widths, *each = browse(
        page, "(() => { const r = window.gpumemtrace.flame.tree(); return [r.old, r.new] })()",
        """(() => { let bad = 0; const walk = (n) => { const c = [...n.children.values()], s = (k) => c.reduce((a, x) => a + x[k], 0);
             if (c.length) for (const k of ['old', 'new', 'both']) if (s(k) > n[k]) bad++; if (n.both < Math.max(n.old, n.new)) bad++; c.forEach(walk) }; walk(window.gpumemtrace.flame.tree()); return bad })()""",
        "['old', 'new', 'both'].map((k) => { document.querySelector(`#flame button[value=${k}]`).click(); return window.gpumemtrace.flame.view.o.weight(window.gpumemtrace.flame.tree()) })",
        *(f"(() => {{ document.querySelector('.findings button[value=\"{i}\"]').click(); const r = window.gpumemtrace.flame.tree(); return [r.old, r.new] }})()" for i, _ in real))
    assert sums == [said["old"]["compared"]["bytes"], said["new"]["compared"]["bytes"]]
    assert bad == 0 and widths[:2] == sums and widths[2] >= max(sums)
    assert each == [[f["bytes_old"], f["bytes_new"]] for _, f in real]


@needs_browser
def test_flame_graph_of_each_peak(tool, tmp_path):
    """Where the peak moved to another phase, the graph has each side at its own peak, too."""
    mark = "event range_begin time_ns=%d name=1 arg0=%d arg1=1 thread=1\n"
    block = "event block_alloc time_ns=%d addr=%d size=%d arg0=1 arg1=67108864 thread=1\n"
    step, made = "string 1 Optimizer.step#Adam.step\n", []
    for name, forward, inside in ("old", 8 << 20, 1 << 20), ("new", 2 << 20, 16 << 20):
        lines = "thread 1 1 main\n" + step + block % (100, 1 << 28, forward) + f"event block_free time_ns=150 addr={1 << 28} size={forward} thread=1\n"
        lines += mark % (200, 1) + block % (300, 1 << 29, inside) + "event range_end time_ns=400 name=1 arg0=1 arg1=1 thread=1\n"
        made.append(record(tmp_path, lines, name + ".gmt"))
    said = tool.json("diff", *made)
    assert said["peak_phase_old"] != said["peak_phase_new"]
    tool("diff", *made, "-o", tmp_path / "x.html")
    compared, peaks = browse(tmp_path / "x.html", *("(() => { document.querySelector('#flame button[value=%s]').click(); const r = window.gpumemtrace.flame.tree(); return [r.old, r.new] })()" % v for v in ("compared", "peaks")))
    assert compared == [said["old"]["compared"]["bytes"], said["new"]["compared"]["bytes"]] and peaks == [8 << 20, 16 << 20] != compared


@needs_browser
def test_moved_lines_are_one_frame(pair):
    """The new version has all lines moved: what lives in both is one frame with both lines, not one gone and one new."""
    frames, readout = browse(pair[2], """(() => { const out = []; const walk = (n) => { out.push([n.frame.fn, n.frame.line, n.frame.was, n.old, n.new]); n.children.forEach(walk) };
        walk(window.gpumemtrace.flame.tree()); return out })()""", {"hover": ".flame canvas", "at": {"x": 300, "y": 30}}, "document.querySelector('#flame .readout').textContent")[::2]
    block = [f for f in frames if f[0] == "Block.forward"]
    assert block and all(line and was and line != was and a and b for _, line, was, a, b in block)
    assert re.search(r"(grown|shrunk|same|new|gone)old [\d.]+ \w+ [\d,]+ Bnew [\d.]+ \w+ [\d,]+ B", readout)


@needs_browser
@pytest.mark.parametrize("theme,width", [("light", 1280), ("dark", 1280), ("light", 390)])
def test_panels_and_controls(pair, theme, width):
    got = browse(
        pair[2], "[...document.querySelectorAll('#panels > section:not([hidden])')].map((s) => s.id)",
        "[...document.querySelectorAll('canvas')].filter((c) => c.offsetParent).every((c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size > 3)",
        "document.documentElement.scrollWidth <= window.innerWidth",
        {"click": "#lines .sort >> nth=1"}, "[...document.querySelectorAll('#lines tbody tr')].map((r) => Number(r.dataset.old))",
        {"click": "#lines .sort >> nth=1"}, "[...document.querySelectorAll('#lines tbody tr')].map((r) => Number(r.dataset.old))",
        {"click": "#lines button[value=all]"}, "document.querySelectorAll('#lines tbody tr').length",
        {"type": "attention", "on": "#lines input"}, "[...document.querySelectorAll('#lines tbody tr')].every((r) => r.textContent.includes('Attention'))",
        {"type": "attention", "on": "#flame input"}, {"click": ".flame canvas", "at": {"x": 60, "y": 50}}, {"press": "Escape", "on": ".flame"},
        {"click": "#theme"}, "document.documentElement.dataset.theme", theme=theme, width=width)
    assert got[0] == ["findings", "timeline", "flame", "classes", "phases", "modules", "lines", "run"]
    assert got[1] and got[2]
    assert got[4] == sorted(got[4], reverse=True) and got[6] == sorted(got[6])
    assert got[8] > len(got[4]) and got[10]
    assert got[15] == ("light" if theme == "dark" else "dark")


@needs_browser
def test_the_same_program_twice(tool, pair, tmp_path):
    tool("diff", pair[0], pair[0], "-o", tmp_path / "same.html")
    headline, body, words = browse(tmp_path / "same.html", "document.getElementById('delta').textContent", "document.getElementById('findings').textContent",
                                   "[...new Set([...document.querySelectorAll('.changes .word')].map((w) => w.textContent))]")
    assert headline == "no difference" and "Nothing differs." in body and words == ["same"]


# Any names, any size

def hostile_pair(tmp_path):
    plain = record(tmp_path, "thread 1 1 main\nevent block_alloc time_ns=100 addr=4096 size=1048576 arg0=1048576 arg1=67108864 thread=1\n", "plain.gmt")
    return plain, hostile(tmp_path).rename(tmp_path / "<b>'\"&.gmt")


@needs_browser
def test_hostile_names_stay_text(tool, tmp_path):
    tool("diff", *hostile_pair(tmp_path), "-o", tmp_path / "x.html")
    scripts, images, text, title = browse(
        tmp_path / "x.html", "document.scripts.length", "document.querySelectorAll('img, svg, iframe, b b').length",
        "(() => { const f = window.gpumemtrace.flame, out = []; const walk = (n) => { f.view.enter(n); out.push(document.querySelector('#flame .readout').innerText); n.children.forEach(walk) }; walk(f.tree()); return document.body.innerText + out.join('\\n') })()",
        "document.title")
    assert scripts == 3 and images == 0 and title.endswith("<b>'\"&.gmt - gpumemtrace")
    for name in ["</script><script>alert(1)</script>", "<!--", "&lt;b&gt;", "__proto__", "\\x1b[31mred", "\\u202egnp.exe", "\\xff\\xfe\\x80"]:
        assert name in text, name
    assert "\x1b" not in text and "\u202e" not in text


def test_no_name_ends_the_document(tool, tmp_path):
    tool("diff", *hostile_pair(tmp_path), "-o", tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert text.count("</script>") == 3 and "<script>alert" not in text and "<img" not in text


def test_redacted(tool, programs, tmp_path):
    """Names of the user's files, folders and arguments, and the host, in findings, stacks, tables and facts."""
    made = []
    for name, layers in ("secretold", 4), ("secretnew", 5):
        made.append(versions(programs, name, edit(("LAYERS = 8, 128, 512, 128, 4", f"LAYERS = 8, 128, 512, 128, {layers}"))))
    tool("diff", *made, "-o", tmp_path / "whole.html")
    tool("diff", *made, "-o", tmp_path / "redacted.html", "--redact")
    whole, redacted = (tmp_path / "whole.html").read_text(), (tmp_path / "redacted.html").read_text()
    for secret in ["secretold", "secretnew", "train.py", str(tmp_path)]:
        assert secret in whole and secret not in redacted, secret
    doc, before = document(tmp_path / "redacted.html"), document(tmp_path / "whole.html")
    assert "model.py" in json.dumps(before) and "model.py" not in json.dumps(doc) and "site-packages" not in json.dumps(doc)
    assert os.uname().nodename in before["words"] and os.uname().nodename not in doc["words"] + doc["texts"]
    assert [(f["kind"], f["old"], f["new"]) for f in doc["head"]["findings"]] == [(f["kind"], f["old"], f["new"]) for f in before["head"]["findings"]] != []
    assert re.search(r"\w+.forward local\d+.py:\d+", doc["words"][doc["head"]["findings"][0]["text"]])


def test_a_long_run_makes_a_small_page(tool, pair, tmp_path):
    """One step of it, two thousand times over, against the run as it was."""
    subprocess.run(["make", "-s", "build/data/make_long"], cwd=ROOT, check=True)
    steps = [r for r in tool.json("steps", pair[0])["rows"] if r["phase"] == "step"]
    subprocess.run([BUILD / "data/make_long", pair[0], tmp_path / "long.gmt", str(steps[1]["begin_ns"]), str(steps[2]["begin_ns"]), "2000"], check=True)
    tool("diff", pair[0], tmp_path / "long.gmt", "-o", tmp_path / "x.html")
    doc = document(tmp_path / "x.html")
    assert doc["tracks"][1]["events"] > 500_000 and doc["tracks"][1]["curve"]["group"] > 1 and (tmp_path / "x.html").stat().st_size < 2_000_000


# The command

def test_what_differs_besides_the_program(tool, tmp_path):
    block = "thread 1 1 main\nevent block_alloc time_ns=100 addr=4096 size=1048576 arg0=1048576 arg1=67108864 thread=1\n"
    same = "meta python.version 3.11\nmeta device.0.name H100\n"
    old = record(tmp_path, "meta torch.version 2.11.0\nmeta device.0.uuid 73696d75-6c61-4065-8020-677075000000\n" + same + block, "old.gmt")
    new = record(tmp_path, "meta torch.version 2.15.0\n" + same + "meta env.PYTORCH_ALLOC_CONF a:<b>\n" + block, "new.gmt")
    said, text, comment = tool.json("diff", old, new), tool("diff", old, new, "-o", tmp_path / "x.html"), tool("diff", old, new, "--markdown")
    assert said["besides"] == [{"what": "torch", "old": "2.11.0", "new": "2.15.0"}, {"what": "device", "old": "simulated H100", "new": "H100"}, {"what": "PYTORCH_ALLOC_CONF", "old": "", "new": "a:<b>"}]
    assert "besides: torch 2.11.0 -> 2.15.0\n" in text and "besides: PYTORCH_ALLOC_CONF none -> a:<b>\n" in text
    assert "- besides: torch 2.11.0 -> 2.15.0\n" in comment and "a:&#60;b&#62;" in comment
    doc = document(tmp_path / "x.html")
    assert [(w, doc["words"][a], doc["words"][b]) for w, a, b in doc["head"]["besides"]] == [("torch", "2.11.0", "2.15.0"), ("device", "simulated H100", "H100"), ("PYTORCH_ALLOC_CONF", "", "a:<b>")]


@pytest.mark.parametrize("words, sentence", [
    (["-o", "x.svg"], "give a name that ends with .html"), (["--redact"], "name it with -o"), (["-o", "no/x.html"], "cannot be written")])
def test_wrong_use(pair, tmp_path, words, sentence):
    done = subprocess.run([BUILD / "gpumemtrace", "diff", pair[0], pair[1], *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (2, 3) and sentence in done.stderr and len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_beside_the_check(pair, tmp_path):
    """The page is written however the check ends, beside what is printed; what was there before and is no page stays."""
    def run(*words):
        return subprocess.run([BUILD / "gpumemtrace", "diff", pair[0], pair[1], *words, "-o", tmp_path / "x.html"], capture_output=True, text=True)
    done = run("--markdown", "--fail-above", "0%", "--class", "activations")
    assert done.returncode == 1 and done.stdout.startswith("### GPU memory") and (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert json.loads(run("--json").stdout)["peak_new"] and "opens in any browser" in run().stdout
    (tmp_path / "x.html").write_text("notes")
    assert run().returncode == 2 and (tmp_path / "x.html").read_text() == "notes" and [p.name for p in tmp_path.iterdir()] == ["x.html"]


@needs_browser
def test_the_curve_of_the_difference(tool, tmp_path):
    """Most and least that the new run has more, where both are running: 4 MiB above, then 2 MiB below; what comes after the old run's end is none."""
    line = "event block_%s time_ns=%d addr=%d size=%d arg0=%d arg1=%d thread=1\n"
    sides = {"old": [("alloc", 0, 1, 8, 8), ("alloc", 900, 2, 2, 10), ("free", 990, 2, 2, 8)],
             "new": [("alloc", 0, 1, 8, 8), ("alloc", 300, 2, 4, 12), ("free", 600, 2, 4, 8), ("alloc", 2000, 2, 64, 72)]}
    files = [record(tmp_path, "thread 1 1 main\n" + "".join(line % (kind, ns * 10**6, at << 28, size * MIB, used * MIB, 99 * MIB) for kind, ns, at, size, used in events), f"{side}.gmt")
             for side, events in sides.items()]
    tool("diff", *files, "-o", tmp_path / "diff.html")
    got = browse(tmp_path / "diff.html", {"click": "button[value=time]"}, SETTLE, "window.gpumemtrace.timeline.apart()", {"click": ".legend button"}, SETTLE)
    assert got[2] == [4 * MIB, -2 * MIB]
