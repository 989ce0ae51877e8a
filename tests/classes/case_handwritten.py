# SPDX-License-Identifier: Apache-2.0
"""No optimizer of the framework: momentum in a list, gradients made before and zeroed by hand."""
import torch

import runner
import truth


class Momentum:
    def __init__(self, params):
        self.params = list(params)
        self.velocity = [torch.zeros_like(p) for p in self.params]
        for p in self.params:
            p.grad = torch.zeros_like(p)

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.params, self.velocity):
            v.mul_(0.9).add_(p.grad)
            p.sub_(0.01 * v)

    def zero_grad(self, set_to_none):
        for p in self.params:
            p.grad.zero_()


model = runner.gpt(on_device=False)
optimizer = Momentum(model.parameters())
runner.declare(model)
truth.holds("optimizer_state", "momentum", lambda: optimizer.velocity)
runner.train(model, optimizer, model.batch, inside=model.middle())
