# SPDX-License-Identifier: Apache-2.0
"""What saves tests their time leaves recordings as they are: programs that are forked from one with PyTorch (tests/forks.py), and its
compiler that is only loaded where it is used (tests/quick)."""
import json
import os
import subprocess
import sys

import pytest

from conftest import QUICK, Programs, Tool, record

COMPILES = """
import sys, torch
from torch.utils.checkpoint import checkpoint
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.AdamW([weight])
for _ in range(2):
    optimizer.zero_grad()
    checkpoint(torch.sin, weight, use_reentrant=False).sum().backward()
    optimizer.step()
torch._dynamo.trace_rules.clear_lru_cache()
assert "sympy" not in sys.modules
assert "torch" in torch._dynamo.trace_rules.get_torch_obj_rule_map.__module__ and "sympy" in sys.modules
import torch._dynamo.config as config
assert config is sys.modules["torch._dynamo"].config is torch._dynamo.config
compiled = torch.compile(lambda x: x * 2 + 1, backend="eager")
assert compiled(weight).equal(weight * 2 + 1)
from torch._dynamo.utils import counters
assert counters["stats"]["unique_graphs"] == 1
optimizer.step()
"""


def test_the_compiler_is_there_when_it_is_used():
    subprocess.run([sys.executable, "-c", COMPILES], env={"PYTHONPATH": QUICK}, check=True)


@pytest.mark.parametrize("case", ["gan", "validated"])
def test_a_forked_program_is_recorded_as_one_that_was_started(tool, tmp_path, case):
    said = []
    for forks in (False, True):
        folder = tmp_path / str(forks)
        folder.mkdir()
        recording = Programs(folder, quick=forks, forks=forks).traced("steps.py", case)
        blocks = tool.json("live", recording, "--at", "peak")["blocks"]
        said.append((sorted((b["size"], b["category"]) for b in blocks), tool.json("steps", recording)["steps"],
                     [(e["kind"], e["size"]) for e in tool.events(recording) if e.get("kind", "").startswith("block_")], {f["kind"] for f in tool.json("advise", recording)["findings"]}))
    assert said[0] == said[1] and len(said[0][0]) > 10


def test_how_a_forked_program_ends(tmp_path):
    """Its code, its words, its arguments and its variables; one program leaves nothing to the next. What it leaves to its end comes to pass."""
    (tmp_path / "ends.py").write_text("import atexit, json, os, sys\nprint(json.dumps([sys.argv[1:], os.environ.get('MINE'), os.getcwd()]))\n"
                                      "class Kept:\n    def __del__(self):\n        print('let go')\n"
                                      "kept = Kept()\natexit.register(print, 'at exit')\n"
                                      "sys.stderr.write('an error')\nos.kill(os.getpid(), 9) if sys.argv[1] == 'killed' else sys.exit(int(sys.argv[1]))\n")
    programs = Programs(tmp_path, forks=True)
    for code, mine in ((7, {"MINE": "x"}), (0, {}), (-9, {})):
        done = programs(tmp_path / "ends.py", code if code >= 0 else "killed", GPUMEMTRACE_OUTPUT="none.gmt", **mine)
        assert (done.returncode, done.stderr) == (code, "an error") and not list(tmp_path.glob("*.gmt"))
        said, *at_end = done.stdout.splitlines() if code >= 0 else ("[]", "at exit", "let go")
        assert code < 0 or json.loads(said) == [[str(code)], mine.get("MINE"), str(tmp_path)]
        assert at_end == ["at exit", "let go"]


MODELS = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
net = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=256, n_head=4, vocab_size=1000)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(2):
    ids = torch.randint(0, 1000, (4, 64), device="cuda")
    net(ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_program_with_transformers_is_recorded_as_one_that_was_started(tool, tmp_path):
    """Its process has imported what models have in common; a card of its own is that of the program."""
    (tmp_path / "models.py").write_text(MODELS)
    record(tmp_path / "forked.gmt", tmp_path / "models.py", card="mine=4GiB")
    subprocess.run([Tool.path, "run", "-q", "--sim", "mine=4GiB", "-o", tmp_path / "started.gmt", "--", sys.executable, tmp_path / "models.py"], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    said = []
    for name in ("forked", "started"):
        report = tool.json("report", tmp_path / f"{name}.gmt")
        device = report["devices"][0]
        total = int(tool.json("info", tmp_path / f"{name}.gmt")["meta"]["device.0.total_bytes"])
        said.append((total, report["allocs"], device["peak_bytes"], device["categories_at_peak"]))
    assert said[0] == said[1] and said[0][0] == 4 << 30
