# SPDX-License-Identifier: Apache-2.0
"""A surrogate of groundwater flow maps a field of conductivity to heads; its Jacobian is needed for an inversion."""
import sys

import torch
from torch import nn
from torch.func import jacrev

CELLS = 2304


class Surrogate(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.register_buffer("mesh", torch.rand(CELLS, CELLS).softmax(-1))
        self.enter = nn.Linear(1, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.leave = nn.Linear(width, 1)

    def forward(self, field):
        h = self.enter(field[:, None])
        for layer in self.layers:
            h = h + nn.functional.gelu(layer(self.mesh @ h))
        return self.leave(h).flatten()


def gauss_newton(model, field, heads, damping=1e-2):
    chunk_size = 128 if sys.argv[1] == "fixed" else None
    jacobian = jacrev(model, chunk_size=chunk_size)(field)
    residual = model(field) - heads
    normal = jacobian.T @ jacobian + damping * torch.eye(len(field), device=field.device)
    return field - torch.linalg.solve(normal, jacobian.T @ residual)


model = Surrogate().cuda().eval().requires_grad_(False)
field, heads = torch.zeros(CELLS, device="cuda"), torch.rand(CELLS, device="cuda")
for step in range(3):
    field = gauss_newton(model, field, heads)
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
