# SPDX-License-Identifier: Apache-2.0
"""Is the truth true? What it reads from the graph's nodes, against hooks of autograd that see every tensor
when it is saved and know, by weak references, which ones are saved still."""
import weakref

import torch
from torch.nn import functional as F
from torchvision.models import resnet18

import runner
import truth


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor


def by_hooks(alive):
    return {truth.storage_of(s.tensor) for s in alive} - {0}


def by_graph():
    saved, kept = truth.saved_tensors()
    return {truth.storage_of(t) for t in (*saved, *kept)} - {0}


def check(loss_of, middle):
    alive = weakref.WeakSet()
    seen = []

    def compare():
        ours, theirs = by_graph(), by_hooks(alive)
        assert ours == theirs, (len(ours), len(theirs), len(ours ^ theirs))
        seen.append(len(ours))

    def pack(tensor):
        saved = Saved(tensor)
        alive.add(saved)
        return saved

    handle = middle.register_forward_hook(lambda m, i, out: out.register_hook(lambda grad: compare()) and None)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        loss = loss_of()
    compare()
    loss.backward()
    compare()
    handle.remove()
    assert len(seen) == 3 and seen[0] > seen[1] > seen[2] == 0, seen
    print(*seen)


model = runner.gpt()
check(lambda: runner.language_loss(model, model.batch()), model.middle())
net = resnet18().cuda()
check(lambda: F.cross_entropy(net(torch.randn(4, 3, 64, 64, device="cuda")), torch.zeros(4, dtype=torch.long, device="cuda")), net.layer2)
lstm = torch.nn.LSTM(64, 64, 2).cuda()
part = torch.nn.Linear(64, 64).cuda()
check(lambda: lstm(part(torch.randn(9, 4, 64, device="cuda")))[0].square().mean(), part)
