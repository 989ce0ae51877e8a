# SPDX-License-Identifier: Apache-2.0
"""Two versions of one program, with one known change between them: it is the first finding, and its bytes are what
PyTorch counts. Every new version has its lines moved, too."""
import json
import re
import shutil

import pytest
from conftest import with_more

pytestmark = pytest.mark.forks

EMA = "        ema = copy.deepcopy(net)\n"
SDPA = """        y = F.scaled_dot_product_attention(q, k, v)
"""
EAGER = """        scores = q @ k.transpose(-1, -2)
        weights = F.softmax(scores / shape[-1] ** 0.5, -1)
        y = weights @ v
"""
CHECK = """            check = loss_of(net, ids)
            history.append(%s)
"""


def edit(*changes):
    """Changes of the program: (old text, new text), each found once."""
    def apply(files):
        for before, after in changes:
            hit = [name for name, text in files.items() if before in text]
            assert len(hit) == 1 and files[hit[0]].count(before) == 1, before
            files[hit[0]] = files[hit[0]].replace(before, after)
        return files
    return apply


def moved(files):
    """Other line numbers everywhere, within functions too; nothing else."""
    for name, text in files.items():
        text = text.replace("\nimport torch\n", "\n# one\n# two\n\nimport torch\n")
        text = text.replace("\nclass ", "\n# A remark.\nclass ").replace("        optimizer.step()", "\n        # step\n        optimizer.step()")
        files[name] = text.replace("        self.heads = heads\n", "\n        self.heads = heads\n")
    return files


def renamed(files):
    files["network.py"] = files.pop("model.py")
    files["train.py"] = files["train.py"].replace("import model", "import network").replace("model.Net", "network.Net")
    return files


def pipeline(*parts):
    def apply(files):
        for part in parts:
            files = part(files)
        return files
    return apply


def keeping(what):
    return edit(("        loss.backward()\n", "        loss.backward()\n" + CHECK.replace("            ", "        ") % what),
                ("    optimizer = make_optimizer(net)\n", "    optimizer = make_optimizer(net)\n    history = []\n"))


NOTHING = edit()
ADAM = "return torch.optim.AdamW(net.parameters(), lr=1e-3)"
SGD = (ADAM, "return torch.optim.SGD(net.parameters(), lr=1e-3)")
RENAMED_FUNCTIONS = edit(("def loss_of(net, ids):", "def cost(net, ids):"), ("loss = loss_of(", "loss = cost("))

# the old version, the new one; of the first finding: kind, classes it may have, the function, words in its text
CASES = {
    "layer": (NOTHING, edit(("WIDTH, LAYERS = 8, 128, 512, 128, 4", "WIDTH, LAYERS = 8, 128, 512, 128, 5")),
              "grown", "activations", "(Attention|MLP|Block).forward", "5 blocks, were 4"),
    "module": (NOTHING, edit(("        self.head = ", "        self.middle = nn.Linear(width, 8 * width)\n        self.head = "),
                             ("width, words)\n\n    def forward(self, ids)", "8 * width, words)\n\n    def forward(self, ids)"),
                             ("return self.head(x)", "x = self.middle(x)\n        return self.head(x)")),
               "grown", "activations|parameters", "Net.forward|make_model", "model"),
    "batch": (NOTHING, edit(("WIDTH, LAYERS = 8,", "WIDTH, LAYERS = 16,")),
              "grown", "activations|inputs", "(Attention|MLP).forward|main", r"inputs are 2 times.*main train.py"),
    "sequence": (NOTHING, edit(("LAYERS = 8, 128,", "LAYERS = 8, 256,")),
                 "grown", "activations|inputs", "(Attention|MLP).forward|main", r"inputs are 2 times.*sequence"),
    "graph": (keeping("check.detach()"), keeping("check"), "grown", "activations", "(Attention|MLP).forward", "Kept from step to step"),
    "losses": (NOTHING, edit(("        optimizer.step()", "        losses.append(loss)\n        optimizer.step()"),
                             ("    for step", "    losses = []\n    for step")),
               "grown", "forward_temporaries", "loss_of", "Kept from step to step: 512 B"),
    "optimizer": (edit(SGD), NOTHING, "new", "optimizer_state", "main", "SGD -> AdamW"),
    "checkpoint": (NOTHING, edit(("import torch\nfrom torch import nn", "import torch\nimport torch.utils.checkpoint\nfrom torch import nn"),
                                 ("x = block(x)", "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)")),
                   "shrunk", "activations", "(Attention|MLP).forward", "checkpointing"),
    "sdpa": (NOTHING, edit((EAGER, SDPA)), "shrunk", "activations", "Attention.forward", "activations of Attention.forward"),
    "bf16": (NOTHING, edit(("return net.cuda()", "return net.cuda().bfloat16()")),
             "shrunk", "activations", "(Attention|MLP).forward", "1/2 as large.*precision"),
    "set_to_none": (NOTHING, edit(("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)")),
                    "new|grown", "gradients|backward_temporaries", "main", "set_to_none.*main train.py"),
    "accumulate": (NOTHING, edit(("        loss.backward()\n        optimizer.step()", "        loss.backward()\n        if step % 2:\n            continue\n        optimizer.step()")),
                   "new|grown", "gradients", ".*", "gradients.*a step has 2 backward passes instead of 1"),
    "no_zero_grad": (NOTHING, edit(("        optimizer.zero_grad()\n", "")), "new|grown", "gradients|backward_temporaries", "main", "gradients.*main train.py"),
    "ema": (NOTHING, edit(("import torch\nfrom torch.nn import", "import copy\n\nimport torch\nfrom torch.nn import"),
                          ("    for step", "    ema = copy.deepcopy(net)\n    for step")),
            "new", "parameters", "main", "New: parameters of main"),
    "autocast": (NOTHING, edit(("        loss = loss_of(net, ids)", "        with torch.autocast('cuda', torch.bfloat16):\n            loss = loss_of(net, ids)")),
                 "shrunk", "activations", "(Attention|MLP).forward", "Results are cast to another precision"),
    "vocabulary": (NOTHING, edit(("LAYERS = 8, 128, 512, 128, 4", "LAYERS = 8, 128, 2048, 128, 4")),
                   "grown", "activations|parameters", "Net.forward|loss_of|make_model", "A larger model"),
    "frozen": (NOTHING, edit(("    return net.cuda()", "    net.cuda()\n    for block in list(net.blocks)[:3]:\n        block.requires_grad_(False)\n    net.words.requires_grad_(False)\n    return net")),
               "shrunk", "activations", "(Attention|MLP).forward", "Fewer of the parameters are trained"),
}
REARRANGED = edit(("        h = self.up(x)\n        return self.down(F.gelu(h))", "        h = F.gelu(self.up(x))\n        return self.down(h)"))
PROGRAMS_OF_THEIR_OWN = {
    # a generator and a critic: what the generator made is detached for the critic's own pass, or not
    "reach": ("""
import torch
from torch import nn
def layers(*widths):
    return nn.Sequential(*(part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), nn.LeakyReLU())))
def critic_step():
    fake = generator(torch.randn(4096, 64, device="cuda"))
    score = critic(fake.detach()).mean() - critic(torch.randn(4096, 512, device="cuda")).mean()
    second.zero_grad()
    score.backward()
    second.step()
def generator_step():
    score = -critic(generator(torch.randn(4096, 64, device="cuda"))).mean()
    first.zero_grad()
    score.backward()
    first.step()
generator, critic = layers(64, 512, 512, 512).cuda(), layers(512, 64, 1).cuda()
first, second = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
for step in range(4):
    critic_step()
    generator_step()
""", ("fake.detach()", "fake"), "activations|backward_temporaries", "critic_step", "Backward goes further.*20 gradients.*instead of 14.*no longer detached"),
    # one backward pass for the losses of four forward passes
    "passes": ("""
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
def step():
    total = 0
    for _ in range(4):
        loss = model(torch.randn(2048, 64, device="cuda")).square().mean() / 4
        loss.backward(); total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
for _ in range(4):
    step()
""", ("loss.backward(); total += loss.item()\n", "total = total + loss\n    total.backward()\n"), "activations", "step",
               "Results of 4 forward passes are held at once instead of 1.*1 backward pass instead of 4"),
    # an evaluation that is far below the peak
    "recorded": ("""
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(6))
    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x
@torch.no_grad()
def evaluate():
    return sum(net(torch.randn(512, 256, device="cuda")).mean().item() for _ in range(3))
net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    net(torch.randn(4096, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 2:
        evaluate()
""", ("@torch.no_grad()\n", ""), "activations", "Net.forward", "as without torch.no_grad.*called at evaluate"),
    # a loop over a sequence that is longer: more blocks, not larger ones
    "scale": ("""
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(64, 128), nn.Linear(128, 64)
    def forward(self, x):
        state, results = torch.zeros(len(x), 128, device="cuda"), []
        for token in x.unbind(1):
            state = self.cell(token, state)
            results.append(self.out(state))
        return torch.stack(results, 1)
net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(4):
    x = torch.randn(128, 16, 64, device="cuda")
    (net(x) - x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""", ("128, 16, 64", "128, 32, 64"), "activations|inputs", "Net.forward", "The inputs are 2 times as large.*sequence"),
    # once in an epoch
    "kept": ("""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer, history = torch.optim.Adam(net.parameters()), []
def epoch():
    for _ in range(4):
        y = net(torch.randn(256, 256, device="cuda"))
        optimizer.zero_grad()
        y.square().mean().backward()
        optimizer.step()
    history.append(y.cpu())
for _ in range(5):
    epoch()
""", ("y.cpu()", "y"), "forward_temporaries", "epoch", "Kept from step to step: .*kept results"),
    # a copy of the weights beside the optimizer's state
    "line": ("""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.Adam(net.parameters())
def start():
    return [p.cpu() for p in net.parameters()]
average = start()
for _ in range(4):
    net(torch.randn(256, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""", ("p.cpu()", "p.detach().clone()"), "optimizer_state|parameters", "start(.<locals>.<listcomp>)?|<listcomp>", "New: .*as large as all parameters"),
}
SAME = {"rearranged": pipeline(moved, REARRANGED), "moved": moved, "renamed": pipeline(moved, renamed), "functions": pipeline(moved, renamed, RENAMED_FUNCTIONS)}


def versions(programs, name, change):
    folder = programs.folder / name
    base = {p: open(programs.workload("diff/" + p)).read() for p in ("model.py", "train.py")}
    folder.mkdir()
    for file, text in change(base).items():
        (folder / file).write_text(text)
    return programs.traced(str(folder / "train.py"), output=name + ".gmt")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The recording of the program as it is: made once."""
    kept = {}

    def make(programs):
        if not kept:
            folder = tmp_path_factory.mktemp("base")
            kept["file"] = shutil.copy(versions(programs, "base", NOTHING), folder / "base.gmt")
        return kept["file"]
    return make


def check_sums(tool, said, old, new):
    """Peaks and classes are those of report; what the findings say makes up the difference of the compared moments."""
    for side, file in (("old", old), ("new", new)):
        device = tool.json("report", file)["devices"][0]
        assert said["peak_" + side] == device["peak_bytes"]
        assert {c["class"]: c["bytes_" + side] for c in said["classes"] if c["bytes_" + side]} == \
            {k: v for k, v in device["categories_at_peak"].items() if v}
    assert said["delta"] == said["peak_new"] - said["peak_old"]
    compared = said["new"]["compared"]["bytes"] - said["old"]["compared"]["bytes"]
    findings = [f for f in said["findings"] if f["kind"] != "moved" and f["cause"] != "reserved"]
    assert all(f["delta"] == f["bytes_new"] - f["bytes_old"] for f in said["findings"])
    assert sum(f["delta"] for f in findings) == compared
    for f in findings:
        assert sum(p["delta"] for p in f["parts"]) == f["delta"]


@pytest.mark.parametrize("case", with_more(CASES, {"sequence", "vocabulary", "bf16", "losses"}))
def test_a_known_change(programs, tool, base, case):
    before, after, kind, classes, function, words = CASES[case]
    old = base(programs) if before is NOTHING else versions(programs, "old", before)
    new = versions(programs, "new", pipeline(after, moved))
    said = tool.json("diff", old, new)
    first = said["findings"][0]
    print(json.dumps(said["findings"][:4], indent=1)[:3000])
    check_sums(tool, said, old, new)
    assert re.fullmatch(kind, first["kind"]) and re.fullmatch(classes, first["class"])
    assert re.fullmatch(function, first["function"]) and re.search(words, first["text"])


@pytest.mark.parametrize("cause", PROGRAMS_OF_THEIR_OWN)
def test_a_cause(programs, tool, cause):
    text, (before, after), classes, function, words = PROGRAMS_OF_THEIR_OWN[cause]
    assert text.count(before) == 1
    files = []
    for name, version in (("old", text), ("new", "# moved\n" + text.replace(before, after))):
        (programs.folder / name).mkdir()
        (programs.folder / name / "train.py").write_text(version)
        files.append(programs.traced(str(programs.folder / name / "train.py"), output=name + ".gmt"))
    said = tool.json("diff", *files)
    first = said["findings"][0]
    print(json.dumps(said["findings"][:4], indent=1)[:3000])
    check_sums(tool, said, *files)
    assert first["cause"] == cause and re.fullmatch(classes, first["class"])
    assert re.fullmatch(function, first["function"]) and re.search(words, first["text"])


@pytest.mark.parametrize("case", SAME)
def test_the_same_program(programs, tool, base, case):
    said = tool.json("diff", base(programs), versions(programs, "new", SAME[case]))
    assert said["findings"] == [] and said["delta"] == 0 and said["modules"] == []


KEEPS = """
import torch
from torch import nn
first, rest = nn.Sequential(nn.Linear(256, 512), nn.ReLU()).cuda(), nn.Linear(512, 256).cuda()
optimizer, history = torch.optim.SGD([*first.parameters(), *rest.parameters()], lr=0.1), []
def encode(x):
    return first(x).double()
for _ in range(8):
    hidden = first(torch.randn(4096, 256, device="cuda"))
    history.append(hidden.detach())
    rest(hidden.float()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("before, after, cause", [("4096", "2048", "scale"), ("first(torch", "encode(torch", "function|line")])
def test_what_both_keep_is_no_cause(programs, tool, before, after, cause):
    """Both versions keep a result of each step: half as large in one of them, or twice as large and made in another function."""
    files = []
    for name, text in ("old", KEEPS), ("new", KEEPS.replace(before, after)):
        (programs.folder / f"{name}.py").write_text(text)
        files.append(programs.traced(str(programs.folder / f"{name}.py"), output=f"{name}.gmt"))
    for old, new in (files, files[::-1]):
        said = tool.json("diff", old, new)
        check_sums(tool, said, old, new)
        assert {f["cause"] for f in said["findings"]} <= {"scale", "function", "line", "rounding", "reserved", "moved"}
        assert re.fullmatch(cause, said["findings"][0]["cause"])


OF_TWO_TYPES = """
import torch
net = torch.nn.Linear(256, 256, dtype=TYPE).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x, y = torch.randn(4096, 256, dtype=TYPE, device="cuda"), torch.randn(4096, 256, dtype=torch.float64, device="cuda")
    a, b = net(x).sin(), (y * net.bias.mean()).sin()
    (a.mean() + b.mean()).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_another_precision_is_no_larger_batch(programs, tool):
    """Of the two inputs of a line one has elements of twice the size, and the other is as before."""
    files = []
    for name in "bfloat16", "float32":
        (programs.folder / f"{name}.py").write_text(OF_TWO_TYPES.replace("TYPE", f"torch.{name}"))
        files.append(programs.traced(str(programs.folder / f"{name}.py"), output=f"{name}.gmt"))
    for old, new in (files, files[::-1]):
        said = tool.json("diff", old, new)
        check_sums(tool, said, old, new)
        assert "scale" not in {f["cause"] for f in said["findings"]}, said["findings"]


def test_either_of_two_like_peaks(programs, tool):
    """The loss of a large vocabulary makes two moments of backward about as high: whichever is the highest, like is
    compared with like."""
    text = """
import torch
from torch import nn
table, cell, head = nn.Embedding(8000, 256).cuda(), nn.LSTM(256, 256, batch_first=True).cuda(), nn.Linear(256, 8000).cuda()
optimizer = torch.optim.Adam([*table.parameters(), *cell.parameters(), *head.parameters()])
for step in range(4):
    ids = torch.zeros(BATCH, 64, dtype=torch.long, device="cuda")
    loss = nn.functional.cross_entropy(head(cell(table(ids))[0]).flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    files = []
    for batch in 24, 36:
        (programs.folder / f"{batch}.py").write_text(text.replace("BATCH", str(batch)))
        files.append(programs.traced(str(programs.folder / f"{batch}.py"), output=f"{batch}.gmt"))
    said = tool.json("diff", *files)
    print(json.dumps(said["findings"], indent=1)[:3000])
    assert said["findings"][0]["cause"] == "scale" and "inputs are 1.5 times" in said["findings"][0]["text"]
    assert all(f["cause"] in ("scale", "rounding", "reserved") or abs(f["delta"]) < 0.05 * said["delta"] for f in said["findings"])
