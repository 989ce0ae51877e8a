# SPDX-License-Identifier: Apache-2.0
"""A recording answers for itself: another version of the program in its folder, or none, changes not one byte."""
import subprocess

NET = """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("angles", torch.randn(512, 512, device="cuda"))
        self.cache_k = torch.zeros(512, 256, device="cuda")
        self.out = torch.nn.Linear(512, 512, device="cuda")
    def forward(self, x):
        return self.out((x @ self.angles).relu()) + self.cache_k.sum()
"""
TRAIN = """\
import torch
from net import Net
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    net(torch.randn(64, 512, device="cuda")).sum().backward()
    kept = [p.grad.clone() for p in net.parameters()]
    optimizer.step()
    optimizer.zero_grad()
try:
    torch.empty(1 << 40, device="cuda")
except torch.OutOfMemoryError:
    print("refused")
"""
# On the same lines statements that mean something else.
LATER = {"net.py": NET.replace('self.register_buffer("angles", torch.randn(512, 512, device="cuda"))',
                               'self.angles = torch.nn.Parameter(torch.randn(512, 512, device="cuda"))').replace("cache_k", "bias_k"),
         "train.py": TRAIN.replace("kept = [p.grad.clone() for p in net.parameters()]", "kept = [p.half().float() for p in net.parameters()]")}


def git(folder, *command):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=folder, check=True, capture_output=True)


def commit(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "a version")


def answers(tool, recording):
    addresses = [b["addr"] for b in tool.json("live", recording, "--at", "oom")["blocks"]][:8]
    said = [tool(command, recording, "--json") for command in ("report", "live", "oom", "leaks", "steps")]
    said += [tool("diff", recording, recording, "--json"), tool("live", recording, "--at", "oom", "--json")]
    return said + [tool("why", recording, hex(a), "--at", "oom", "--json") for a in addresses]


def test_another_version_in_the_folder(tool, programs, tmp_path):
    folder = tmp_path / "program"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, {"net.py": NET, "train.py": TRAIN})
    recording = programs.traced(folder / "train.py", PYTHONDONTWRITEBYTECODE=1)
    before = answers(tool, recording)
    # What the text of a statement says did decide something.
    live = tool.json("live", recording, "--at", "oom")["blocks"]
    assert {b["size"]: b["category"] for b in live if b["size"] in (512 * 512 * 4, 512 * 256 * 4)}[512 * 256 * 4] == "kv_cache"
    assert {b["category"] for b in live if b["size"] == 512 * 512 * 4} >= {"buffers", "gradients", "optimizer_state", "parameters"}
    state = next(b for b in live if b["size"] == 512 * 512 * 4 and b["category"] == "optimizer_state")
    why = tool.json("why", recording, hex(state["addr"]), "--at", "oom")
    assert (why["rule"], why["confidence"]) == ("state", "certain") and why["confidence_percent"] >= 99
    assert "(certain, rule state)" in tool("why", recording, hex(state["addr"]), "--at", "oom")
    commit(folder, LATER)
    assert answers(tool, recording) == before
    git(folder, "checkout", "-q", "HEAD~1")
    assert answers(tool, recording) == before
    for name in LATER:
        (folder / name).unlink()
    assert answers(tool, recording) == before
