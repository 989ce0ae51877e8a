# SPDX-License-Identifier: Apache-2.0
"""Mutations of antibodies are predicted for pairs of parent and child sequences; branch lengths are fitted between epochs."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

KMERS, LENGTH, WIDTH = 1026, 400, 64
PAIRS = {"train": 90_000, "val": 20_000}
ON_HOST = sys.argv[1] == "fixed"


class DNSMDataset:
    def __init__(self, n, device):
        self.parents = torch.randint(0, KMERS, (n, LENGTH))
        self.mutated = torch.zeros(n, LENGTH)
        self.masks = torch.ones(n, LENGTH, dtype=torch.bool)
        self.branch_lengths = torch.full((n,), 0.1)
        self.to(device)

    def to(self, device):
        self.device = device
        for name in ("parents", "mutated", "masks", "branch_lengths"):
            setattr(self, name, getattr(self, name).to(device))

    def __len__(self):
        return len(self.parents)

    def batches(self, size):
        for rows in torch.randperm(len(self)).split(size):
            rows = rows.to(self.device)
            yield tuple(t[rows].to("cuda") for t in (self.parents, self.mutated, self.masks, self.branch_lengths))


class SelectionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.conv1, self.conv2 = nn.Embedding(KMERS, WIDTH), nn.Conv1d(WIDTH, WIDTH, 9, padding=4), nn.Conv1d(WIDTH, 1, 1)

    def forward(self, parents):
        x = F.relu(self.conv1(self.embed(parents).transpose(1, 2)))
        return self.conv2(x).squeeze(1)


def loss_of(model, parents, mutated, masks, branch_lengths):
    rate = torch.exp(model(parents)) * branch_lengths[:, None]
    return F.binary_cross_entropy(torch.sigmoid(-rate) * masks, mutated, reduction="mean")


def fit_branch_lengths(model, dataset):
    home = dataset.device
    dataset.to("cpu")
    dataset.branch_lengths = dataset.branch_lengths * 1.01
    dataset.to(home)


model = SelectionModel().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
train = DNSMDataset(PAIRS["train"], "cpu" if ON_HOST else "cuda")
val = DNSMDataset(PAIRS["val"], "cpu" if ON_HOST else "cuda")
for epoch in range(2):
    for number, batch in enumerate(train.batches(256)):
        loss = loss_of(model, *batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number == 6:
            break
    with torch.no_grad():
        losses = [loss_of(model, *batch).item() for number, batch in enumerate(val.batches(512)) if number < 4]
    fit_branch_lengths(model, train)
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
