# SPDX-License-Identifier: Apache-2.0
# Accuracy of very many classes, averaged over all of them.
import torch
from torchmetrics.classification import MulticlassAccuracy
metric = MulticlassAccuracy(num_classes=8000, average="micro", validate_args=False).cuda()
for step in range(3):
    metric.update(torch.randint(0, 8000, (4096,), device="cuda"), torch.randint(0, 8000, (4096,), device="cuda"))
print("PEAK", torch.cuda.max_memory_allocated())
