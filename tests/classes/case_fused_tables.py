# SPDX-License-Identifier: Apache-2.0
"""Recommendation at scale: a table of embeddings that is updated in backward and keeps Adam's state as buffers of its
own; dense layers whose gradients are added up in a buffer by hooks, with torch's optimizer on a copy in fp32."""
import torch
from torch import nn

import runner
import truth


class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, anchor, weights, momentum1, momentum2, rows):
        ctx.save_for_backward(weights, momentum1, momentum2, rows)
        return weights[rows]

    @staticmethod
    def backward(ctx, grad):
        weights, momentum1, momentum2, rows = ctx.saved_tensors
        with torch.no_grad():
            momentum1[rows] = momentum1[rows].lerp(grad, 0.1)
            momentum2[rows] = momentum2[rows].lerp(grad * grad, 0.1)
            weights[rows] -= 0.01 * momentum1[rows] / (momentum2[rows].sqrt() + 1e-8)
        return None, None, None, None, None


class Table(nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(0, device="cuda"))
        self.make(prefix="weights", shape=(rows, dim))
        self.make(
            prefix="momentum1",
            shape=(rows, dim),
        )
        self.make(
            prefix="momentum2",
            shape=(rows, dim),
        )

    def make(self, prefix, shape):
        room = torch.zeros(
            shape,
            device="cuda",
        )
        self.register_buffer(f"{prefix}_dev", room)

    def forward(self, rows):
        return Lookup.apply(self.anchor, self.weights_dev, self.momentum1_dev, self.momentum2_dev, rows)


class GradientBuffer:
    def __init__(self, parameters):
        self.parameters = parameters
        self.grad_data = torch.zeros(sum(p.numel() for p in parameters), device="cuda")
        at = 0
        for p in parameters:
            p.main_grad = self.grad_data[at:at + p.numel()].view_as(p)
            at += p.numel()
            p.register_post_accumulate_grad_hook(self.add)

    def add(self, p):
        p.main_grad.add_(p.grad)
        p.grad = None


table = Table(60000, 128)
dense = nn.Sequential(nn.Linear(128, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1)).cuda().bfloat16()
buffer = GradientBuffer(list(dense.parameters()))
masters = [p.detach().clone().float() for p in dense.parameters()]
optimizer = torch.optim.Adam(masters)
truth.holds("parameters", "the table", lambda: [table.weights_dev])
truth.holds("optimizer_state", "its state", lambda: [table.momentum1_dev, table.momentum2_dev])
truth.holds("gradients", "main gradients", lambda: [buffer.grad_data])
truth.holds("optimizer_state", "master weights", lambda: masters)
truth.model(dense)
truth.optimizer(optimizer)
runner.mark_inside_backward(dense[2])
batches = runner.Batches(lambda: (torch.randint(0, 60000, (4096,), device="cuda"), torch.ones(4096, 1, device="cuda")))
for _ in range(3):
    rows, label = batches.next()
    buffer.grad_data.zero_()
    with truth.phase("forward"):
        loss = nn.functional.mse_loss(dense(table(rows).bfloat16()).float(), label)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        for master, p in zip(masters, dense.parameters()):
            master.grad = p.main_grad
        optimizer.step()
        for master, p in zip(masters, dense.parameters()):
            p.data.copy_(master)
    truth.mark("step")
truth.mark("end")
truth.finish()
