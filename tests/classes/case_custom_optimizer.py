# SPDX-License-Identifier: Apache-2.0
"""An optimizer of one's own, and a moment inside its step."""
import torch

import runner
import truth


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for i, p in enumerate(p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                update = (state["momentum"] * group["beta"] + p.grad * (1 - group["beta"])).sign_()
                if i == 1:
                    truth.mark("inside_step")
                p.add_(update, alpha=-group["lr"])
                state["momentum"].lerp_(p.grad, 1 - group["beta"])


model = runner.gpt()
optimizer = Lion(model.parameters())
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, inside=model.middle())
