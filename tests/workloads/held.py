# SPDX-License-Identifier: Apache-2.0
"""Takes more memory with each line on stdin, and answers with what PyTorch counts; ends with its input."""
import sys

import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
kept = []


def say():
    print(torch.cuda.memory_allocated(), flush=True)


say()
for line in sys.stdin:
    kept.append(torch.empty(int(line), dtype=torch.uint8, device="cuda"))
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
    say()
