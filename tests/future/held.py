# SPDX-License-Identifier: Apache-2.0
"""held.py NAME: programs that hold models, checkpoints, attempts and results longer than they need them, and programs that look the
same and need what they hold."""
import os
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

PROGRAMS = {}


def case(what):
    def note(function):
        PROGRAMS[function.__name__] = function
        return function
    return note


def mlp(*sizes):
    layers = [x for a, b in zip(sizes, sizes[1:]) for x in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1]).cuda()


def train(net, optimizer, steps=4, n=256, width=512):
    for _ in range(steps):
        net(torch.randn(n, width, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@case("trials of a search; the best score keeps its model, the others stay in a log")
def trials_in_a_log():
    log = []
    for width in (1024, 2048, 3072, 4096):
        net = mlp(512, width, width, 512)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        train(net, optimizer)
        log.append({"width": width, "trained": (net, optimizer)})


class Expert(nn.Module):
    def __init__(self, d=1024):
        super().__init__()
        self.attention = nn.MultiheadAttention(d, 8, batch_first=True)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        return self.out(self.attention(x, x, x, need_weights=False)[0])


@case("an expert for each domain, with momentum and gradients that are set to zero in place")
def experts_by_domain():
    held = {}
    for domain in ("law", "code", "news"):
        expert = held[domain] = Expert().cuda()
        optimizer = torch.optim.SGD(expert.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad(set_to_none=False)
            expert(torch.randn(8, 64, 1024, device="cuda")).square().mean().backward()
            optimizer.step()


@case("warm-up with one optimizer, then another one for the same weights")
def second_optimizer():
    net = mlp(512, 4096, 4096, 512)
    warm = torch.optim.AdamW(net.parameters(), lr=1e-4)
    train(net, warm, 3)
    main = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(5):
        net(torch.randn(256, 512, device="cuda")).square().mean().backward()
        main.step()
        main.zero_grad()


@case("needed: the pre-trained part is frozen and part of each pass")
def frozen_after_pretraining():
    body, head = mlp(512, 4096, 4096, 512), mlp(512, 512)
    first = torch.optim.AdamW([*body.parameters(), *head.parameters()])
    for _ in range(3):
        head(body(torch.randn(256, 512, device="cuda"))).square().mean().backward()
        first.step()
        first.zero_grad()
    body.requires_grad_(False)
    second = torch.optim.AdamW(head.parameters())
    for _ in range(5):
        head(body(torch.randn(256, 512, device="cuda"))).square().mean().backward()
        second.step()
        second.zero_grad()
    body(torch.randn(256, 512, device="cuda"))


@case("needed: each generation teaches the next")
def generations():
    teacher = None
    for _ in range(3):
        net = mlp(512, 4096, 4096, 512)
        optimizer = torch.optim.AdamW(net.parameters())
        for _ in range(4):
            x = torch.randn(256, 512, device="cuda")
            with torch.no_grad():
                wanted = x if teacher is None else teacher(x)
            F.mse_loss(net(x), wanted).backward()
            optimizer.step()
            optimizer.zero_grad()
        teacher = net


@case("needed: two networks that are trained in turn, for many steps each")
def long_turns():
    one, other = mlp(512, 2048, 512), mlp(512, 2048, 512)
    first, second = torch.optim.Adam(one.parameters()), torch.optim.Adam(other.parameters())
    for _ in range(3):
        train(one, first, 4)
        for _ in range(4):
            other(torch.randn(256, 512, device="cuda")).square().mean().backward()
            second.step()
            second.zero_grad()


class Contrastive(nn.Module):
    """Two towers with a projection each; only the first goes on."""

    def __init__(self, d=1024):
        super().__init__()
        self.image, self.text = mlp(512, 2 * d, d), mlp(512, 2 * d, 2 * d, d)
        self.project = mlp(d, 2 * d, 256)

    def forward(self, x, y):
        a, b = (F.normalize(self.project(tower(part)), dim=-1) for tower, part in ((self.image, x), (self.text, y)))
        return F.cross_entropy(a @ b.T / 0.07, torch.arange(len(x), device="cuda"))


def pretrained(steps=3):
    net = Contrastive()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    for _ in range(steps):
        loss = net(torch.randn(256, 512, device="cuda"), torch.randn(256, 512, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
    return net, optimizer


def fine_tune(parts, optimizer, steps=4, n=8192):
    for _ in range(steps):
        x = torch.randn(n, 512, device="cuda")
        for part in parts:
            x = part(x)
        loss = F.cross_entropy(x, torch.zeros(n, dtype=torch.long, device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@case("a tower of a contrastive pre-training is fine-tuned with a new head; its optimizer and the other tower are held")
def tower_with_a_head():
    net, optimizer = pretrained()
    head = nn.Linear(1024, 10).cuda()
    fine_tune([net.image, head], torch.optim.AdamW([{"params": net.image.parameters(), "lr": 1e-5}, {"params": head.parameters()}]))
    optimizer.zero_grad()


@case("the same with a group of parameters that is added to the first optimizer")
def group_that_is_added():
    net, optimizer = pretrained()
    head = nn.Linear(1024, 10).cuda()
    optimizer.add_param_group({"params": head.parameters()})
    fine_tune([net.image, head], optimizer)
    optimizer.zero_grad()


class Stem(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(512, d * d), *[m for _ in range(6) for m in (nn.Unflatten(1, (d, 8, 8)), nn.Conv2d(d, d, 3, padding=1), nn.BatchNorm2d(d), nn.ReLU(True), nn.Flatten())])
        self.body = mlp(d * d, 1024, 1024)
        self.head = mlp(1024, 4096, 4096, 512)

    def forward(self, x):
        return self.head(self.body(self.stem(x)))


@case("needed: the stem is frozen, in evaluation mode, and part of each pass with a new head")
def frozen_stem():
    net = Stem().cuda()
    first = torch.optim.AdamW(net.parameters())
    train(net, first, 3)
    net.stem.requires_grad_(False).eval()
    net.head = nn.Linear(1024, 10).cuda()
    del first
    fine_tune([net], torch.optim.AdamW(p for p in net.parameters() if p.requires_grad))


class Tied(nn.Module):
    def __init__(self, vocab=8192, d=512):
        super().__init__()
        self.words, self.body = nn.Embedding(vocab, d), mlp(d, 2048, d)
        self.more = mlp(d, 2048, d)

    def forward(self, ids, head=None):
        x = self.body(self.words(ids))
        return head(x[:, 0]) if head else self.more(x) @ self.words.weight.T


@case("needed: the words' weights, which the head of the pre-training shared, in the new phase too")
def tied_weights():
    net = Tied().cuda()
    first = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    ids = torch.randint(8192, (16, 64), device="cuda")
    for _ in range(3):
        F.cross_entropy(net(ids).flatten(0, 1), ids.flatten()).backward()
        first.step()
        first.zero_grad()
    head = nn.Linear(512, 2).cuda()
    second = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    for _ in range(4):
        F.cross_entropy(net(ids, head), ids[:, 0] % 2).backward()
        second.step()
        second.zero_grad()


@case("needed: tasks come one after the other, each with a head, and all heads are trained at the end")
def heads_of_tasks():
    body, heads, optimizers = mlp(512, 2048, 1024), [], []
    for _ in range(3):
        heads.append(mlp(1024, 2048, 10))
        optimizers.append(torch.optim.AdamW([*body.parameters(), *heads[-1].parameters()]))
        fine_tune([body, heads[-1]], optimizers[-1], 2, 256)
    for head, optimizer in zip(heads, optimizers):
        fine_tune([body, head], optimizer, 2, 256)


def saved(net, optimizer=None):
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    torch.save({"net": net.state_dict(), "optimizer": optimizer and optimizer.state_dict()}, path)
    return path


@case("weights are read onto the device, copied, and kept by the object that read them")
def checkpoint_in_an_object():
    path = saved(mlp(512, 4096, 4096, 512))

    class Run:
        def __init__(self):
            self.read = torch.load(path, map_location="cuda:0")
            self.net = mlp(512, 4096, 4096, 512)
            self.net.load_state_dict(self.read["net"])
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)

    run = Run()
    train(run.net, run.optimizer)


@case("needed: the optimizer goes on with the state that was read")
def state_from_a_file():
    net = mlp(512, 4096, 4096, 512)
    optimizer = torch.optim.AdamW(net.parameters())
    train(net, optimizer, 1)
    state = torch.load(saved(net, optimizer), map_location="cuda")["optimizer"]
    optimizer.load_state_dict(state)
    del state
    train(net, optimizer)


def attempt(net, optimizer, n):
    hidden = net(torch.randn(n, 512, device="cuda"))
    loss = hidden.square().mean()
    loss.backward()
    optimizer.step()


@case("errors of batches that are too long are kept in a list")
def kept_errors():
    net = mlp(512, 2048, 2048, 512)
    optimizer, errors = torch.optim.AdamW(net.parameters()), []
    for n in (1024, 4_200_000, 1024, 2048, 1024):
        optimizer.zero_grad()
        try:
            attempt(net, optimizer, n)
        except torch.OutOfMemoryError as error:
            errors.append(error)


@case("a decorator that halves the batch keeps the last error")
def halved_batches():
    net = mlp(512, 2048, 2048, 512)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    n, last = 8_400_000, None
    for _ in range(5):
        optimizer.zero_grad()
        try:
            attempt(net, optimizer, n)
        except torch.OutOfMemoryError as error:
            last, n = error, n // 64
    del last


@case("probabilities of all rows are written into one tensor")
def scores_of_all_rows():
    net = mlp(512, 2048, 4096)
    train(net, torch.optim.AdamW(net.parameters()), 2)
    rows = torch.randn(16384, 512)
    net.eval()
    found = torch.empty(len(rows), 4096, device="cuda")
    with torch.inference_mode():
        for at in range(0, len(rows), 1024):
            found[at:at + 1024] = net(rows[at:at + 1024].cuda()).softmax(-1)
        found.topk(5)


@case("needed: the rows of an evaluation lie on the device")
def rows_on_the_device():
    net = mlp(512, 2048, 64)
    train(net, torch.optim.AdamW(net.parameters()), 2)
    rows = torch.randn(262144, 512, device="cuda")
    with torch.no_grad():
        for at in range(0, len(rows), 8192):
            net(rows[at:at + 8192]).argmax(-1).cpu()


if __name__ == "__main__":
    torch.manual_seed(0)
    PROGRAMS[sys.argv[1]]()
