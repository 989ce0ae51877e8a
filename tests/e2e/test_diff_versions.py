# SPDX-License-Identifier: Apache-2.0
"""What released versions of packages changed, each as two small modules of its own (tests/versions has the packages
themselves): the first finding is the line and the reason that the maintainers gave, in both directions, and nothing that is
said is false. What is right is counted by the programs: bytes of the tensors that a version makes more than the other."""
import json
import re

import pytest
from conftest import with_more
from test_diff import check_sums

pytestmark = pytest.mark.forks

MIB = 1 << 20
TRAIN = """
import torch
from torch import nn
from net import *
torch.manual_seed(0)
model = make().cuda().train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(3):
    step(model)
    optimizer.step()
    optimizer.zero_grad()
"""
# A mask for the longest sequence that there may be, and a copy of it for each pass; then one of the length that is there.
MASK = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, words, width, longest):
        super().__init__()
        self.words, self.out = nn.Embedding(words, width), nn.Linear(width, words)
        self.inner = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        {buffer}
    def mask(self, x):
        {mask}
        return mask
    def forward(self, ids):
        x = self.words(ids)
        mask = self.mask(x)
        for layer in self.inner:
            x = x + torch.relu(layer(x))
        scores = (x @ x.transpose(-1, -2)) * mask[:, :x.shape[1], :x.shape[1]]
        return self.out(torch.softmax(scores, -1) @ x)
def make():
    return Net(512, 256, 2048)
def step(model):
    model(torch.randint(0, 512, (8, 256), device="cuda")).square().mean().backward()
"""
# Attention that was a class, and a loss that was in the model, are functions in files of their own now; on the way attention
# makes a copy more.
HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
"""
BLOCK = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.attention, self.up, self.down = nn.LayerNorm(width), Attention(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.down(F.gelu(self.up(x)))
def make():
    return Net(8000, 256, 4).bfloat16()
def step(model):
    ids = torch.randint(0, 8000, (8, 256), device="cuda")
    model(ids, ids)[0].backward()
"""
SPLIT_OLD = HEAD + """
class SdpaAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
        q, k = q * 0.5, k * 2
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2)
        return self.out(y.reshape(x.shape))
Attention = SdpaAttention
class Net(nn.Module):
    def __init__(self, words, width, layers):
        super().__init__()
        self.words, self.blocks, self.head = nn.Embedding(words, width), nn.ModuleList(Block(width) for _ in range(layers)), nn.Linear(width, words)
    def forward(self, ids, labels):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        upcast = logits.float()
        shifted = upcast[:, :-1].contiguous()
        loss = F.cross_entropy(shifted.flatten(0, 1), labels[:, 1:].flatten())
        return loss, logits
""" + BLOCK
SPLIT_NEW = HEAD + """
from attention import attend
from losses import language_model_loss
class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
        q, k = q * 0.5, k * 2
        return self.out(attend(q, k, v).reshape(x.shape))
class Net(nn.Module):
    def __init__(self, words, width, layers):
        super().__init__()
        self.words, self.blocks, self.head = nn.Embedding(words, width), nn.ModuleList(Block(width) for _ in range(layers)), nn.Linear(width, words)
    def forward(self, ids, labels):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        return language_model_loss(logits, labels), logits
""" + BLOCK
ATTEND = """
import torch
def attend(query, key, value):
    result = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return result.transpose(1, 2).mul(1).contiguous().mul(2)
"""
LOSSES = """
from torch.nn import functional
def language_model_loss(logits, labels):
    logits = logits.float()
    shifted = logits[:, :-1].contiguous()
    return functional.cross_entropy(shifted.flatten(0, 1), labels[:, 1:].flatten())
"""
# The adapters of a model in half precision are in full precision now.
ADAPTERS = """
import torch
from torch import nn
class Adapted(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.a, self.b = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)
    def forward(self, x):
        result = self.base(x)
        {cast}
        return (result + self.b(self.a(x))).to(result.dtype)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Adapted(512, 64) for _ in range(4))
    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.silu(layer(x))
        return x
def make():
    model = Net().bfloat16().cuda()
    {full}
    return model
def step(model):
    model(torch.randn(2048, 512, device="cuda", dtype=torch.bfloat16, requires_grad=True)).float().square().mean().backward()
"""
# A loss of many parts: each had a backward pass of its own, and now there is one for all.
CACHED = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
    def forward(self, x):
        return self.layers(x)
def similarity(a, b):
    a, b = a / a.norm(dim=1, keepdim=True), b / b.norm(dim=1, keepdim=True)
    return a @ b.T
def contrast(embedded):
    losses = []
    for part in range(0, len(embedded), 128):
        scores = similarity(embedded[part:part + 128], embedded) * 20
        loss = nn.functional.cross_entropy(scores, torch.arange(part, part + 128, device="cuda"))
        {part}
    {all}
def make():
    return Net()
def step(model):
    result = model(torch.randn(2048, 64, device="cuda"))
    embedded = result.detach().requires_grad_()
    contrast(embedded)
    result.backward(embedded.grad)
"""
# The probability of each token that is there, by a reference model: of all words, and then of those alone, row by row.
SELECTIVE = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words, self.inner, self.head = nn.Embedding(words, width), nn.Linear(width, width), nn.Linear(width, words)
    def forward(self, ids):
        return self.head(torch.relu(self.inner(self.words(ids))))
def chosen(logits, ids):
    {chosen}
def loss_of(model, ids):
    mask = torch.roll(torch.ones_like(ids), shifts=1, dims=1)
    logits = model(ids)
    return (chosen(logits, ids) * mask).mean()
def make():
    return Net(16000, 128)
def step(model):
    with torch.no_grad():
        loss_of(model, torch.randint(0, 16000, (8, 128), device="cuda"))
"""
SELECTED = """picked = torch.gather(logits, -1, ids.unsqueeze(-1)).squeeze(-1)
    return picked - torch.stack([torch.logsumexp(row, -1) for row in logits])"""
# The nearest other row that is farther than that of the pair: of a cube of the batch, and then of sorted rows, of which local variables
# are all that is left before the backward pass.
NEAREST = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    def nearest(self, apart, others):
        {nearest}
    def forward(self, x, labels):
        y = self.layers(x)
        apart = (y[:, None] - y[None]).square().sum(-1)
        same = labels[:, None] == labels
        return ((apart - self.nearest(apart, ~same)).clamp(min=0) * same).sum()
def make():
    return Net()
def step(model):
    model(torch.randn(256, 64, device="cuda"), torch.arange(256, device="cuda") % 16).backward()
"""
CUBE = """cube = apart.repeat(len(apart), 1)
        farther = others.repeat(len(apart), 1) & (cube > apart.T.reshape(-1, 1))
        most = cube.max(1, keepdim=True).values
        least = ((cube - most) * farther).min(1, keepdim=True).values + most
        return least.reshape(apart.shape).T"""
SORTED = """rows = apart.masked_fill(~others, torch.inf).sort(-1).values
        rows = torch.nn.functional.pad(rows, (0, 1), value=torch.inf)
        found = rows.gather(-1, torch.searchsorted(rows.detach(), apart.detach(), right=True))
        farthest = (apart - apart.min(1, keepdim=True).values) * others
        farthest = farthest.max(1, keepdim=True).values + apart.min(1, keepdim=True).values
        return torch.where(torch.isfinite(found), found, farthest)"""
# A tensor that one method computes of a layer's weights is kept by all layers, which stand in two kinds of blocks.
KEPT = """
import torch
from torch import nn
class Layer(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.base, self.a, self.b, self.known = nn.Linear(width, out), nn.Linear(width, 8), nn.Linear(8, out), None
    {method}
    def forward(self, x):
        {weight}
        norm = (self.base.weight + weight).norm(dim=1)
        return self.base(x) * (1 / norm) + x @ weight.T
class First(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = Layer(width, width), Layer(width, width)
    def forward(self, x):
        return self.two(torch.relu(self.one(x)))
class Second(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = Layer(width, 3 * width), Layer(3 * width, width)
    def forward(self, x):
        return self.down(torch.relu(self.up(x)))
def make():
    return nn.Sequential(*[kind(512) for _ in range(3) for kind in (First, Second)])
@torch.no_grad()
def step(model):
    model(torch.randn(128, 512, device="cuda"))
"""
KEEPS = """def product(self):
        if self.known is None:
            self.known = self.b.weight @ self.a.weight
        return self.known"""

# files of the two versions; of the first finding: cause, function, words in its text, bytes that the program knows
PAIRS = {
    "mask": ({"net.py": MASK.format(buffer='self.register_buffer("all", torch.ones(longest, longest).tril(), persistent=False)', mask="mask = self.all.repeat(len(x), 1, 1)")},
             {"net.py": MASK.format(buffer="pass", mask='mask = torch.ones(len(x), x.shape[1], x.shape[1], device="cuda").tril()')},
             "line|function", r"Net\.mask", "(Gone|Less).* activations of Net.mask", -8 * (2048 * 2048 - 256 * 256) * 4),
    "split": ({"net.py": SPLIT_OLD}, {"net.py": SPLIT_NEW, "attention.py": ATTEND, "losses.py": LOSSES},
              "line|function", "attend", "New: activations of attend", 4 * 8 * 256 * 256 * 2),
    "adapters": ({"net.py": ADAPTERS.format(cast="pass", full="pass")},
                 {"net.py": ADAPTERS.format(cast="x = x.to(self.a.weight.dtype)", full="""for layer in model.layers:
        for part in layer.a, layer.b:
            part.weight.data = part.weight.data.to(torch.float32)""")},
                 "precision", r"Adapted\.forward|make", "The same parameters in another precision: 8 of them are 2 times as large", None),
    "cached": ({"net.py": CACHED.format(part="loss.backward(); losses.append(loss.detach())", all="return torch.stack(losses).sum()")},
               {"net.py": CACHED.format(part="losses.append(loss)", all="torch.stack(losses).sum().backward()")},
               "backwards", "similarity|contrast", "A step has [12] backward pass(es)? instead of 1[67], so results are held", None),
    "selective": ({"net.py": SELECTIVE.format(chosen="return torch.gather(logits.log_softmax(-1), -1, ids.unsqueeze(-1)).squeeze(-1)")},
                  {"net.py": SELECTIVE.format(chosen=SELECTED)},
                  "line|function", "chosen", "^(Gone|Less).* of chosen", -8 * 128 * 16000 * 4),
    "nearest": ({"net.py": NEAREST.format(nearest=CUBE)}, {"net.py": NEAREST.format(nearest=SORTED)},
                "line|function", r"Net\.nearest", "^(Gone|Less)", None),
    "kept": ({"net.py": KEPT.format(method="", weight="weight = self.b.weight @ self.a.weight")}, {"net.py": KEPT.format(method=KEEPS, weight="weight = self.product()")},
             "line|function", r"Layer\.(product|forward)", "^(New|More)", None),
}
FALSE = "larger model|smaller model|inputs are|precision or width|times as large, including the parameters|no_grad|optimizer state for"



def record(programs, name, files):
    folder = programs.folder / name
    folder.mkdir()
    for file, text in {**files, "train.py": TRAIN}.items():
        (folder / file).write_text(text)
    return programs.traced(str(folder / "train.py"), output=name + ".gmt")


def mirrored(said):
    """Findings as the other direction has them, but for their names and sentences."""
    return sorted((f["cause"], f["class"], f["bytes_new"], f["bytes_old"]) for f in said["findings"])


@pytest.mark.parametrize("pair", with_more(PAIRS, {"kept", "nearest"}))
def test_a_released_change(programs, tool, pair):
    before, after, cause, function, words, delta = PAIRS[pair]
    old, new = record(programs, "old", before), record(programs, "new", after)
    said, back = tool.json("diff", old, new), tool.json("diff", new, old)
    first = said["findings"][0]
    print(json.dumps([(f["cause"], f["delta"], f["text"]) for f in said["findings"]], indent=1)[:4000])
    check_sums(tool, said, old, new)
    assert re.fullmatch(cause, first["cause"]) and re.fullmatch(function, first["function"]) and re.search(words, first["text"])
    assert delta is None or abs(first["delta"] - delta) <= MIB
    assert not [f["text"] for f in said["findings"] + back["findings"] if re.search(FALSE, f["text"])]
    check_sums(tool, back, new, old)
    assert mirrored(back) == sorted((c, k, o, n) for c, k, n, o in mirrored(said))
    assert back["findings"][0]["cause"] == first["cause"] or {back["findings"][0]["cause"], first["cause"]} == {"line", "function"}
    assert tool.json("diff", old, old)["findings"] == [] and tool.json("diff", new, new)["findings"] == []
    # A line is given the bytes that it holds, whatever the direction.
    lines = {(x["class"], x["file"].split("/")[-1], x["line"], x["bytes_old"]) for x in said["lines"] if not x["bytes_new"]}
    assert lines <= {(x["class"], x["file"].split("/")[-1], x["line"], x["bytes_new"]) for x in back["lines"]}
