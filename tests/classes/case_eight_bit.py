# SPDX-License-Identifier: Apache-2.0
"""Optimizer states of eight bits with a scale for each block of 256, made wide for the step only."""
import torch

import runner
import truth


def narrow(x):
    rows = x.flatten().view(-1, 256)
    scale = rows.abs().amax(1, keepdim=True).clamp_(min=1e-8)
    return (rows / scale * 127).round_().to(torch.int8), scale


def wide(state, like):
    q, scale = state
    return (q.float() * scale).div_(127).view_as(like)


class EightBitAdam(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1e-4})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for i, p in enumerate(group["params"]):
                state = self.state[p]
                first = wide(state["first"], p) if state else torch.zeros_like(p)
                second = wide(state["second"], p) if state else torch.zeros_like(p)
                first.lerp_(p.grad, 0.1)
                second.lerp_(p.grad * p.grad, 0.01)
                if i == 2:
                    truth.mark("inside_step")
                p.addcdiv_(first, second.sqrt_().add_(1e-8), value=-group["lr"])
                state["first"], state["second"] = narrow(first), narrow(second)


model = runner.gpt()
optimizer = EightBitAdam(model.parameters())
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, inside=model.middle())
