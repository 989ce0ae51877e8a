# SPDX-License-Identifier: Apache-2.0
"""Training where no batch has the length of the one before."""
import random

import torch

random.seed(3)
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(320, 5, 1111, batch_first=True), 4).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(25):
    x = torch.randn(random.choice([3, 5, 8]), random.randrange(40, 500), 320, device="cuda")
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
