# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts with fixed capacity: the experts' weights are stacked, tokens are dispatched by products."""
import torch
from torch import nn

import runner


class Experts(nn.Module):
    def __init__(self, width=512, experts=8, capacity=256):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.02)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.02)
        self.capacity = capacity

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weight, chosen = self.gate(tokens).softmax(-1).max(-1)
        mask = nn.functional.one_hot(chosen, self.gate.out_features)
        place = (mask.cumsum(0) - 1) * mask
        slot = nn.functional.one_hot(place.clamp(max=self.capacity - 1), self.capacity) * mask.unsqueeze(-1)
        dispatch = slot.to(x.dtype)
        inside = torch.einsum("tec,td->ecd", dispatch, tokens)
        out = torch.bmm(torch.bmm(inside, self.up).relu(), self.down)
        return torch.einsum("tec,ecd->td", dispatch * weight[:, None, None], out).view_as(x)


model = runner.gpt(layers=3)
for layer in model.layers:
    layer.up, layer.down = nn.Identity(), Experts().cuda()
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
runner.train(model, optimizer, lambda: model.batch(3), inside=model.middle())
