# SPDX-License-Identifier: Apache-2.0
"""Three averages of the weights: an object with a `step` of its own, a module around a copy, one of PyTorch's. The model is
called by its `forward`, without hooks."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth


class Shadow:
    def __init__(self, params):
        self.params = [p.clone().detach() for p in params]

    @torch.no_grad()
    def step(self, params):
        for s, p in zip(self.params, params):
            s.sub_(0.01 * (s - p))


class Follower(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.module.parameters(), model.parameters()):
            mine.lerp_(theirs, 0.01)


model = runner.gpt(layers=2)
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
shadow, follower, average = Shadow(model.parameters()), Follower(model), torch.optim.swa_utils.AveragedModel(model)
truth.holds("parameters", "averages", lambda: [shadow.params, list(follower.parameters()), list(average.parameters())])
truth.holds("buffers", "buffers of averages", lambda: [*follower.buffers(), *average.buffers()])


def follow():
    shadow.step(model.parameters())
    follower.update(model)
    average.update_parameters(model)


runner.train(model, optimizer, model.batch, after_step=follow,
             loss_of=lambda m, x: F.cross_entropy(m.forward(x).flatten(0, 1), x.flatten()))
