# SPDX-License-Identifier: Apache-2.0
"""Phones of telephone calls are recognized by a recurrent network, which hears a call in pieces and remembers its state."""
import sys
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn

MELS, WIDTH, PHONES, FRAMES = 40, 512, 48, 50


class LiGRU(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.wh, self.wz = nn.Linear(inputs, WIDTH), nn.Linear(inputs, WIDTH)
        self.uh, self.uz = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x, ht):
        hidden, wh, wz = [], self.wh(x), self.wz(x)
        for k in range(x.shape[1]):
            zt = torch.sigmoid(wz[:, k] + self.uz(ht))
            ht = zt * ht + (1 - zt) * F.relu(wh[:, k] + self.uh(ht))
            hidden.append(ht)
        return torch.stack(hidden, dim=1), ht


class PhoneNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.out = nn.ModuleList([LiGRU(MELS), LiGRU(WIDTH)]), nn.Linear(WIDTH, PHONES)
        self.states = None

    def reset(self, calls, device):
        self.states = [torch.zeros(calls, WIDTH, device=device) for _ in self.layers]

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x, self.states[i] = layer(x, self.states[i])
        return self.out(x)


def run_nn(model, to_do, pieces, calls, optimizer=None):
    model.train(to_do == "train")
    model.reset(calls, "cuda")
    loss_sum, err_sum = 0, 0
    for _ in range(pieces):
        inp, lab = torch.randn(calls, FRAMES, MELS).cuda(), torch.randint(0, PHONES, (calls, FRAMES)).cuda()
        with torch.no_grad() if to_do != "train" and sys.argv[1] == "fixed" else nullcontext():
            out = model(inp)
            loss = F.cross_entropy(out.flatten(0, 1), lab.flatten())
            err = (out.argmax(-1) != lab).float().mean()
        if to_do == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.states = [h.detach() for h in model.states]
        loss_sum, err_sum = loss_sum + loss.detach(), err_sum + err.detach()
    return (loss_sum / pieces).item(), (err_sum / pieces).item()


model = PhoneNet().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=4e-4)
print("train", run_nn(model, "train", 4, 16, optimizer), torch.cuda.max_memory_allocated() >> 20, "MiB")
print("dev", run_nn(model, "valid", 24, 16), torch.cuda.max_memory_allocated() >> 20, "MiB")
