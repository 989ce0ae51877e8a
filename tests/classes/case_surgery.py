# SPDX-License-Identifier: Apache-2.0
"""Several tasks on one trunk: each task's gradient is flattened and cloned, conflicts are projected away, the sum is
written back; the weights of the losses are learned as bare leaves."""
import random

import torch
import torch.nn.functional as F
from torch import nn

import runner
import truth


class Surgery:
    def __init__(self, optimizer):
        self.optim = optimizer

    def zero_grad(self):
        self.optim.zero_grad(set_to_none=True)

    def step(self):
        self.optim.step()

    def pc_backward(self, objectives):
        grads, shapes = [], None
        for obj in objectives:
            self.optim.zero_grad(set_to_none=True)
            obj.backward(retain_graph=True)
            truth.mark("one_task")
            found = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for g in self.optim.param_groups for p in g["params"]]
            shapes = [f.shape for f in found]
            now["found"] = found
            grads.append(torch.cat([f.flatten() for f in found]))
            flat.append(grads[-1])
        projected = [g.clone() for g in grads]
        for g in projected:
            others = list(grads)
            random.shuffle(others)
            for o in others:
                dot = torch.dot(g, o)
                g -= torch.clamp(dot, max=0) * o / (o.norm() ** 2 + 1e-12)
        flat.extend(projected)
        merged = torch.stack(projected).mean(dim=0)
        flat.append(merged)
        truth.mark("projected")
        at = 0
        params = [p for g in self.optim.param_groups for p in g["params"]]
        for p, shape in zip(params, shapes):
            n = shape.numel()
            p.grad = merged[at:at + n].view(shape)
            at += n
        flat.clear()
        now.clear()


class Net(nn.Module):
    def __init__(self, d=1024):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(784, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU())
        self.heads = nn.ModuleDict({"a": nn.Linear(d, 10), "b": nn.Linear(d, 1000), "c": nn.Linear(d, 784)})

    def forward(self, x):
        h = self.trunk(x)
        return {k: head(h) for k, head in self.heads.items()}


flat, now = [], {}
net = Net().to("cuda")
log_vars = [torch.zeros((), device="cuda", requires_grad=True) for _ in range(3)]
optimizer = Surgery(torch.optim.Adam([*net.parameters(), *log_vars], lr=1e-3))
runner.declare(net, optimizer.optim)
truth.holds("parameters", "weights of the losses", lambda: log_vars)
truth.holds("gradients", "a task's gradient, flat", lambda: [flat, now], or_else=("backward_temporaries", "optimizer_temporaries"))
batches = runner.Batches(lambda: [torch.rand(4096, 784).to("cuda"), torch.zeros(4096, dtype=torch.long).to("cuda"), torch.zeros(4096, dtype=torch.long).to("cuda")])
for step in range(3):
    x, ya, yb = batches.next()
    with truth.phase("forward"):
        out = net(x)
        losses = [F.cross_entropy(out["a"], ya), F.cross_entropy(out["b"], yb), F.mse_loss(torch.sigmoid(out["c"]), x)]
        losses = [l * torch.exp(-s) + s for l, s in zip(losses, log_vars)]
    truth.mark("forward")
    optimizer.zero_grad()
    with truth.phase("backward"):
        optimizer.pc_backward(losses)
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
truth.finish()
