# SPDX-License-Identifier: Apache-2.0
"""Changes that are made and run: `fit --make-it-fit`, `advise --try` and `oom --try`. The truth is the program as a person edits it, and the
program run with the same changes on a card of that size."""
import json
import os
import subprocess
import sys

import json_page
import pytest
import toy
from conftest import QUICK, TABLES, all_ran, record

MIB = 1 << 20
TAKES = os.path.join(toy.ROOT, "build/programs/takes")
SEEN = set()
TRAIN = """
import sys
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.mid, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.sigmoid(self.mid(torch.sigmoid(self.up(x)))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(256) for _ in range(12))
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if "checkpointed" in sys.argv else block(x)
        return self.head(x)


net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters())
rows, parts = 32768, 2 if "halved" in sys.argv else 1
for i, (x,) in enumerate(DataLoader(TensorDataset(torch.zeros(3 * rows, 256)), batch_size=rows // parts)):
    net(x.cuda()).sum().backward()
    if (i + 1) % parts == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("make_it_fit")
    (path / "train.py").write_text(TRAIN)
    subprocess.run(["make", "-s", "build/programs/takes"], cwd=toy.ROOT, check=True)
    return path


def call(folder, *args, code=0):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
    done = subprocess.run([toy.TOOL, *map(str, args)], cwd=folder, env={**env, "OMP_NUM_THREADS": "1", "PYTHONPATH": QUICK}, text=True, capture_output=True,
                          timeout=900)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stderr if code and not done.stdout else done.stdout


def document(folder, command, *args, code=0):
    found = json.loads(call(folder, command, "--json", *args, code=code))
    assert json_page.check(TABLES, command, found, SEEN) == []
    return found


def peak(folder, *how, card="h100-80g"):
    """Of the program as it was edited."""
    record(folder / "edited.gmt", folder / "train.py", *how, card=card)
    return json.loads(call(folder, "report", "--json", "edited.gmt"))["devices"][0]["peak_bytes"]


PROGRAM = ("--", sys.executable, "train.py")


def test_a_program_that_dies_is_made_to_fit(folder):
    found = document(folder, "fit", "--cards", "my=4GiB", "--make-it-fit", "-o", "sets", *PROGRAM)
    assert [c["fits"] for c in found["cards"]] == [False]
    sets = {" ".join(s["changes"]): s for s in found["sets"]}
    assert all(s["fits"] for s in found["sets"]) and [s["slowdown"] for s in found["sets"]] == sorted(s["slowdown"] for s in found["sets"])
    for change, edit in (("batch=1/2", "halved"), ("checkpoint=Block", "checkpointed")):
        made = sets[change]
        assert made["peak_bytes"] == peak(folder, edit, card="my=4GiB"), change  # which ends well on that card
        assert made["device_bytes"] == made["capacity_bytes"] - made["margin_bytes"] <= 4096 * MIB and made["code"] and made["cost"]
    text = call(folder, "fit", "--cards", "my=4GiB", "--make-it-fit", "-o", "sets", *PROGRAM)
    assert "Changes with which it fits my=4GiB (4.0 GiB), the cheapest first" in text and "checkpoint(block, x, use_reentrant=False)" in text
    page = (folder / "sets/index.html").read_text()
    assert json.loads(page.split('<script type="application/json" id="first">')[1].split("</script>")[0])["fit"]["sets"] == found["sets"]


@pytest.fixture(scope="module")
def whole(folder):
    """Of the program as it is."""
    record(folder / "whole.gmt", folder / "train.py")
    return folder


def test_changes_together(whole):
    """As they are measured together, and each alone as its finding says."""
    kinds = [f["kind"] for f in document(whole, "advise", "whole.gmt")["findings"]]
    number = {change: str(kinds.index(kind) + 1) for change, kind in (("checkpoint=Block", "checkpoint"), ("state_on_cpu", "offload_state"))}
    sets = [["checkpoint=Block", "batch=1/2"], ["checkpoint=Block", "state_on_cpu"]]
    words = ["+".join(number.get(change, change) for change in changes) for changes in sets]
    found = document(whole, "advise", "whole.gmt", "--together", words[0], "--together", words[1], "--together", number["checkpoint=Block"])
    alone = found["findings"][kinds.index("checkpoint")]
    assert [found["sets"][2][m] for m in ("peak_bytes", "at_most_bytes")] == [found["peak_bytes"] - alone[m] for m in ("saves_bytes", "least_bytes")]
    for changes, text, row in zip(sets, words, found["sets"]):
        made = [f"--with={change}" for change in changes]
        call(whole, "run", "-q", "--sim", "h100-80g", "-o", "made.gmt", *made, *PROGRAM)
        peak_bytes = json.loads(call(whole, "report", "--json", "made.gmt"))["devices"][0]["peak_bytes"]
        assert row["changes"] == text and row["peak_bytes"] * 0.97 <= peak_bytes <= row["at_most_bytes"] * 1.03
        assert row["at_most_bytes"] < 1.12 * row["peak_bytes"] and row["at_most_bytes"] < found["sets"][2]["at_most_bytes"]
    assert f"With {words[0]} the peak is " in call(whole, "advise", "whole.gmt", "--together", words[0])
    assert call(whole, "advise", "whole.gmt", "--together", "99", code=2) == f"gpumemtrace advise: --together 99: the findings are {len(kinds)}\n"


FROZEN = """
import sys
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.first = first
        self.blocks = nn.ModuleList(Block(512) for _ in range(8))
        self.head = nn.Linear(512, 64)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


kind = sys.argv[1]
words = torch.randint(0, 30000, (16384,), device="cuda")
kept = []
if kind != "pictures":  # the whole model goes on in the embedding's type
    net, batch = Net(nn.Embedding(30000, 512)), words
else:
    net, batch = Net(nn.Linear(768, 512)), torch.randn(16384, 768, device="cuda", requires_grad=True)
net.requires_grad_(False).head.requires_grad_()
if kind == "words":
    net.blocks[0].norm.requires_grad_()
if kind == "hooked":  # and so do the gradients of its results
    net.first.register_forward_hook(lambda module, args, out: kept.append(out.requires_grad_()))
net, copy = net.cuda(), Net(nn.Embedding(30000, 512)).cuda().requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad])
for _ in range(3):
    with torch.no_grad():
        wanted = copy(words).exp()
    for _ in range(12 if kind == "hooked" else 1):
        F.mse_loss(net(batch).float(), wanted.float()).backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.clear()
"""


@pytest.mark.parametrize("kind, width", [("words", 1.2), ("pictures", 1.05), ("hooked", 1.5)])
def test_frozen_weights_in_half_of_their_bits(folder, kind, width):
    """With what their modules make: its type is that of an embedding at the beginning, or of what a module is given."""
    program = ("--", sys.executable, "frozen.py", kind)
    (folder / "frozen.py").write_text(FROZEN)
    record(folder / "frozen.gmt", folder / "frozen.py", kind)
    row, = document(folder, "advise", "frozen.gmt", "--together", "frozen")["sets"]
    call(folder, "run", "-q", "--sim", "h100-80g", "-o", "made.gmt", "--with", "frozen=bf16", *program)
    peak_bytes = json.loads(call(folder, "report", "--json", "made.gmt"))["devices"][0]["peak_bytes"]
    assert row["peak_bytes"] * 0.97 <= peak_bytes <= row["at_most_bytes"] * 1.03 and row["at_most_bytes"] <= width * row["peak_bytes"]


UPDATES = """
import sys
import torch
from torch import nn
net = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(net.parameters(), fused="fused" in sys.argv)
for i in range(4):
    net(torch.randn(64, 2048, device="cuda")).sum().backward()
    if "clipped" in sys.argv:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    if "summed" not in sys.argv or i % 2:
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize("how, meant", [("plain", True), pytest.param("fused", True, marks=pytest.mark.more), ("clipped", False), ("summed", False)])
def test_updates_in_the_backward_pass(folder, how, meant):
    """A norm, or a sum over several passes, needs all gradients at once: then it is not offered."""
    program = ("--", sys.executable, "updates.py", how)
    (folder / "updates.py").write_text(UPDATES)
    record(folder / "updates.gmt", folder / "updates.py", how)
    found = document(folder, "advise", "updates.gmt", "--together", "in_backward")
    row, = found["sets"]
    if not meant:
        assert row["peak_bytes"] == row["at_most_bytes"] == found["peak_bytes"]
        return
    call(folder, "run", "-q", "--sim", "h100-80g", "-o", "made.gmt", "--with", "optimizer=in_backward", *program)
    peak_bytes = json.loads(call(folder, "report", "--json", "made.gmt"))["devices"][0]["peak_bytes"]
    assert peak_bytes < 0.85 * found["peak_bytes"] and row["peak_bytes"] * 0.99 <= peak_bytes <= row["at_most_bytes"] * 1.01


def test_a_search_that_is_exhausted(folder):
    """Not even the weights have room."""
    text = " ".join(call(folder, "fit", "--cards", "my=100MiB", "--make-it-fit", "-o", "sets", *PROGRAM, code=1).split())
    assert "No set of these changes fits my=100MiB: " in text and "checkpoint=Block" in text and "The closest is " in text and "and lacks " in text


SHORT = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 1024), nn.Sigmoid(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(3):
    x = torch.randn(65536, 256, device="cuda")
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_part_of_a_batch_that_cannot_be_judged(folder):
    """Two parts are one step of the optimizer, and the third part adds to no gradient: that takes less than a training does."""
    (folder / "short.py").write_text(SHORT)
    found = document(folder, "fit", "--cards", "my=1100MiB", "--make-it-fit", "--max-runs", "6", "--", sys.executable, "short.py", code=1)
    errors = {" ".join(s["changes"]): s.get("error", "") for s in found["sets"]}
    assert errors["batch=1/2@65536"].startswith("with it the program makes fewer than two steps of its optimizer") and "batch=1/4@65536" not in errors


SLOW = """#!/bin/sh
case "$*" in *" tell") sleep 4;; esac
exec {} "$@"
"""


def test_what_a_change_did_is_said_on_a_busy_machine(folder):
    """A run that was ended early says it behind the program's end, and Python may need seconds to start."""
    (folder / "long.py").write_text(SHORT.replace("range(3)", "range(10 ** 7)"))
    python = folder / "python-slow"
    python.write_text(SLOW.format(sys.executable))
    python.chmod(0o755)
    found = document(folder, "fit", "--cards", "my=1100MiB", "--make-it-fit", "--steps", "3", "--max-runs", "3", "--", python, "long.py", code=1)
    half, = (s for s in found["sets"] if s["changes"] == ["batch=1/2"])
    assert half["verdict"] == "failed" and "no DataLoader gave" in half["error"]


TWO = """
import copy
import torch
from torch import nn
encoder, decoder = (nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024)) for _ in range(2))
net = nn.Sequential(encoder, decoder).cuda()
copies = [copy.deepcopy(net) for _ in range(2)]
first = torch.optim.AdamW(net.parameters())
for _ in range(3):
    net(torch.randn(256, 1024, device="cuda")).square().mean().backward()
    first.step()
    first.zero_grad()
    with torch.no_grad(), torch.autocast("cuda", torch.float16):
        for model in copies:
            model(torch.randn(64, 1024, device="cuda"))
second = torch.optim.AdamW(encoder.parameters())
for _ in range(4):
    x = torch.randn(8192, 1024, device="cuda")
    encoder(x).square().mean().backward()
    second.step()
    second.zero_grad()
"""


def test_a_second_training_with_an_optimizer_of_its_own(folder):
    """Changes reach the state of the first optimizer too, which nothing uses any more. The first training has smaller batches, and its steps stay whole.
    Copies of the weights, which autocast converts as it does those that are trained, have no state; it is not of 8 bits for that."""
    (folder / "two.py").write_text(TWO)
    record(folder / "two.gmt", folder / "two.py")
    kinds = [f["kind"] for f in document(folder, "advise", "two.gmt")["findings"]]
    offload = str(kinds.index("offload_state") + 1)
    found = document(folder, "advise", "two.gmt", *(word for text in ("batch=1/2", offload, f"{offload}+batch=1/2") for word in ("--together", text)))
    half, host, both = found["sets"]
    state = 2 * 4 * 2 * 1024 * 2048 * 4 // 2  # two values for each weight of two linear layers
    assert "state_in_8_bits" in kinds and host["at_most_bytes"] - host["peak_bytes"] >= state
    for row, changes in ((half, ["batch=1/2@8192"]), (host, ["state_on_cpu"]), (both, ["batch=1/2@8192", "state_on_cpu"])):
        call(folder, "run", "-q", "--sim", "h100-80g", "-o", "made.gmt", *(f"--with={change}" for change in changes), "--", sys.executable, "two.py")
        peak_bytes = json.loads(call(folder, "report", "--json", "made.gmt"))["devices"][0]["peak_bytes"]
        assert 0.97 * row["peak_bytes"] <= peak_bytes <= 1.03 * (row["peak_bytes"] if row is host else row["at_most_bytes"]), changes


@pytest.mark.more
def test_runs_are_few(folder):
    """One fits; for others there is no run left."""
    text = " ".join(call(folder, "fit", "--cards", "my=4GiB", "--make-it-fit", "--max-runs", "1", *PROGRAM).split())
    assert " 1 batch=1/2 " in text and "1 run of changes made; " in text and "might fit by prediction (--max-runs N runs more)" in text


def test_a_program_that_cannot_be_changed_from_outside(folder):
    text = call(folder, "fit", "--cards", "my=1GiB", "--make-it-fit", "--", TAKES, "--blocks", "20", "--mib", "100", code=1)
    assert "No set of changes fits my=1GiB: no change that saves memory can be made from outside" in " ".join(text.split())
    assert "sets" in document(folder, "fit", "--cards", "my=1GiB", "--make-it-fit", "--", TAKES, "--blocks", "20", "--mib", "100", code=1)


def test_suggestions_are_tried_on_the_card_of_the_recording(folder):
    call(folder, "run", "-q", "--sim", "my=4GiB", "-o", "died.gmt", *PROGRAM, code=1)
    found = document(folder, "oom", "died.gmt", "--try", *PROGRAM)
    assert found["tried_on"] == "my=4GiB"
    tried = {r["name"]: r for r in found["remedies"] if r.get("ends")}
    assert tried["smaller_batch"]["measured_peak_bytes"] == peak(folder, "halved") and tried["smaller_batch"]["how_known"] == "run"
    for remedy in found["remedies"]:
        assert ("ends" in remedy) == bool(remedy["changes"]) == bool(remedy["code"])


@pytest.mark.more
def test_advice_is_tried(whole):
    folder = whole
    found = document(folder, "advise", "whole.gmt", "--try", *PROGRAM)
    made = {f["kind"]: f for f in found["findings"]}["checkpoint"]
    assert made["measured_peak_bytes"] == peak(folder, "checkpointed") and made["ends"] and made["how_known"] == "run"
    assert made["saves_bytes"] == found["peak_bytes"] - made["measured_peak_bytes"] and found["tried_on"] == "h100-80g"
    text = call(folder, "advise", "--try", "--top", "1", *PROGRAM)  # the program as it is is run first
    assert "1 of 1 suggestion made from outside and run on h100-80g" in text and "To write it:" in text


def test_all_members_were_seen(request):
    if not SEEN or not all_ran(request):
        pytest.skip("the other tests ran elsewhere")
    asked = {table for table, _ in SEEN}
    assert not {(table, name) for table, name in json_page.of_tries() if table in asked} - SEEN - {("fit_set", "error")}


@pytest.mark.parametrize("args, said", [
    (["fit", "--make-it-fit", "--", TAKES], "--make-it-fit needs the card that the program is to fit: --cards NAME"),
    (["fit", "--cards", "my=1GiB", "--make-it-fit"], "the command to run (after --) is missing"),
    (["fit", "--cards", "my=1GiB", "--make-it-fit", "--vary", "batch=1,2", "--", TAKES], "--make-it-fit and --vary exclude each other"),
    (["fit", "--cards", "my=1GiB", "--make-it-fit", "--max-runs", "0", "--", TAKES], "--max-runs takes 1 to 1000"),
    (["fit", "--cards", "my=1GiB", "--max-runs", "3", "--", TAKES], "--max-runs is for --make-it-fit"),
    (["oom", "--try", "--", TAKES], "FILE is missing"),
    (["oom", "x.gmt", "--try"], "--try and the command that it runs go together"),
    (["oom", "x.gmt", "--", TAKES], "--try and the command that it runs go together"),
    (["advise", "x.gmt", "--try"], "--try and --card are for -- COMMAND"),
    (["advise", "x.gmt", "--", TAKES], "give --try alone"),
    (["advise", "x.gmt", "--try", "batch=1", "--", TAKES], "give --try alone"),
    (["advise", "x.gmt", "--try", "--", "/no/such"], "/no/such cannot be started"),
    (["advise", "x.gmt", "--together", "batch"], "--together batch: give numbers of findings, such as 1+3 or 1+batch=1/2"),
])
def test_wrong_usage(folder, args, said):
    error = call(folder, *args, code=2)
    assert said in error and error.startswith(f"gpumemtrace {args[0]}: ") and error.count("\n") == 1
