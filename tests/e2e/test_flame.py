# SPDX-License-Identifier: Apache-2.0
"""peak and flame: the same bytes as `live`, by the frames of each block's stack; the picture is XML whose widths are
the bytes, whatever a function or a file is called."""
import collections
import json
import os
import subprocess
import xml.etree.ElementTree as xml

import pytest

from test_cli import HOSTILE, MIB, TOOL, answer, assert_refused, make, ok, run, sample  # noqa: F401

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A recording of real training, one for all tests here."""
    from conftest import Programs
    return str(Programs(tmp_path_factory.mktemp("trained")).traced("train.py", "truth.json", "gpt2"))


def stacks_of(recording):
    return {s["stack"]: s["frames"] for s in map(json.loads, ok("stack", recording, "--all", "--json").splitlines())}


def folded(*args):
    """Frames -> bytes of the folded stacks."""
    out = {}
    for line in ok("flame", *args).splitlines():
        frames, size = line.rsplit(" ", 1)
        assert tuple(frames.split(";")) not in out
        out[tuple(frames.split(";"))] = int(size)
    return out


def python_name(frame):
    return f"{frame['function']} ({os.path.basename(frame['file'])}:{frame['line']})"


@pytest.mark.parametrize("at", ["peak", "end", "mark:mark_gpt2_forward#2"])
def test_folded_stacks_are_those_of_the_blocks(trained, at):
    stacks, want = stacks_of(trained), collections.Counter()
    live = answer("live", trained, "--at", at)
    for b in live["blocks"]:
        frames = [python_name(f) for f in stacks.get(b["stack"], []) if f["kind"] == "python"]
        want[tuple(reversed(frames))] += b["size"]
    said = folded(trained, "--at", at)
    python = {k: n for k, n in said.items() if not k[0].endswith("(backward)") and not k[0].startswith("(no")}
    assert python == {k: n for k, n in want.items() if k}
    assert sum(said.values()) == live["bytes"]
    inverted = folded(trained, "--at", at, "--inverted")
    assert {tuple(reversed(k)): n for k, n in inverted.items()} == said


def test_native_frames(trained):
    both, native = folded(trained, "--frames", "both"), folded(trained, "--frames", "native")
    assert sum(both.values()) == sum(native.values()) == answer("live", trained)["bytes"]
    assert any("CUDACachingAllocator" in k[-1] for k in native)
    assert any("(train.py:" in k[0] or "(train.py:" in "".join(k) for k in both)
    assert not any("(train.py:" in "".join(k) for k in native)


def test_modules_have_the_bytes_of_modules(trained):
    time = answer("modules", trained)["time_ns"]
    tree = answer("modules", trained, "--at", time)
    said = folded(trained, "--by", "module", "--class", "activations", "--at", time)
    assert sum(said.values()) == tree["bytes"]
    outside = said.pop(("(outside of modules)",), 0)
    assert outside == tree["outside_bytes"]
    top = collections.Counter()
    for frames, n in said.items():
        top[frames[0]] += n
    assert top == {m["name"]: m["bytes"] for m in tree["modules"] if not m["parent"]}


def test_classes_are_those_of_live(trained):
    want, said = collections.Counter(), collections.Counter()
    for b in answer("live", trained)["blocks"]:
        want[b["category"].replace("_", " ")] += b["size"]
    for frames, n in folded(trained, "--classes").items():
        said[frames[0]] += n
    assert said == want
    one = answer("flame", trained, "--class", "optimizer_state")
    assert one["bytes"] == want["optimizer state"] == sum(s["bytes"] for s in one["stacks"])


def frames_of(path):
    """[(depth, name, x, width)] of a picture, x and width as shares of all."""
    root = xml.parse(path).getroot()
    assert root.tag == SVG + "svg"
    return [(int(g.get("data-d")), g.get("data-n"), float(g.get("data-x")), float(g.get("data-w")))
            for g in root.iter(SVG + "g")]


def test_a_class_that_is_not_there_is_said(trained):
    done = subprocess.run([TOOL, "flame", trained, "--class", "kv_cache"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "" and "nothing of class kv_cache" in done.stderr


@pytest.mark.parametrize("options", [[], ["--classes"], ["--frames", "both", "--inverted"], ["--by", "module"]])
def test_picture(trained, tmp_path, options):
    path = tmp_path / "x.svg"
    ok("flame", trained, "-o", path, *options)
    said, widths = folded(trained, *options), collections.Counter()
    total = sum(said.values())
    for frames, n in said.items():
        for depth in range(len(frames)):
            widths[depth + 1, frames[:depth + 1]] += n
    drawn = frames_of(path)
    assert drawn[0] == (0, "all", 0, 1)
    stack = []
    for depth, name, x, width in drawn[1:]:  # each before its children
        stack[depth - 1:] = [(name, x, width)]
        key = depth, tuple(s[0].replace(";", ",") for s in stack)
        assert width == pytest.approx(widths.pop(key) / total, rel=1e-6)
        if depth > 1:
            assert stack[-2][1] <= x + 1e-9 and x + width <= stack[-2][1] + stack[-2][2] + 1e-9
    assert all(n / total < 0.3 / 1180 for n in widths.values())  # too narrow to be seen


def test_picture_of_hostile_names(make, tmp_path):
    evil = HOSTILE.replace("train.py <module>", "\">]]>&.py <mo;du&le><script>alert(1)</script>")
    recording, path = make(evil, "evil.gmt"), tmp_path / "evil.svg"
    ok("flame", recording, "-o", path, "--at", "end")
    names = [name for _, name, _, _ in frames_of(path)]
    assert any("<mo;du&le><script>alert(1)</script> (\">]]>&.py:10)" == n for n in names), names
    assert len(list(xml.parse(path).getroot().iter(SVG + "script"))) == 1
    assert len(folded(recording, "--at", "end")) == len({";".join(k) for k in folded(recording, "--at", "end")})
    assert "<mo,du&le>" in ok("flame", recording, "--at", "end")


def test_output_touches_nobody_elses_file(sample, tmp_path):
    notes, path = tmp_path / "notes.svg", tmp_path / "x.svg"
    notes.write_text("mine")
    assert_refused(run("flame", sample, "-o", notes), 2)
    assert notes.read_text() == "mine"
    assert_refused(run("flame", sample, "-o", tmp_path / "x.txt"), 2)
    assert_refused(run("flame", sample, "-o", tmp_path / "no" / "x.svg"), 3)
    for _ in range(2):
        ok("flame", sample, "-o", path)
    assert sorted(os.listdir(tmp_path)) == ["notes.svg", "x.svg"]


@pytest.mark.parametrize("args, says", [(["--frames", "some"], "some"), (["--by", "x"], "--by"), (["--class", "x"], '"x"'),
                                        (["--at", "noon"], "noon")])
def test_wrong_use(sample, args, says):
    done = run("flame", sample, *args)
    assert_refused(done, 2)
    assert says in done.stderr


def test_peak(sample):
    said = answer("peak", sample)
    assert (said["device"], said["bytes"], said["time_ns"], said["seq"]) == (0, 14 * MIB, 140, 7)
    assert (said["reserved_bytes"], said["total_bytes"]) == (20 * MIB, 80 * MIB)
    assert said["categories"] == {"parameters": 4 * MIB, "activations": 8 * MIB, "unknown": 2 * MIB}
    assert [(x["class"], x["function"], x["line"], x["bytes"], x["blocks"]) for x in said["lines"]] == [
        ("activations", "Model.forward", 40, 8 * MIB, 1), ("parameters", "<module>", 10, 4 * MIB, 1),
        ("unknown", "Model.forward", 40, 2 * MIB, 1)]


def test_peak_is_that_of_report(trained):
    peak, device = answer("peak", trained), answer("report", trained)["devices"][0]
    assert peak["bytes"] == device["peak_bytes"] == sum(x["bytes"] for x in peak["lines"])
    assert peak["categories"] == device["categories_at_peak"]
    text = ok("peak", trained)
    assert max(map(len, text.splitlines())) <= 80 and len(text.splitlines()) < 20
    assert peak["text"] == answer("steps", trained)["peak"]["text"]


def test_browser_draws_it(trained, tmp_path):
    """No error in its script: a click on a frame makes it as wide as the picture."""
    chromium = next((c for c in ("/usr/bin/chromium", "/usr/bin/google-chrome") if os.path.exists(c)), None)
    if not chromium:
        pytest.skip("no browser to judge the picture")
    ok("flame", trained, "-o", tmp_path / "x.svg")
    page = tmp_path / "page.html"
    page.write_text("""<!doctype html><body><script>
      onerror = e => { document.body.textContent = 'error ' + e; };
      fetch; const t = SVGTEXT; document.body.insertAdjacentHTML('beforeend', t.replace(/<script>[^]*<.script>/, ''));
      const code = t.match(/<script><!\\[CDATA\\[([^]*)\\]\\]>/)[1];
      const s = document.createElement('script'); s.textContent = code; document.body.append(s);
      const f = document.querySelectorAll('g.f')[2]; f.dispatchEvent(new Event('click'));
      document.title = f.querySelector('rect').getAttribute('width');
      document.body.textContent = 'width ' + document.title;
      </script>""".replace("SVGTEXT", json.dumps((tmp_path / "x.svg").read_text().split("?>")[1]).replace("</", "<\\/")))
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--user-data-dir=" +
                           str(tmp_path / "profile"), page.as_uri()], capture_output=True, text=True, timeout=60)
    assert "width 1180" in done.stdout, done.stdout[-500:]
