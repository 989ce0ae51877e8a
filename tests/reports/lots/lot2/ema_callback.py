# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning a vision transformer on top of a frozen backbone, with averaged weights for evaluation."""
import copy
import itertools
import sys

import torch
import torch.nn.functional as F
from torch import nn

SHADOW = sys.argv[1] == "fixed"


def stack(width, layers):
    return nn.Sequential(*(nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, batch_first=True) for _ in range(layers)))


class Classifier(nn.Module):
    def __init__(self, width=640):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.backbone, self.top, self.head = stack(width, 8), stack(width, 6), nn.Linear(width, 1000)
        self.patch.requires_grad_(False)
        self.backbone.requires_grad_(False)

    def forward(self, images):
        with torch.no_grad():
            h = self.backbone(self.patch(images).flatten(2).transpose(1, 2))
        return self.head(self.top(h).mean(1))


class Average:
    def __init__(self, decay=0.99):
        self.decay, self.averaged = decay, None

    @torch.no_grad()
    def batch_end(self, model):
        if self.averaged is None:
            if SHADOW:
                self.averaged = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
            else:
                self.averaged, self.training = copy.deepcopy(model), copy.deepcopy(model)
        if SHADOW:
            for n, p in model.named_parameters():
                if n in self.averaged:
                    self.averaged[n].lerp_(p, 1 - self.decay)
        else:
            for a, p in zip(self.averaged.parameters(), model.parameters()):
                a.lerp_(p, 1 - self.decay)

    @torch.no_grad()
    def swap(self, model, to_average):
        if SHADOW:
            for n, p in model.named_parameters():
                if n in self.averaged:
                    kept = p.clone()
                    p.copy_(self.averaged[n])
                    self.averaged[n].copy_(kept)
            return
        if to_average:
            self.training.load_state_dict(model.state_dict())
        model.load_state_dict((self.averaged if to_average else self.training).state_dict())


model = Classifier().cuda()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)
average = Average()
for epoch, step in itertools.product(range(2), range(3)):
    images, labels = torch.randn(16, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (16,), device="cuda")
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.batch_end(model)
    if step == 2:
        average.swap(model, True)
        with torch.no_grad():
            model(images)
        average.swap(model, False)
        print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
