# SPDX-License-Identifier: Apache-2.0
# A training with Prodigy, without momentum.
import torch
from prodigyopt import Prodigy
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
opt = Prodigy(model.parameters(), betas=(0.0, 0.999))
for step in range(3):
    x = torch.randn(512, 512, device="cuda")
    (model(x) - x).square().mean().backward()
    opt.step(); opt.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())
