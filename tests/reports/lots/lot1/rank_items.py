# SPDX-License-Identifier: Apache-2.0
"""Neural collaborative filtering: training on pairs, then the ranking of every item for all test users."""
import sys

import torch
from torch import nn

MODE = sys.argv[1]
USERS, ITEMS, WIDTH = 6000, 3500, 32


class NCF(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(2 * WIDTH, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, users, items):
        return self.mlp(torch.cat([self.user(users), self.item(items)], -1)).squeeze(-1)

    @torch.no_grad()
    def predict(self, users, items):
        self.eval()
        scores = self(users, items)
        self.train()
        return scores


def train_epoch(model, optimizer):
    for _ in range(20):
        users = torch.randint(USERS, (4096,), device="cuda")
        items = torch.randint(ITEMS, (4096,), device="cuda")
        wanted = torch.randint(2, (4096,), device="cuda").float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(users, items), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, test_users, k=10):
    every = torch.arange(ITEMS, device="cuda")
    size = 64 if MODE == "fixed" else len(test_users)
    best = []
    for users in test_users.split(size):
        pairs = users.repeat_interleave(ITEMS), every.repeat(len(users))
        scores = model.predict(*pairs).view(len(users), ITEMS)
        best.append(scores.topk(k).indices.cpu())
    return torch.cat(best)


def main():
    model = NCF().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    test_users = torch.randperm(USERS)[:1024].cuda()
    for epoch in range(3):
        train_epoch(model, optimizer)
        evaluate(model, test_users)


main()
