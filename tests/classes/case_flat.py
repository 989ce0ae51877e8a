# SPDX-License-Identifier: Apache-2.0
"""The manner of the large frameworks for many devices: weights in bf16 are views of one flat tensor, gradients are added
up in a flat tensor of fp32 by hooks, the optimizer owns a flat master copy."""
import torch
from torch import nn

import runner
import truth


class FlatOptimizer:
    def __init__(self, model):
        self.params = [p for p in model.parameters() if p.requires_grad]
        total = sum(p.numel() for p in self.params)
        self.flat = torch.empty(total, dtype=torch.bfloat16, device="cuda")
        self.main_grad = torch.zeros(total, dtype=torch.float32, device="cuda")
        at = 0
        for p in self.params:
            view = self.flat[at:at + p.numel()].view_as(p)
            view.copy_(p.data)
            p.data = view
            p.main_grad = self.main_grad[at:at + p.numel()].view_as(p)
            at += p.numel()
            p.register_post_accumulate_grad_hook(self.hook)
        self.master = self.flat.float()
        self.exp_avg, self.exp_avg_sq = torch.zeros_like(self.master), torch.zeros_like(self.master)

    def hook(self, p):
        p.main_grad.add_(p.grad)
        p.grad = None

    @torch.no_grad()
    def step(self):
        g = self.main_grad
        self.exp_avg.lerp_(g, 0.1)
        self.exp_avg_sq.mul_(0.999).addcmul_(g, g, value=0.001)
        denom = self.exp_avg_sq.sqrt().add_(1e-8)
        truth.mark("inside_step")
        self.master.addcdiv_(self.exp_avg, denom, value=-1e-4)
        self.flat.copy_(self.master)

    def zero_grad(self):
        self.main_grad.zero_()


model = runner.gpt(on_device=False, layers=3, vocabulary=6000).to(torch.bfloat16)
optimizer = FlatOptimizer(model)
truth.model(model)
truth.holds("parameters", "the flat weights", lambda: [optimizer.flat])
# Gradients in all but name: torch does not know of them, they are the optimizer's own.
truth.holds("gradients", "main gradients", lambda: [optimizer.main_grad], or_else=["optimizer_state"])
truth.holds("optimizer_state", "master weights and moments", lambda: [optimizer.master, optimizer.exp_avg, optimizer.exp_avg_sq])
runner.mark_inside_backward(model.middle())
batches = runner.Batches(model.batch)
for _ in range(3):
    optimizer.zero_grad()
    for _ in range(2):
        x = batches.next()
        with truth.phase("forward"):
            loss = runner.language_loss(model, x)
        truth.mark("forward")
        with truth.phase("backward"):
            loss.backward()
        truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
truth.finish()
