# SPDX-License-Identifier: Apache-2.0
"""Frozen weights that threads bring to the device and put into a model made without memory, some of them converted in place
and some cut to eight bits with scales; a head is trained on what it gives."""
import concurrent.futures

import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth


class Int8Linear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        scale = linear.weight.abs().amax(1, keepdim=True) / 127
        self.weight = nn.Parameter((linear.weight / scale).round().to(torch.int8), requires_grad=False)
        self.scale = nn.Parameter(scale, requires_grad=False)

    def forward(self, x):
        return x @ (self.weight.to(x.dtype) * self.scale).t()


def put(name, value):
    *path, last = name.split(".")
    owner = model.get_submodule(".".join(path))
    if last in owner._parameters:
        owner._parameters[last] = nn.Parameter(value, requires_grad=False)
    else:
        owner._buffers[last] = value


def bring(item):
    return item[0], item[1].to("cuda")


state = runner.Gpt(layers=6).bfloat16().state_dict()
with torch.device("meta"):
    model = runner.Gpt(layers=6)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for name, value in pool.map(bring, state.items()):
        put(name, value)
del name, value
with torch.no_grad():
    for p in model.norm.parameters():
        p.data = p.data.float()
    for layer in list(model.layers)[:2]:
        layer.up = Int8Linear(layer.up)
model.norm.bfloat16()
head = nn.Sequential(nn.Linear(12000, 64), nn.GELU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.AdamW(head.parameters())
truth.model(model)
runner.declare(head, optimizer)


def loss_of(_, x):
    with torch.no_grad():
        features = model(x)[:, -1].float()
    return F.cross_entropy(head(features), x[:, 0] % 10)


runner.train(head, optimizer, lambda: torch.randint(0, 12000, (8, 128)).cuda(), loss_of=loss_of)
