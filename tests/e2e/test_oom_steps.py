# SPDX-License-Identifier: Apache-2.0
"""What `oom` calls older, of the batch, unused or a gradient where memory runs out outside of modules: a refusal is staged at a line
of a run that ended well, in each of its steps."""
import subprocess

import pytest

from conftest import BUILD, ROOT

pytestmark = pytest.mark.forks

PROGRAM = """
import sys, torch
from torch import nn
from torch.utils.checkpoint import checkpoint
D = 1024

def made(*sizes):
    net = nn.Sequential(*[m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())]).cuda()
    return net, torch.optim.AdamW(net.parameters())

def train(net, optimizer):
    for step in range(2):
        net(torch.randn(2048, D, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

def votes():
    net, optimizer = made(D, D)
    for epoch in range(2):
        train(net, optimizer)
        with torch.no_grad():
            rows = torch.randn(32768, D, device="cuda")
            found = torch.zeros(32768, D, device="cuda")
            for at in range(0, 28672, 2048):
                found[at:at + 4096] += net(rows[at:at + 4096])  # pass
            mean = found / 2  # here
            del mean, found, rows

def bank():
    net, optimizer = made(D, D)
    for epoch in range(2):
        train(net, optimizer)
        with torch.no_grad():
            found = []
            for at in range(16):
                found.append(nn.functional.normalize(net(torch.randn(2048, D, device="cuda"))))  # pass
            every = torch.cat(found)  # here
            del every, found

def batches():
    net, optimizer = made(8 * D, D, 8 * D)
    for step in range(3):
        x, y = (torch.randn(2048, 8 * D, device="cuda") for _ in "xy")
        optimizer.zero_grad()
        share = net(x).softmax(-1)  # here
        (share - y).square().mean().backward()
        optimizer.step()

def validated():
    net, optimizer = made(8 * D, D, 8 * D)
    for step in range(3):
        x, y = (torch.randn(2048, 8 * D, device="cuda") for _ in "xy")
        optimizer.zero_grad()
        share = net(x).softmax(-1)  # here
        (share - y).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            image = torch.randn(1024, 8 * D, device="cuda")  # image
            net(image).mean().item()

def averaged():
    train(*made(D, D))
    net, optimizer = made(*[2 * D] * 9)
    average = [p.to("cuda") for p in [p.detach().cpu() for p in net.parameters()]]  # average
    net(torch.randn(16, 2 * D, device="cuda")).mean().backward()
    optimizer.step()  # here

def metric():
    net, optimizer = made(D, 4 * D)
    for step in range(3):
        out = net(torch.randn(4096, D, device="cuda"))
        out.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            out.softmax(-1).amax().item()  # here

def moments():
    net, optimizer = made(*[2 * D] * 9)
    for step in range(2):
        net(torch.randn(16, 2 * D, device="cuda")).mean().backward()
        sizes = [p.grad.abs() for p in net.parameters()]  # here
        del sizes
        optimizer.step()
        optimizer.zero_grad()

def cut_graphs():
    net, optimizer = made(D, D, D)
    for step in range(2):
        kept = []
        for micro in range(6):
            x = torch.randn(8192, D, device="cuda").requires_grad_()
            for part in net:
                x = checkpoint(part, x, use_reentrant=True)
            out = (x * x).sum(-1)  # here
            out.mean().backward()
            kept.append(out)
        optimizer.step()
        optimizer.zero_grad()

def scored():
    net, optimizer = made(D, 8 * D)
    for step in range(2):
        logits = net[0](torch.randn(8, 512, D, device="cuda"))[:, -128:]
        logits.log_softmax(-1)[..., 0].mean().backward()  # here
        optimizer.step()
        optimizer.zero_grad()
        del logits

def scored_in_chunks():
    net, optimizer = made(D, 8 * D)
    for step in range(2):
        total = 0.0
        for logits in net[0](torch.randn(8, 512, D, device="cuda")).chunk(4, 1):
            total = total + logits.log_softmax(-1)[..., 0].mean()  # here
        total.backward()
        optimizer.step()
        optimizer.zero_grad()
        del logits, total

def parts():
    net, optimizer = made(D, D)
    for step in range(2):
        with torch.no_grad():
            found = net(torch.randn(4096, D, device="cuda"))
        leaf, total = found.detach().requires_grad_(), 0
        for at in range(0, 4096, 512):
            scores = leaf[at:at + 512] @ leaf.T  # here
            total = total + nn.functional.cross_entropy(scores, torch.arange(at, at + 512, device="cuda"), reduction="sum")
        total.backward()
        net(torch.randn(4096, D, device="cuda")).backward(leaf.grad)
        optimizer.step()
        optimizer.zero_grad()

def chunks():
    weight = torch.randn(D, D, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(2):
        size, kept = 0, []
        for chunk in torch.randn(16384, D, device="cuda").requires_grad_().split(2048):
            found = torch.tanh(chunk @ weight)  # here
            size = size + found.square().mean()
            kept.append(found * 2)
        torch.cat(kept).softmax(0).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

globals()[sys.argv[1]]()
"""
PASSING = {"activations", "inputs", "forward_temporaries", "backward_temporaries"}


def line_of(mark, kind):
    lines = PROGRAM.split("\n")
    return next(i for i in range(lines.index(f"def {kind}():"), len(lines)) if f"# {mark}" in lines[i]) + 1


def staged(programs, tool, kind, mark="here"):
    """What is said of the first refusals that are staged at a line, one of each step."""
    program, cut = programs.folder / "program.py", str(BUILD / "data/cut")
    subprocess.run(["make", "-C", ROOT, "-s", f"{BUILD.name}/data/cut"], check=True)
    program.write_text(PROGRAM)
    recording = programs.traced(program, kind)
    events = subprocess.run([cut, recording], check=True, capture_output=True, text=True).stdout.split()
    there = {n for n, frames in tool.stacks(recording).items() if any((f["file"], f["line"]) == (str(program), line_of(mark, kind)) for f in frames)}
    asked = {str(e["seq"]) for e in tool.events(recording) if e.get("stack") in there}
    large = [seq for seq, size in zip(events[::2], events[1::2]) if int(size) >= 1 << 23 and seq in asked]
    pairs = [(seq, programs.folder / f"{seq}.gmt") for seq in large]
    subprocess.run([cut, recording, *(word for pair in pairs for word in pair)], check=True)
    found = {}
    for _, path in pairs:
        said = tool.json("oom", path)
        if said["line"] == line_of(mark, kind):
            found.setdefault(said["step"], []).append(said)
    return found


def older(said):
    return {h["line"]: h["earlier_bytes"] for h in said["holders"] if h["class"] in PASSING and h["earlier_bytes"] >= 1 << 22}


def names(said):
    return {r["name"] for r in said["remedies"]}


def test_a_slice_of_a_result(programs, tool):
    """The rest is seen to be unused before any backward pass."""
    (*_, said) = staged(programs, tool, "scored")[1]
    assert [r["saves_bytes"] >> 20 for r in said["remedies"] if r["name"] == "unused_results"] == [96]


def test_several_slices_of_a_result(programs, tool):
    _, _, *later = staged(programs, tool, "scored_in_chunks")[1]
    assert len(later) >= 4 and not any("unused_results" in names(said) for said in later)


def test_results_of_an_evaluation(programs, tool):
    found = staged(programs, tool, "votes")
    assert list(found) == [2, 4]
    for said in (s for step in found.values() for s in step):
        assert older(said) == {} and "smaller_batch" not in names(said)
        assert {r["saves_bytes"] >> 20 for r in said["remedies"] if r["name"] == "results_on_host"} == {128}  # not the rows that it takes
        assert said["cause"] not in ("retained_graph", "growing", "batch_too_large")


def test_in_a_pass_of_the_evaluation_its_results_are_no_batch(programs, tool):
    last = [s[-1] for s in staged(programs, tool, "votes", "pass").values()]
    assert len(last) == 2
    for said in last:
        assert said["phase"] == "evaluation" and said["cause"] != "batch_too_large"
        assert sum(r["saves_bytes"] for r in said["remedies"] if r["name"] == "smaller_batch") <= 24 << 20


@pytest.mark.parametrize("mark", ["pass", "here"])
def test_what_is_gathered_is_no_batch(programs, tool, mark):
    """With half of the batch there are twice as many."""
    last = [s[-1] for s in staged(programs, tool, "bank", mark).values()]
    assert len(last) == 2
    for said in last:
        saves = {r["name"]: r["saves_bytes"] >> 20 for r in said["remedies"]}
        assert said["cause"] in ("growing", "retained_graph") and saves["let_go"] >= 100 and saves.get("smaller_batch", 0) <= 24


def test_the_batch_comes_before_zero_grad(programs, tool):
    found = staged(programs, tool, "batches")
    assert list(found) == [1, 2, 3]
    for step, said in ((n, s[-1]) for n, s in found.items()):
        assert said["cause"] == "batch_too_large" and "smaller_batch" in names(said)
        assert set(older(said)) == (set() if step == 1 else {line_of("here", "batches")})  # the share of the step before
        (half,) = (r for r in said["remedies"] if r["name"] == "smaller_batch")
        assert half["saves_bytes"] >> 20 == 132 and half["at_most"]  # x, y, two results, half of them: a script without modules
        assert ("may be of more than one batch" in half["how_known"]) == (step == 1)


def test_the_batch_behind_an_evaluation(programs, tool):
    """It comes before zero_grad: of the evaluation only the image is older."""
    found = staged(programs, tool, "validated")
    assert list(found) == [1, 3]  # in between the cache has room
    for step, said in ((n, s[-1]) for n, s in found.items()):
        assert set(older(said)) == (set() if step == 1 else {line_of("here", "validated"), line_of("image", "validated")})


def test_averages_from_the_host_are_no_batch(programs, tool):
    """Before the first step of a second model."""
    (*_, said), = staged(programs, tool, "averaged").values()
    (held,) = (h for h in said["holders"] if h["line"] == line_of("average", "averaged") and h["bytes"] > 1 << 20)
    assert held["class"] in ("parameters", "optimizer_state") and held["bytes"] >= 8 * 16 << 20


def test_a_metric_behind_the_optimizer_is_of_its_step(programs, tool):
    """Its number is that of `steps`, where the next step begins behind the optimizer; nothing of the step before is older."""
    found = staged(programs, tool, "metric")
    assert list(found) == [2, 3, 4]
    assert [older(said) for step in found.values() for said in step] == [{}] * 3


def test_absolute_values_are_no_gradients(programs, tool):
    found = staged(programs, tool, "moments")
    assert list(found) == [1, 2]
    for said in (s[-1] for s in found.values()):
        weights, gradients = (said["categories"][c] for c in ("parameters", "gradients"))
        assert gradients == weights and said["categories"]["optimizer_temporaries"] >= weights // 2
        assert said["cause"] != "model_too_large"


def test_what_checkpointing_cuts_off_is_no_weight(programs, tool):
    found = staged(programs, tool, "cut_graphs")
    assert found and not [r for step in found.values() for said in step for r in said["remedies"] if r["name"] == "unused"]


def test_a_backward_pass_for_each_part(programs, tool):
    found = staged(programs, tool, "parts")
    saves = {n: [r["how_known"].split("Saves up to ")[1] for r in said[-1]["remedies"] if r["name"] == "backward_each"] for n, said in found.items()}
    assert saves == {1: [f"{7 * 8}.0 MiB"], 2: [f"{6 * 8}.0 MiB"]}  # the last refusal that can be staged there: in the eighth part, and in the seventh


def test_chunks_of_one_loss_are_no_parts(programs, tool):
    found = staged(programs, tool, "chunks")
    assert list(found) == [1, 2] and not [said for step in found.values() for said in step if "backward_each" in names(said)]


@pytest.mark.parametrize("kind", ["votes", "batches"])
def test_training_is_told_as_before(programs, tool, kind):
    (programs.folder / "program.py").write_text(PROGRAM)
    steps = tool.json("steps", programs.traced(programs.folder / "program.py", kind))
    assert steps["steps"] == {"votes": 4, "batches": 3}[kind]
