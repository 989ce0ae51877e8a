# SPDX-License-Identifier: Apache-2.0
"""Training with evaluations between on larger batches without gradients, and a checkpoint of the weights on the card."""
import torch

model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Conv2d(c, d, 3, padding=1), torch.nn.ReLU())
                              for c, d in ((3, 48), (48, 96), (96, 96), (96, 24)))).cuda()
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
best = None
for epoch in range(4):
    for _ in range(4):
        loss = model(torch.randn(6, 3, 96, 96, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        results = [model(torch.randn(17, 3, 112, 96, device="cuda")).mean(1) for _ in range(3)]
        torch.cat(results).sum()
    best = {k: v.detach().clone() for k, v in model.state_dict().items()}
