# SPDX-License-Identifier: Apache-2.0
# The metric of a language model, step by step.
import torch
from torchmetrics.text import Perplexity
metric = Perplexity().cuda()
for step in range(3):
    logits = torch.randn(4, 512, 8000, device="cuda")
    metric.update(logits, torch.randint(0, 8000, (4, 512), device="cuda"))
print("PEAK", torch.cuda.max_memory_allocated())
