# SPDX-License-Identifier: Apache-2.0
"""An encoder of pictures is trained with the NT-Xent loss: one class against a set of single examples of others."""
import sys

import torch
import torch.nn.functional as F
from torch import nn


def all_pairs(labels):
    same = labels[:, None] == labels[None]
    different = ~same
    same.fill_diagonal_(False)
    return *torch.where(same), *torch.where(different)


def one_positive_each(labels):
    a1, p, a2, n = all_pairs(labels)
    first = torch.ones_like(a1, dtype=torch.bool)
    first[1:] = a1[1:] != a1[:-1]
    return a1[first], p[first], a2, n


class NTXentLoss(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.temperature = temperature

    def forward(self, embeddings, labels, indices_tuple=None):
        a1, p, a2, n = (i.to(embeddings.device) for i in indices_tuple or all_pairs(labels))
        embeddings = F.normalize(embeddings, dim=1)
        similarity = embeddings @ embeddings.T
        pos_pairs = similarity[a1, p].unsqueeze(1) / self.temperature
        neg_pairs = similarity[a2, n] / self.temperature
        n_per_p = a2.unsqueeze(0) == a1.unsqueeze(1)
        neg_pairs = neg_pairs * n_per_p
        neg_pairs[n_per_p == 0] = torch.finfo(neg_pairs.dtype).min
        max_val = torch.max(pos_pairs, neg_pairs.max(dim=1, keepdim=True)[0])
        numerator = torch.exp(pos_pairs - max_val).squeeze(1)
        denominator = torch.exp(neg_pairs - max_val).sum(dim=1) + numerator
        return -torch.log(numerator / denominator).mean()


class Encoder(nn.Module):
    def __init__(self, width=64, out=128):
        super().__init__()
        layers = []
        for a, b in ((3, width), (width, 2 * width), (2 * width, 4 * width)):
            layers += [nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(4 * width, out)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


encoder, criterion = Encoder().cuda(), NTXentLoss(temperature=0.5)
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
labels = torch.cat([torch.zeros(88, dtype=torch.long), torch.arange(1, 89)])
for step in range(4):
    images = torch.rand(len(labels), 3, 96, 96).cuda()
    indices = one_positive_each(labels) if sys.argv[1] == "fixed" else None
    loss = criterion(encoder(images), labels, indices)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
