# SPDX-License-Identifier: Apache-2.0
"""Every JSON document of every command is as documents.def describes it, and every member described there is in one of
them; docs/json.md says the same."""
import json
import os
import subprocess
import sys

import pytest

import json_page
from conftest import ROOT, TABLES, Tool
from test_engine import LEARNS

DATA = ROOT / "tests/data"

NET = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(512, 2048), nn.Linear(2048, 512)
    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
"""
TRAINS = NET + """
torch.cuda.memory._record_memory_history(stacks="all")
net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters())
kept, there = [], torch.zeros(1 << 20, device="cuda:1")
for step in range(6):
    loss = net(torch.randn(64, 512, device="cuda")).sum()
    kept.append(torch.zeros(1 << 20, device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if loss.item() > 1e30:
        print(loss)
torch.cuda.memory._dump_snapshot("trace.pickle")
torch.cuda.memory._record_memory_history(None)
torch.cuda.memory._dump_snapshot("state.pickle")
try:
    torch.empty(1 << 40, device="cuda")
except RuntimeError:
    pass
"""
EVALUATES = NET + """
net, kept = Net().cuda(), []
for step in range(6):
    with torch.no_grad():
        kept.append(net(torch.randn(256, 512, device="cuda")))
"""
REFUSED = NET + """
net = Net().cuda()
for batch in 64, 64, 8192:
    try:
        sum(net(torch.randn(batch, 512, device="cuda")).sum() for _ in range(8)).backward()
    except torch.cuda.OutOfMemoryError:
        break
"""
# A library with a CUDA runtime of its own inside: test_run.py has one. Several recordings: test_ranks.py.
# ctl asks a running process: test_ctl.py.
# `fit` and `bisect`: test_fit.py, test_bisect.py. `replay`: test_replay.py. Settings that `oom` replays: test_oom_settings.py.
# Queries and dashboards, which need DuckDB: test_lake.py.
ELSEWHERE = {("run", "runtime_inside"), ("run", "changes"), ("run", "folder"), ("run", "out_of_memory"), ("engine", "asleep_ns"), ("engine_part", "asleep_bytes"), ("oom", "engine_phase")}


class Documents:
    """All that was printed, and which members it had."""

    def __init__(self):
        self.seen, self.tool = set(), Tool()

    def look(self, command, *args, code=0):
        text = self.tool(command, *args, "--json", code=code)
        for line in text.splitlines():
            assert json_page.check(TABLES, command, json.loads(line), self.seen) == [], (command, args)
        return json.loads(text.splitlines()[0]) if text else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("documents")


def run(documents, folder, name, text, card):
    """The recording, and what `run` says of it."""
    file, program = folder / f"{name}.gmt", folder / f"{name}.py"
    program.write_text(text)
    done = subprocess.run([Tool.path, "run", "--json", "--sim", card, "-o", file, "--", sys.executable, program],
                          cwd=folder, capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert json_page.check(TABLES, "run", json.loads(done.stderr.splitlines()[-1]), documents.seen) == []
    return file


def one_recording(documents, file, folder, monkeypatch):
    look = documents.look
    for command in ("info", "report", "peak", "steps", "leaks", "account", "modules", "timeline", "flame", "live", "top", "dump"):
        look(command, file)
    look("report", "--steps", file)
    look("modules", file, "--class", "all")
    look("dump", "--defs", file)
    look("stack", "--all", file)
    block = look("live", file)["blocks"][0]
    look("why", file, block["addr"])
    look("stack", file, block["stack"])
    look("html", file, "-o", folder / "x.html")
    with monkeypatch.context() as place:
        place.setenv("TMPDIR", str(folder))
        place.setenv("BROWSER", "true")
        look("open", file)
    look("export", file, "--to", "csv", "-o", folder / "x.csv")
    look("recover", file, "-o", folder / "recovered.gmt")
    monkeypatch.setenv("GPUMEMTRACE_TEST_RULES", "1")
    look("live", file)
    monkeypatch.delenv("GPUMEMTRACE_TEST_RULES")


PHASES = """import torch
torch.cuda.synchronize(1)  # a context, and nothing else
done = []
for _ in range(2):
    model = torch.nn.Linear(1024, 1024, device="cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        model(torch.ones(64, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    done.append((model, optimizer))
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    done.append(torch.empty(4 << 20, device="cuda"))
"""


def test_all_documents(folder, monkeypatch):
    documents = Documents()
    trains = run(documents, folder, "trains", TRAINS, "h100-80g,2")
    evaluates = run(documents, folder, "evaluates", EVALUATES, "a100-40g")
    run(documents, folder, "nothing", "pass", "h100-80g")
    phases = run(documents, folder, "phases", PHASES, "h100-80g,2")
    assert [c["device"] for c in documents.look("report", phases)["contexts"]] == [1]
    assert [p["bytes"] for p in documents.look("report", phases)["devices"][0]["pools"]] == [16 << 20]
    documents.look("report", run(documents, folder, "serves", (ROOT / "docs/questions/serve.py").read_text(), "a100-40g"))
    documents.look("report", run(documents, folder, "learns", LEARNS.replace("sys.argv[1]", "'fixed'"), "h100-80g"))
    documents.look("dump", run(documents, folder, "refuses", "import torch\ntorch.zeros(1, device='cuda')\ntorch.cuda.cudart().cudaHostUnregister(4096)", "h100-80g"))
    unused = documents.look("leaks", phases)
    assert [u["class"] for u in unused["unused"]] == ["optimizer_state", "parameters"]
    assert unused["unused_bytes"] == sum(u["bytes"] for u in unused["unused"]) >= 3 * 4 * (1024 * 1024 + 1024) and unused["unused_since_step"] == 5
    for file in (trains, evaluates):
        one_recording(documents, file, folder, monkeypatch)
    documents.look("oom", trains)
    assert documents.look("oom", run(documents, folder, "refused", REFUSED, "card=640MiB"))["remedies"]
    assert documents.look("advise", trains, "--together", "1+batch=1/2")["sets"]
    documents.look("diff", evaluates, trains)
    documents.look("check", evaluates, "--max-peak", "1", "--max-class", "parameters=1", code=1)
    for snapshot in ("trace", "state"):
        documents.look("import", folder / f"{snapshot}.pickle", "-o", folder / f"{snapshot}.gmt")
        documents.look("report", folder / f"{snapshot}.gmt")
        documents.look("dump", "--defs", folder / f"{snapshot}.gmt")
    documents.look("collect", evaluates, DATA / "bad/empty.gmt", "-o", folder / "lake", code=3)
    documents.look("sql", "--schema")
    documents.look("verify", DATA / "bad/block_flipped.gmt", code=1)
    for golden in sorted((DATA / "v1").glob("*.gmt")):
        documents.look("dump", golden)
        documents.look("dump", "--defs", golden)
    every = {(table, m.name) for table in TABLES if not table.startswith(("ranks", "ctl", "fit", "bisect", "attach", "dashboard", "replay", "oom_setting", "compact", "regression", "run_change")) and table not in ("sql", "sql_name", "sql_row") for m in TABLES[table][1]}
    never = every - documents.seen - ELSEWHERE - json_page.of_tries() - {("fact", m.name) for m in TABLES["fact"][1]}
    assert not never, sorted(never)


def test_the_page_is_current():
    assert (ROOT / "docs/json.md").read_text() == json_page.page(), "scripts/json_page.py >docs/json.md"


@pytest.mark.parametrize("change", [
    lambda d: d.update(more=1), lambda d: d.pop("events"), lambda d: d.update(events=-1), lambda d: d.update(events=True),
    lambda d: d["devices"].append({}), lambda d: d.update(truncated=0), lambda d: d.update(events=d.pop("events")),
    lambda d: d["devices"][0].update(categories_at_peak={"none": 1}),
])
def test_a_wrong_document_is_found(change):
    device = dict(device=0, peak_bytes=1, peak_time_ns=2, end_bytes=0, peak_reserved_bytes=1, resident_peak_bytes=1, asleep_bytes=0,
                  context_bytes=0, categories_at_peak={"parameters": 1}, unused_at_peak_bytes=0, unused_at_peak=[], used_bound_bytes=0, ooms=0, pools=[], function="f", file="a.py", line=1)
    document = dict(events=1, allocs=1, frees=0, dropped=0, truncated=False, devices=[device], contexts=[],
                    summary=[dict(kind="growth", bytes=1, text="t", action="a", function="f", file="a.py", line=1, time_ns=1)], file_bytes=9)
    assert json_page.check(TABLES, "report", document) == []
    change(document)
    assert json_page.check(TABLES, "report", document)
