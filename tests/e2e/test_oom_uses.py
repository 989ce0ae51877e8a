# SPDX-License-Identifier: Apache-2.0
"""What `oom` concludes from uses, stacks and graphs: memory that nothing uses any more, passes before any backward pass, a first pass of
an evaluation, attention before its softmax, tensors that could be made one at a time. Beside each a program of the same shape that
needs what it holds."""
import re

import pytest

from conftest import with_more

pytestmark = pytest.mark.forks

PROGRAM = """
import random, sys, torch
from torch import nn
D = 1024

def made(*sizes):
    net = nn.Sequential(*[m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.GELU())]).cuda()
    return net, torch.optim.Adam(net.parameters())

def train(net, optimizer, n=2048, steps=4):
    for step in range(steps):
        net(torch.randn(n, D, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

def folds():
    kept = []
    for fold in range(20):
        net, optimizer = made(*[D] * 9)
        train(net, optimizer)
        kept.append((net, optimizer))

def in_turns():
    nets = [made(*[D] * 9) for i in range(6)]
    for turn in range(4):
        for net, optimizer in nets:
            train(net, optimizer, 2048 << 3 * (turn > 1), 1)

def data():
    rows = [torch.zeros(1 << 20).cuda() for i in range(400)]  # line

def asked_gradients():
    net, seen = made(256, 4096, D)[0], []
    for call in range(200):
        x = torch.rand(4096, 256, device="cuda", requires_grad=True)
        out = net(x)
        torch.autograd.grad(out.sum(), x)
        seen.append(out.detach())

def rollout(read):
    cell, state, total = nn.GRUCell(D, D).cuda(), torch.zeros(2048, D, device="cuda"), 0
    for call in range(200):
        state = cell(torch.randn(2048, D, device="cuda"), state)
        total = total + state.square().mean()
        if read:
            state.argmax(-1).cpu()

def streamed():
    rollout(True)

def unrolled():
    rollout(False)

def views():
    net, total = made(*[D] * 5)[0], 0
    for view in range(200):
        total = total + net(torch.randn(4096, D, device="cuda")).square().mean()

def long_context():
    class Attention(nn.Module):
        def forward(self, q, k, v):
            scores = torch.bmm(q, k.transpose(1, 2)) / 8
            return torch.bmm(scores.softmax(-1), v)
    q = torch.randn(8, 6000, 64, device="cuda", requires_grad=True)
    Attention()(q, q * 2, q * 3).sum().backward()

def products():
    class Layer(nn.Module):
        def forward(self, x, w):
            return torch.bmm(x, w) / 8
    Layer()(torch.randn(8, 12000, 2000, device="cuda"), torch.randn(8, 2000, 2000, device="cuda"))

def squares():
    net, optimizer = made(*[2 * D] * 19)
    net(torch.randn(16, 2 * D, device="cuda")).mean().backward()
    found = [p.grad ** 2 for p in net.parameters()]  # line
    sum(x.sum() for x in found).sqrt()

def joined():
    net, optimizer = made(*[2 * D] * 21)
    net(torch.randn(16, 2 * D, device="cuda")).mean().backward()
    torch.cat([p.grad.flatten() for p in net.parameters()]).norm()  # line

def gathered():
    net, optimizer = made(D, D)
    net(torch.randn(16, D, device="cuda")).mean().backward()
    optimizer.step()
    found = None
    with torch.no_grad():
        for _ in range(64):
            outs = [net(torch.randn(4096, D, device="cuda")) for _ in range(5)]
            found = outs if found is None else [torch.cat(pair) for pair in zip(found, outs)]  # line

def cast():
    net = made(*[4 * D] * 14)[0]
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        net(torch.randn(16, 4 * D, device="cuda"))

def retried():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(D, D) for i in range(10))
        def forward(self, x):
            for layer in self.layers:
                x = nn.functional.gelu(layer(x))
            return x
    net = Net().cuda()
    def predict(rows):
        return net(rows).mean(1).cpu()
    rows = torch.rand(40000, D, device="cuda")
    try:
        predict(rows)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        predict(rows[:20000])

def small_batch():
    train(*made(D, 9 * D, 9 * D, D), 64)

class Keeps(nn.Module):
    def forward(self, x):
        self.weights = (x @ x.transpose(1, 2)).softmax(-1)  # attribute
        return self.weights @ x

def attribute():
    net = nn.Sequential(nn.Linear(64, 64), *[Keeps() for i in range(8)]).cuda()
    with torch.no_grad():
        for n in range(300, 3000, 300):
            net(torch.randn(4, n, 64, device="cuda")).argmax(-1).cpu()

def collected():
    net, optimizer = made(D, D)
    train(net, optimizer, 64)
    seen = []
    with torch.no_grad():
        for call in range(200):
            x = torch.rand(2048, D).cuda()  # line
            seen.append((net(x).argmax(-1), x))

def read_again():
    net, latest = made(D, D)[0], []
    with torch.no_grad():
        for call in range(120):
            latest.append(net(torch.rand(2048, D, device="cuda")))
            torch.stack([x.mean() for x in latest[::-1]]).cpu()

def before_loss():
    net, optimizer = made(D, D)
    outs = [net(torch.rand(2048, D, device="cuda")) for call in range(120)]
    torch.cat(outs).square().mean().backward()

def loop_variable():
    net = made(64, 4 * D)[0]
    with torch.no_grad():
        for call in range(1, 40):
            out = net(torch.rand(1024 * call, 64, device="cuda"))

def served():
    encode, decode = made(*[D] * 6)[0], made(D, D)[0]
    voices = []
    for voice in range(200):
        voices.append(encode(torch.rand(1024, D, device="cuda")))  # line
        with torch.no_grad():
            for token in range(3):
                decode(voices[-1])

def distilled():
    student, teacher = made(*[D] * 6)[0], made(D, D)[0]
    total = 0
    for part in range(200):
        x = torch.rand(1024, D, device="cuda")
        with torch.no_grad():
            want = teacher(x)
        total = total + (student(x) - want).square().mean()
    total.backward()

def in_half_bytes(weight):
    return (weight / weight.abs().max()).half()  # line

def quantized():
    net = made(*[2 * D] * 40)[0]
    layers, new = [m for m in net if isinstance(m, nn.Linear)], []
    for layer in layers:
        new.append(nn.Parameter(in_half_bytes(layer.weight.data), requires_grad=False))

def copied():
    import copy
    net = made(*[2 * D] * 40)[0]
    average = copy.deepcopy(net)

def pasted():
    net = made(64, 64)[0]
    with torch.no_grad():
        for rows in (1 << 10, 3 << 20):
            canvas = torch.zeros(rows, 64, device="cuda")  # line
            for at in range(0, rows, rows // 8):
                canvas[at:at + rows // 8] = net(torch.rand(rows // 8, 64, device="cuda"))
            canvas.mul(255).byte().cpu()

def counted():
    net = made(64, 64)[0]
    with torch.no_grad():
        for rows in (1 << 10, 3 << 20):
            votes, times = [torch.zeros(rows, 64, device="cuda") for _ in range(2)]  # line
            for at in range(8):
                where = torch.randint(0, rows, (rows // 16,), device="cuda")
                votes.index_add_(0, where, net(torch.rand(rows // 16, 64, device="cuda")))
                times[at * (rows // 16):(at + 1) * (rows // 16)] += 1
            (votes / times.clamp(min=1)).cpu()

def painted():
    net = made(64, 64)[0]
    with torch.no_grad():
        for rows in (1 << 10, 3 << 20):
            canvas = torch.zeros(rows, 64, device="cuda")  # line
            for at in range(0, rows, rows // 8):
                canvas[at:at + rows // 8] += net(canvas[at:at + rows // 8] * 0.5)
            canvas.mul(255).byte().cpu()

def listed():
    net, optimizer = made(8 * D, 64)
    memory = []
    for episode in range(200):
        x = torch.rand(8 * D, device="cuda")
        for move in range(100):
            x = x * 0.5  # line
            memory.append(x)
        net(torch.stack(random.sample(memory, 32)) / 2).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

def first():
    made(*[D] * 12)[0](torch.randn(20000, D, device="cuda")).square().mean().backward()

def resumed():
    net = made(*[2 * D] * 10)[0]
    torch.save(net.state_dict(), "weights.pt")
    del net
    weights = torch.load("weights.pt", map_location="cuda")  # line
    net = nn.Sequential(*[m for _ in range(9) for m in (nn.Linear(2 * D, 2 * D), nn.GELU())])
    net.load_state_dict(weights)
    net(torch.randn(9000, 2 * D, device="cuda") if net.cuda() else 0).square().mean().backward()

def factors():
    x, width, trials = torch.rand(2000, 24, device="cuda"), torch.tensor(1.0, device="cuda", requires_grad=True), []
    for i in range(40):
        kernel = torch.exp(-torch.cdist(x, x) / (width * (0.5 + 0.1 * i)))
        trials.append(torch.linalg.cholesky(kernel + torch.eye(2000, device="cuda")))  # line

def lengths():
    net, optimizer = made(*[D] * 9)
    for rows in (900, 1200, 800, 1100, 1000, 9000, 700):  # some sequences are far longer
        net(torch.randn(4, rows, D).cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

def whole_set():
    net, optimizer = made(*[D] * 9)
    rows = torch.randn(40000, D)
    for step in range(5):
        net(rows[:4000].cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    net(rows.cuda()).square().mean().item()

globals()[sys.argv[1]]()
"""
# program: card, cause, words of remedies by their names; @ is the marked line, "" = the remedy is not there
CASES = {
    "folds": ("2GiB", "held_unused", {"unused": r"Release the models, optimizers and copies of train"}),
    "in_turns": ("2GiB", "batch_too_large", {"held_unused": "", "unused": ""}),
    "data": ("1500MiB", "unknown", {"data_on_host": "@"}),
    "asked_gradients": ("1200MiB", "retained_graph", {"let_go": "earlier steps"}),
    "streamed": ("1500MiB", "retained_graph", {"backward_each": r"fewer passes, and \.detach"}),
    "unrolled": ("1500MiB", "batch_too_large", {"backward_each": r"fewer passes, and \.detach", "let_go": ""}),
    "views": ("1500MiB", "batch_too_large", {"backward_each": r"backward\(\) on the loss of each pass", "let_go": "", "offload_activations": ""}),
    "long_context": ("3GiB", None, {"fused_attention": "scaled_dot_product_attention"}),
    "products": ("2500MiB", None, {"fused_attention": ""}),
    "squares": ("1000MiB", "unknown", {"one_by_one": "@ one at a time"}),
    "joined": ("1200MiB", "unknown", {"one_by_one": ""}),
    "gathered": ("1500MiB", None, {"results_on_host": "@", "one_by_one": ""}),
    "cast": ("1400MiB", None, {"autocast_cache": "cache_enabled=False"}),
    "retried": ("2GiB", "refused_attempts", {"refused_attempts": "leave the except block"}),
    "attribute": ("700MiB", "retained_graph", {"let_go": r"Free the tensors of Keeps\.forward"}),
    "collected": ("800MiB", "growing", {"let_go": "Free the tensors of collected @"}),
    "read_again": ("800MiB", None, {}),
    "before_loss": ("800MiB", None, {}),
    "loop_variable": ("800MiB", "retained_graph", {"let_go": "Free the tensors of loop_variable"}),
    "served": ("1200MiB", "retained_graph", {"backward_each": r"no_grad\(\) \(served @\)"}),
    "distilled": ("1200MiB", "batch_too_large", {"smaller_batch": "Halve the batch"}),
    "quantized": ("1150MiB", "model_too_large", {"converted": r"as soon as in_half_bytes program\.py:\d+ has converted it"}),
    "copied": ("1150MiB", "model_too_large", {"converted": ""}),
    "pasted": ("1700MiB", None, {"results_on_host": "@"}),
    "counted": ("2400MiB", None, {"results_on_host": "@"}),
    "painted": ("1700MiB", None, {"results_on_host": ""}),
    "listed": ("500MiB", None, {"smaller_batch": "", "one_by_one": ""}),
    "first": ("1500MiB", "batch_too_large", {"offload_activations": "save_on_cpu", "longer_samples": ""}),
    "resumed": ("1100MiB", None, {"loaded": "map_location", "idle_weights": ""}),
    "factors": ("1200MiB", None, {"shard": ""}),
    "lengths": ("1100MiB", None, {"longer_samples": "batches by their length"}),
    "whole_set": ("1100MiB", None, {"longer_samples": ""}),
    "small_batch": ("2GiB", "model_too_large", {"smaller_batch": ""}),
}

CLASSES = {"pasted": "forward_temporaries", "counted": "forward_temporaries", "painted": "inputs", "listed": "inputs"}  # of the marked line
LEFT = {"attribute", "collected", "loop_variable"}  # what earlier passes left is the cause


def place(kind):
    lines = PROGRAM.split("\n")
    marked = [i for i in range(lines.index(f"def {kind}():"), len(lines)) if "# line" in lines[i]]
    return f"program.py:{marked[0] + 1}" if marked else "no line"


@pytest.mark.parametrize("kind", with_more(CASES, {"joined", "products", "views", "loop_variable", "before_loss"}))
def test_what_uses_say(programs, tool, kind):
    card, cause, remedies = CASES[kind]
    (programs.folder / "program.py").write_text(PROGRAM)
    done = programs(programs.folder / "program.py", kind, card=f"card={card}", GPUMEMTRACE_OUTPUT="run.gmt")
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    said = tool.json("oom", programs.folder / "run.gmt")
    found = {r["name"]: r["what"] for r in said["remedies"]}
    assert said["cause"] == (cause or said["cause"]), (said["text"], found)
    for name, words in remedies.items():
        assert (name in found) == bool(words) and re.search(words.replace("@", place(kind)), found.get(name, "")), (said["text"], found)
    of_line = {h["class"] for h in said["holders"] if place(kind) == f"{h['file'].rpartition('/')[2]}:{h['line']}" and h["bytes"] > 1 << 20}
    assert kind not in CLASSES or of_line == {CLASSES[kind]}
    assert ("nothing has used them since" in said["text"]) == (kind in LEFT)
    conditional = {"in_pieces", "shard", "one_by_one", "data_on_host", "longer_samples", "fused_attention"}
    assert not any(r["enough"] for r in said["remedies"] if r["name"] in conditional)  # the recording does not decide their conditions
    cards = [r["name"].startswith("shard") for r in said["remedies"]]
    assert cards == sorted(cards) or said["cause"] == "model_too_large"  # code comes first
