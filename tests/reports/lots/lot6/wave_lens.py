# SPDX-License-Identifier: Apache-2.0
"""The shape of an acoustic lens is optimized so that a wave, computed step by step on a grid, ends at the right place."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

SIZE, STEPS, DT = 256, 120, 0.5
KERNEL = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])[None, None]


def laplacian(y):
    return F.conv2d(y.unsqueeze(1), KERNEL.to(y.device), padding=1).squeeze(1)


def time_step(b, c, y1, y2):
    return (2 / DT ** 2 + 0 * b) * y1 / (1 / DT ** 2 + b / DT) - (1 / DT ** 2 - b / DT) * y2 / (1 / DT ** 2 + b / DT) \
        + c ** 2 * laplacian(y1) / (1 / DT ** 2 + b / DT)


class TimeStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, b, c, y1, y2):
        ctx.save_for_backward(b, c, y1, y2)
        return time_step(b, c, y1, y2)

    @staticmethod
    def backward(ctx, grad):
        b, c, y1, y2 = ctx.saved_tensors
        inverse = 1 / (1 / DT ** 2 + b / DT)
        grad_c = (grad * inverse * 2 * c * laplacian(y1)).sum(0) if ctx.needs_input_grad[1] else None
        grad_y1 = grad * inverse * 2 / DT ** 2 + laplacian(grad * inverse * c ** 2)
        return None, grad_c, grad_y1, -grad * inverse * (1 / DT ** 2 - b / DT)


class WaveCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.rho = nn.Parameter(torch.rand(SIZE, SIZE))
        self.register_buffer("b", torch.zeros(SIZE, SIZE))

    def speed(self):
        return 0.5 + 0.5 * torch.sigmoid(4 * self.rho)

    def forward(self, signal):
        c = self.speed()
        y1 = y2 = torch.zeros(len(signal), SIZE, SIZE, device=signal.device)
        source = torch.zeros(SIZE, SIZE, device=signal.device)
        source[SIZE // 2, 20] = 1
        probes = []
        for x in signal.unbind(1):
            y = TimeStep.apply(self.b, c, y1, y2) if sys.argv[1] == "fixed" else time_step(self.b, c, y1, y2)
            y = y + source * x[:, None, None]
            y1, y2 = y, y1
            probes.append(y[:, SIZE // 4::SIZE // 4, -20].square())
        return torch.stack(probes, dim=1).sum(1)


cell = WaveCell().cuda()
optimizer = torch.optim.Adam(cell.parameters(), lr=0.01)
for epoch in range(4):
    signal, label = torch.randn(3, STEPS).cuda(), torch.tensor([0, 1, 2]).cuda()
    power = cell(signal)
    loss = F.cross_entropy(power / (power.sum(1, keepdim=True) + 1e-6), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
