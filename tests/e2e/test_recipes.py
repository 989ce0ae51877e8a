# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING's recipes: the examples of all of them are made in a copy of the repository, which is built and asked."""
import json
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, REAL, ROOT, made_once
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
EVERY = (["report"], ["peak"], ["live", "--at", "peak"], ["steps"], ["leaks"], ["advise"], ["timeline"], ["info"], ["diff", str(RECORDING)],
         ["html", "-o", "x.html"], ["export", "-t", "csv", "-o", "x.csv"], ["recover", "-o", "x.gmt.again"])
# Two programs that keep experience: a little more in each step, or all that they will need at the beginning.
REPLAY = """
import sys, torch
from torch import nn

def remember(n):
    return torch.zeros(n << 20, dtype=torch.uint8, device="cuda")

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
kept = [remember(int(sys.argv[1]))]
for step in range(6):
    loss = net(torch.randn(int(sys.argv[3]), 512, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(remember(int(sys.argv[2])))
with torch.profiler.record_function("trained"):
    pass
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
    return made_once(tmp_path_factory, "recipes", make_changed)


def make_changed(root):
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
    kinds = [e["kind"] for e in events]
    assert "pool_trim" in kinds
    assert json.loads(said(changed, "info", recording, "--json"))["meta"]["device.0.name"] == "NVIDIA Example"


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_a_kind_of_record(changed, tmp_path):
    """A hook writes it with its stack, and all commands read the recording."""
    recording, program = tmp_path / "x.gmt", tmp_path / "calls.py"
    program.write_text(CALLS)
    env = {"PATH": "/usr/bin:/bin", "SIMULATED": str(changed / "build/libsimgpu.so")}
    subprocess.run([changed / "build/gpumemtrace", "run", "-q", "--sim", "example-12g", "-o", recording, "--", sys.executable, program], check=True, env=env)
    events = [json.loads(line) for line in said(changed, "dump", recording, "--json").splitlines()]
    (hint,) = (e for e in events if e["kind"] == "hint")
    (made,) = (e for e in events if e["kind"] == "mem_alloc" and e["size"] == 1 << 20)
    assert (hint["addr"], hint["size"], hint["arg0"]) == (made["addr"], 1 << 20, 1)
    assert "calls.py" in said(changed, "stack", recording, hint["stack"], "--json")
    assert "good" in said(changed, "verify", recording)
    for words in EVERY:
        said(changed, words[0], recording, *(str(tmp_path / w) if w.startswith("x.") else w for w in words[1:]))
    assert json.loads(said(changed, "report", recording, "--json"))["devices"][0]["peak_bytes"] >= 1 << 20
    frames = json.loads(said(changed, "stack", recording, hint.get("stack", 0), "--json"))["frames"]
    assert [f["line"] for f in frames if f["file"] == str(program)] == [CALLS.splitlines().index(CALLS.splitlines()[-1]) + 1]


class Replay:
    """The recordings of REPLAY, and what commands say of them."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        (folder / "replay.py").write_text(REPLAY)

    def record(self, name, *words, card="example-12g", code=0):
        run = [self.root / "build/gpumemtrace", "run", "-q", "--sim", card, "-o", self.folder / name, "--", sys.executable, self.folder / "replay.py", *words]
        assert subprocess.run(run, capture_output=True).returncode == code
        return self.folder / name

    def json(self, *words):
        return json.loads(said(self.root, *words, "--json"))


@pytest.fixture(scope="module")
def replay(changed, tmp_path_factory):
    r = Replay(changed, tmp_path_factory.mktemp("replay"))
    r.grows, r.more = r.record("grows.gmt", "8", "8", "64"), r.record("more.gmt", "8", "24", "64")
    r.full = r.record("full.gmt", "384", "1", "65536", card="card=512MiB", code=1)
    return r


def lists_of_classes(text):
    """Statements that name several classes: (line, its classes, whether a comment stands in it or above it)."""
    lines = text.split("\n")
    for m in re.finditer(r"[^;{}]*[;{}]", text):
        code = re.sub(r"/\*.*?\*/", "", m[0], flags=re.S)
        named = set(re.findall(r"(?:CLASS_BIT\(|1u << CATEGORY_|[=!]= CATEGORY_|\[CATEGORY_)(\w+)", code))
        first = text.count("\n", 0, m.end() - len(m[0].lstrip()))
        if len(named) > 1:
            yield first + 1, sorted(named), "/*" in "\n".join(lines[max(0, first - 8):text.count("\n", 0, m.end()) + 1])


def test_lists_of_classes_say_why():
    """What answers ask of several classes is a trait of categories.def, or a list that a comment gives the reason for."""
    found = [(str(p.relative_to(ROOT)), *x) for p in sorted((ROOT / "viewer").rglob("*.[ch]")) for x in lists_of_classes(p.read_text())]
    assert [x for x in found if not x[3]] == [] and len(found) <= 17, found
    assert list(lists_of_classes("x = 1;\n\n\n\n\n\n\n\n\n\ny = CLASS_BIT(inputs) | CLASS_BIT(buffers);\n")) == [(11, ["buffers", "inputs"], False)]


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_a_class_in_every_answer(replay, tmp_path):
    kept = 7 * 8 << 20
    (device,) = replay.json("report", replay.grows)["devices"]
    end = replay.json("live", replay.grows, "--at", "mark:trained")["blocks"]
    mine = [b for b in end if b["category"] == "replay_buffer"]
    assert sum(b["size"] for b in mine) == kept and len(mine) == 7 and device["categories_at_peak"]["replay_buffer"] > 0
    assert "replay buffer" in said(replay.root, "report", replay.grows)
    why = replay.json("why", replay.grows, hex(mine[0]["addr"]), "--at", "mark:trained")
    assert (why["category"], why["rule"]) == ("replay_buffer", "replay")
    assert "keeps experience for later steps" in said(replay.root, "why", replay.grows, hex(mine[0]["addr"]), "--at", "mark:trained")
    (owner,) = (o for o in replay.json("leaks", replay.grows)["owners"] if o["class"] == "replay_buffer")
    assert (owner["function"], owner["bytes_per_step"]) == ("remember", 8 << 20)
    kinds = {f["kind"] for f in replay.json("advise", replay.grows)["findings"] if f["function"] == "remember"}
    assert kinds <= {"held"}, "it stays: no variable of a step kept it"
    first = replay.json("diff", replay.grows, replay.more)["findings"][0]
    assert (first["class"], first["function"]) == ("replay_buffer", "remember") and "replay buffer" in first["text"]
    said(replay.root, "html", replay.grows, "-o", tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert '"name":"replay_buffer","words":"replay buffer","kept":"replay buffer","colour":"#d848f0","level":3' in page
    rows = [json.loads(line) for line in said(replay.root, "export", replay.grows, "-t", "jsonl", "-o", "-").splitlines()]
    assert sum(r["size"] for r in rows if r["class"] == "replay_buffer") == kept
    assert "replay_buffer" in said(replay.root, "export", replay.grows, "-t", "csv", "-o", "-")
    said(replay.root, "check", replay.grows, "--max-class", "replay_buffer=1GiB")


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_a_class_of_the_model_where_memory_ran_out(replay):
    """It stays, so it is of the model: the sum before any batch names it, and a smaller batch frees none of it."""
    oom = replay.json("oom", replay.full)
    assert oom["cause"] == "model_too_large" and re.search(r"Before any batch: .*replay buffer 38\d\.\d MiB", oom["text"]), oom["text"]
    assert oom["holders"][0]["class"] == "replay_buffer"
    assert not any(r["saves_bytes"] >= 300 << 20 for r in oom["remedies"])


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_a_class_in_python(replay):
    program = f"""
import gpumemtrace
r = gpumemtrace.open({str(replay.grows)!r})
print(sum(b.size for b in r.live("mark:trained").blocks if b.category == "replay_buffer"), r.classes("mark:trained")["replay_buffer"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(replay.root / "python")})
    assert done.stdout.split() == [str(7 * 8 << 20)] * 2, done.stderr


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
