# SPDX-License-Identifier: Apache-2.0
"""Leaks of known kinds: the growth a step is what PyTorch counts, the line is the one that the script says."""
import json
import statistics
from pathlib import Path

import pytest

pytestmark = pytest.mark.forks

# case: what the source line of each owner holds, by class (None: several would be right); the growth where PyTorch's
# own count varies for other reasons
CASES = {
    "nothing": ([], None),
    "recent": ([], 0),
    "graph": ([("activations", "self.down(F.gelu"), ("inputs", "torch.randn"), ("forward_temporaries", ".mean()")], None),
    "outputs": ([("forward_temporaries", "self.down(F.gelu")], None),
    "now_and_then": ([("forward_temporaries", "self.down(F.gelu")], 64 * 96 * 4 // 2),
    "two": ([("forward_temporaries", "self.down(F.gelu"), ("inputs", "torch.ones(5000")], None),
    "grow": ([(None, "torch.cat(")], None),
    "longer": ([], 0),  # batches that differ in size, though each is larger than the one before
    "varying": ([("inputs", "torch.zeros(3000")], 12288),
}


@pytest.mark.parametrize("case", CASES)
def test_leaks(programs, tool, case):
    owners, growth = CASES[case]
    recording = programs.traced("leaks.py", case, "counts.json")
    counts = json.loads((programs.folder / "counts.json").read_text())
    if growth is None:
        growth = statistics.median(b - a for a, b in zip(counts[1:], counts[2:]))
    said = tool.json("leaks", recording)
    assert (said["steps"], said["from_step"], said["to_step"]) == (8, 2, 8)
    assert said["growth_per_step"] == growth == sum(o["bytes_per_step"] for o in said["owners"])
    lines = Path(programs.workload("leaks.py")).read_text().splitlines()
    assert len(said["owners"]) == len(owners)
    for owner, (category, source) in zip(said["owners"], owners):
        assert owner["class"] == (category or owner["class"]) and owner["file"].endswith("leaks.py")
        assert source in lines[owner["line"] - 1]
        check_blocks(tool, recording, owner, case)
    first = said["change"].split(":")[0]
    assert first == ("Graphs of earlier steps are kept" if case == "graph" else "What earlier steps made is kept" if owners and case != "grow" else "")
    assert said["change"] in " ".join(tool("leaks", recording).split())
    if case == "outputs":
        check_words(tool, recording, said["owners"][0]["first"])


def check_words(tool, recording, block):
    """What a list keeps from an earlier step is no temporary, in words; the class has the same name in JSON. In its own step it is not kept."""
    at = ["--at", said_at(tool, recording)]
    assert "kept results" in tool("leaks", recording) and "forward temporaries" not in tool("leaks", recording)
    assert ": kept results (" in tool("why", recording, hex(block["addr"]), *at)
    assert tool.json("why", recording, hex(block["addr"]), *at)["category"] == "forward_temporaries"
    assert "kept results" in tool("live", recording, *at)
    assert "kept results" not in tool("why", recording, hex(block["addr"]), "--at", block["born_ns"] + 1)


def said_at(tool, recording):
    """When the last block of the line is made, which is behind the steps of the others."""
    return tool.json("leaks", recording)["owners"][0]["latest"]["born_ns"]


def check_blocks(tool, recording, owner, case):
    """The first and the latest block live at the end of the training, with the stack that is named."""
    for which in ("first", "latest"):
        b = owner[which]
        live = tool.json("live", recording, "--at", owner["latest"]["born_ns"])
        same = [x for x in live["blocks"] if x["addr"] == b["addr"]]
        assert same and same[0]["born_ns"] == b["born_ns"] and same[0]["stack"] == b["stack"]
    if case not in ("grow", "now_and_then"):
        assert (owner["first"]["step"], owner["latest"]["step"]) == (3, 8)
        assert owner["bytes"] == 6 * owner["bytes_per_step"]


def test_a_loop_that_keeps_nothing(programs, tool):
    said = tool.json("leaks", programs.traced("steps.py", "gan"))
    assert (said["owners"], said["growth_per_step"], said["from_step"], said["to_step"]) == ([], 0, 1, 3)


LAYERS = """
import torch

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(256, 256)
    def forward(self, x):
        return torch.relu(self.inner(x))

layers, kept = [Layer().cuda() for _ in range(4)], []
for _ in range(6):
    x = torch.randn(100, 256, device="cuda")
    with torch.no_grad():
        for layer in layers:
            x = layer(x)
    kept.append(x)
"""


def test_what_was_taken_for_a_step_is_said(programs, tool):
    """Without an optimizer it is a call of the outermost module, which here is a layer: 24 of them, not 6."""
    (programs.folder / "layers.py").write_text(LAYERS)
    recording = programs.traced(str(programs.folder / "layers.py"))
    said = tool.json("leaks", recording)
    assert (said["steps"], said["step_basis"], said["step_is"]["function"]) == (24, "forward", "Layer.forward")
    text = " ".join(tool("leaks", recording).split())
    line = LAYERS.splitlines().index("            x = layer(x)") + 1
    assert "A step here is one call of Layer.forward layers.py:" in text and f"made at layers.py:{line}" in text
    assert "no optimizer's step was seen" in text
    trained = tool.json("leaks", programs.traced("steps.py", "gan", output="gan.gmt"))
    assert "step_is" not in trained and trained["step_basis"] == "optimizer"


def test_steps_of_several_modules_are_not_said_to_be_of_one(programs, tool):
    """An encoder, a network in a loop and a decoder, as a pipeline of diffusion calls them."""
    (programs.folder / "layers.py").write_text(LAYERS.replace("class Layer", "class Other(torch.nn.Linear):\n    def forward(self, x):\n        return super().forward(x)\n\nclass Layer")
                                               .replace("    kept.append(x)", "        x = other(x)\n    kept.append(x)").replace("layers, kept", "other = Other(256, 256).cuda()\nlayers, kept"))
    text = " ".join(tool("leaks", programs.traced(str(programs.folder / "layers.py"))).split())
    assert "A step here is one call of Other.forward layers.py:" in text and ", or of another module: " in text


FULL = """
import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range(24):
    tensor = torch.zeros(1_000_000 + 128 * step, device="cuda")
    if len(kept) < 12:
        kept.append(tensor)
    else:
        kept[step % 12] = tensor
    del tensor
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_a_collection_that_is_full_does_not_grow(programs, tool):
    """Its entries are replaced by others that are a little larger, as remainders of large blocks make them."""
    (programs.folder / "full.py").write_text(FULL)
    assert not tool.json("leaks", programs.traced(str(programs.folder / "full.py")))["owners"]
    (programs.folder / "full.py").write_text(FULL.replace("len(kept) < 12", "True"))
    (owner,) = tool.json("leaks", programs.traced(str(programs.folder / "full.py"), output="more.gmt"))["owners"]
    assert owner["bytes_per_step"] > 3 << 20


VALIDATION = """
import contextlib, sys, torch
kind = sys.argv[1]
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
state, kept = torch.zeros(2048, 512, device="cuda"), []
for step in range(4):
    model(torch.randn(2048, 512, device="cuda")).sum().backward()
    optimizer.step()
with contextlib.nullcontext() if kind == "graphs" else torch.no_grad():
    for batch in range(16):
        state = model(torch.randn(2048, 512, device="cuda") + state)
        if kind == "results":
            kept.append(state)
"""


@pytest.mark.parametrize("kind", ["graphs", "results", "nothing"])
def test_passes_after_the_last_step(programs, tool, kind):
    """Of a validation, which no optimizer's step ends."""
    (programs.folder / "validation.py").write_text(VALIDATION)
    text = " ".join(tool("leaks", programs.traced(str(programs.folder / "validation.py"), kind)).split())
    assert ("After step 4 came passes without an optimizer's step, which are not compared. Results of 1" in text) == (kind != "nothing")
    assert ("call the model under torch.no_grad()" in text) == (kind == "graphs") and ("Keep x.detach().cpu()" in text) == (kind == "results")
