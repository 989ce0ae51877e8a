# SPDX-License-Identifier: Apache-2.0
# A retrieval metric whose queries have large numbers.
import torch
from torchmetrics.retrieval import RetrievalMAP
metric = RetrievalMAP().cuda()
index = torch.arange(64, device="cuda").repeat_interleave(16) * 1_000_000
metric.update(torch.rand(1024, device="cuda"), torch.randint(0, 2, (1024,), device="cuda"), indexes=index)
metric.compute()
print("PEAK", torch.cuda.max_memory_allocated())
