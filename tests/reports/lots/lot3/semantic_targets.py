# SPDX-License-Identifier: Apache-2.0
"""Training a detector with masks that also learns, for each pixel, which classes are there."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

CLASSES, BATCH, SIDE = 80, 16, 512


def block(a, b, stride=1):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.SiLU())


class Proto(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 4, 4), block(width, width))
        self.protos, self.semantic = nn.Conv2d(width, 32, 1), nn.Conv2d(width, CLASSES, 1)
        self.coefficients = nn.Sequential(block(width, width, 4), nn.Conv2d(width, 32, 1))

    def forward(self, x):
        f = self.body(x)
        return self.protos(f), self.semantic(f), self.coefficients(f)


class SegmentationLoss:
    def __init__(self, device):
        self.bce = nn.BCEWithLogitsLoss(reduction="none")
        self.device = device

    def semantic_target(self, masks, classes):
        """masks: for each pixel the number of its instance, 0 = background; classes: of each instance."""
        picked = classes.gather(1, masks.flatten(1)).view_as(masks)
        present = masks > 0
        if sys.argv[1] == "fixed":
            target = torch.zeros(len(masks), CLASSES, *masks.shape[1:], device=self.device)
            return target.scatter_(1, picked.unsqueeze(1), present.unsqueeze(1).float())
        target = F.one_hot(picked, num_classes=CLASSES)
        target = target * present.unsqueeze(-1)
        return target.permute(0, 3, 1, 2).float()

    def __call__(self, outputs, batch):
        protos, semantic, coefficients = outputs
        masks, classes = batch["masks"].to(self.device), batch["classes"].to(self.device)
        chosen = coefficients.flatten(2)[:, :, :8]
        instance = torch.einsum("bkn,bkhw->bnhw", chosen, protos)
        loss = self.bce(instance, (masks[:, None] == torch.arange(1, 9, device=self.device)[:, None, None]).float()).mean()
        return loss + self.bce(semantic, self.semantic_target(masks, classes)).mean()


model = Proto().cuda()
criterion = SegmentationLoss("cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
for step in range(3):
    batch = {"img": torch.rand(BATCH, 3, SIDE, SIDE), "masks": torch.randint(0, 9, (BATCH, SIDE // 4, SIDE // 4)),
             "classes": torch.randint(0, CLASSES, (BATCH, 9))}
    loss = criterion(model(batch["img"].cuda()), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
