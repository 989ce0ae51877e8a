# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING's recipes: the examples of all of them are made in a copy of the repository, which is built and asked."""
import json
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, REAL, ROOT
from test_html import browse, needs_browser

RECORDING = ROOT / "tests/data/example/new.gmt"
PARTS = ("format", "shim", "cupti", "viewer", "simgpu", "python/gpumemtrace", "tests/future", "tests/unit", "tests/data", "Makefile", "build/obj")
BLOCK = re.compile(r"^```(?:c|js|py)\n(?:/\*|#) (\S+?), (new|behind|before)(?:: (.*?))?(?: \*/)?\n(.*?)^```$", re.M | re.S)
CALLS = """
import ctypes, os
runtime = ctypes.CDLL(os.environ["SIMULATED"])
assert runtime.cudaExampleOfALaterVersion() == 0
p = ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(p), 1 << 20) == 0
assert ctypes.CDLL(None).cudaDeviceGraphMemTrim(0) == 0
assert ctypes.CDLL(None).cudaMemAdvise(p, ctypes.c_size_t(1 << 20), 1, 0) == 0
"""


def blocks():
    """(recipe, file, how, the line where, text) of every example that changes a file."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Recipes")[1]
    for recipe in re.split(r"^(?=\*\*)", text, flags=re.M):
        for file, how, line, added in BLOCK.findall(recipe):
            yield recipe.split("**")[1], file, how, line, added


def change(root, file, how, line, added):
    path = root / file
    if how == "new":
        assert not path.exists(), file
        path.write_text(added)
        return
    lines = path.read_text().splitlines(keepends=True)
    (at,) = (i for i, text in enumerate(lines) if text.lstrip().startswith(line))
    end = at
    while how == "behind" and lines[end].count("{") + lines[end].count("(") > lines[end].count("}") + lines[end].count(")"):
        end += 1  # to the end of a statement or of a Python literal
    lines.insert(at if how == "before" else end + 1, added)
    path.write_text("".join(lines))


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """The repository with all examples, built."""
    root = tmp_path_factory.mktemp("recipes") / "copy"
    for part in PARTS:
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy2)(ROOT / part, root / part)
    for link in (".venv", ".cuda"):
        if (ROOT / link).exists():
            (root / link).symlink_to((ROOT / link).resolve())
    for done in ("system-ok", "cuda-ok"):
        (root / "build" / done).touch()
    for _, *block in blocks():
        change(root, *block)
    done = subprocess.run(["make", "-j2", "CFLAGS=-O0 -g0", "all", "build/data/cut"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return root


def said(root, *words):
    done = subprocess.run([root / "build/gpumemtrace", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_recipe_has_an_example():
    with_examples = {recipe for recipe, *_ in blocks()}
    elsewhere = {"A page of the site.": "make docs", "A simulated CUDA function": "with the card", "A test.": ""}
    every = re.findall(r"^\*\*(.*?)\*\*", (ROOT / "CONTRIBUTING.md").read_text().split("## Recipes")[1], re.M)
    assert len(with_examples) >= 10 and set(every) == with_examples | set(elsewhere) - {"A simulated CUDA function"}


def test_a_command(changed):
    assert json.loads(said(changed, "threads", RECORDING, "--json"))["threads"] > 1
    assert re.fullmatch(r"\d+ threads\n", said(changed, "threads", RECORDING))
    assert "how many threads a program had" in said(changed, "--help")


def test_a_column(changed):
    rows = [json.loads(line) for line in said(changed, "export", RECORDING, "-t", "jsonl", "-o", "-").splitlines()]
    ended = [r for r in rows if r["died_ns"]]
    assert ended and all(r["lived_ns"] == r["died_ns"] - r["born_ns"] for r in ended)


def test_a_rule(changed):
    assert '"rule":"example"' in said(changed, "export", RECORDING, "-t", "jsonl", "-o", "-")


def test_a_finding_and_its_claim(changed):
    (finding,) = (f for f in json.loads(said(changed, "advise", RECORDING, "--json"))["findings"] if f["kind"] == "example")
    assert finding["saves_bytes"] > 0 and finding["what"] == "Keep the activations in 16 bits"
    folder = changed / "recordings"
    folder.mkdir()
    shutil.copy(RECORDING, folder)
    judged = subprocess.run([sys.executable, changed / "tests/future/judge.py", "--there", "--points", "2", folder], capture_output=True, text=True)
    assert judged.returncode == 0 and re.search(r"^example +said +\d+ true +[1-9]", judged.stdout, re.M), judged.stdout + judged.stderr


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_what_the_library_and_the_device_have(changed, tmp_path):
    """A hook, a kind of record, a fact, a setting, a card and a function of the device."""
    recording, build = tmp_path / "x.gmt", changed / "build"
    program = tmp_path / "calls.py"
    program.write_text(CALLS)
    for patience, code in (("90", 2), ("30", 0)):
        env = {"PATH": "/usr/bin:/bin", "GPUMEMTRACE_PATIENCE": patience, "SIMULATED": str(build / "libsimgpu.so")}
        done = subprocess.run([build / "gpumemtrace", "run", "--sim", "example-12g", "-o", recording, "--", sys.executable, program],
                              capture_output=True, text=True, env=env)
        assert (done.returncode, "GPUMEMTRACE_PATIENCE=90 is no number from 1 to 60" in done.stderr) == (code, code == 2), done.stderr
    events = [json.loads(line) for line in said(changed, "dump", recording, "--json").splitlines()]
    assert "pool_trim" in [e["kind"] for e in events]
    (hint,) = (e for e in events if e["kind"] == "hint")
    assert hint["size"] == 1 << 20 and hint["arg0"] == 1 and hint["stack"] > 0, hint
    frames = json.loads(said(changed, "stack", recording, hint["stack"], "--json"))["frames"]
    assert "calls.py" in json.dumps(frames), frames
    assert json.loads(said(changed, "info", recording, "--json"))["meta"]["device.0.name"] == "NVIDIA Example"


def test_a_fact(changed, tmp_path):
    program = tmp_path / "optimizer.py"
    program.write_text("import torch\nw = torch.nn.Parameter(torch.ones(9, device='cuda'))\ntorch.optim.SGD([w], 0.1)\n")
    said(changed, "run", "-q", "--sim", "example-12g", "-o", tmp_path / "x.gmt", "--", sys.executable, program)
    assert json.loads(said(changed, "info", tmp_path / "x.gmt", "--json"))["meta"]["example.fact"] == "seen"


@needs_browser
def test_a_panel(changed, tmp_path):
    page = tmp_path / "x.html"
    said(changed, "html", RECORDING, "-o", page)
    (events,) = browse(page, "document.getElementById('example-events').textContent")
    assert int(events.replace(",", "")) == json.loads(said(changed, "info", RECORDING, "--json"))["events"]
