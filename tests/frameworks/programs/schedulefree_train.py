# SPDX-License-Identifier: Apache-2.0
# needs: schedulefree
"""schedulefree: its AdamW, switched between training and evaluation."""
import schedulefree
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Linear(512, 1000)).cuda()
optimizer = schedulefree.AdamWScheduleFree(model.parameters(), lr=1e-3, warmup_steps=10)
for epoch in range(2):
    model.train()
    optimizer.train()
    for i in range(3):
        x, y = torch.randn(8, 128, 512).cuda(), torch.randint(0, 1000, (8, 128)).cuda()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
    model.eval()
    optimizer.eval()
    with torch.no_grad():
        model(torch.randn(16, 128, 512).cuda())
