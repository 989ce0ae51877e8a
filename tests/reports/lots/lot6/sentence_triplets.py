# SPDX-License-Identifier: Apache-2.0
"""Embeddings of questions are trained with triplets that are mined in each batch (semi-hard)."""
import sys

import torch
from torch import nn

WORDS, WIDTH, BATCH, LENGTH, MARGIN = 16_000, 384, 400, 24, 5.0


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 6, 4 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def forward(self, ids):
        return self.encoder(self.embed(ids)).mean(dim=1)


def euclidean(embeddings):
    dot = embeddings @ embeddings.t()
    square = torch.diag(dot)
    return (square.unsqueeze(0) - 2 * dot + square.unsqueeze(1)).clamp(min=1e-12).sqrt()


def masked_minimum(data, mask):
    largest = data.max(1, keepdim=True).values
    return ((data - largest) * mask).min(1, keepdim=True).values + largest


def masked_maximum(data, mask):
    smallest = data.min(1, keepdim=True).values
    return ((data - smallest) * mask).max(1, keepdim=True).values + smallest


class SemiHardTripletLoss(nn.Module):
    def forward(self, embeddings, labels):
        n = len(labels)
        pdist = euclidean(embeddings)
        adjacency = labels.unsqueeze(0) == labels.unsqueeze(1)
        different = ~adjacency
        inside = masked_maximum(pdist, different).repeat(1, n)
        if sys.argv[1] == "fixed":
            candidates, order = pdist.masked_fill(adjacency, float("inf")).sort(dim=1)
            place = torch.searchsorted(candidates.detach(), pdist.detach().contiguous(), right=True).clamp(max=n - 1)
            outside = candidates.gather(1, place)
            semi_hard = torch.where(outside < float("inf"), outside, inside)
        else:
            tile = pdist.repeat(n, 1)
            mask = different.repeat(n, 1) & (tile > pdist.t().reshape(-1, 1))
            found = (mask.sum(1, keepdim=True) > 0).reshape(n, n).t()
            outside = masked_minimum(tile, mask).reshape(n, n).t()
            semi_hard = torch.where(found, outside, inside)
        positive = adjacency.float() - torch.eye(n, device=labels.device)
        return ((pdist - semi_hard + MARGIN) * positive).clamp(min=0).sum() / positive.sum()


model, criterion = Encoder().cuda(), SemiHardTripletLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
for step in range(4):
    ids, labels = torch.randint(0, WORDS, (BATCH, LENGTH)).cuda(), torch.arange(BATCH).div(4, rounding_mode="floor").cuda()
    loss = criterion(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
