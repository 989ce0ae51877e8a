# SPDX-License-Identifier: Apache-2.0
"""Films are recommended by a variational autoencoder (Mult-VAE), which reads the ratings of a user and returns a score for every film."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

USERS, ITEMS, LONGEST, BATCH, HIDDEN, LATENT, TOPK = 24_000, 12_000, 900, 384, 600, 128, 20
FIXED = sys.argv[1] == "fixed"


class Dataset:
    def __init__(self):
        self.lengths = torch.randint(5, LONGEST, (USERS,))
        self.lengths[0] = LONGEST

    def history_item_matrix(self):
        items = torch.randint(1, ITEMS, (USERS, LONGEST))
        seen = torch.arange(LONGEST) < self.lengths[:, None]
        return items * seen, seen.float(), self.lengths


class MultiVAE(nn.Module):
    def __init__(self, dataset, device):
        super().__init__()
        self.device = device
        self.history_item_id, self.history_item_value, _ = dataset.history_item_matrix()
        if not FIXED:
            self.history_item_id = self.history_item_id.to(device)
            self.history_item_value = self.history_item_value.to(device)
        self.encoder = nn.Sequential(nn.Linear(ITEMS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, ITEMS))
        self.to(device)

    def get_rating_matrix(self, user):
        user = user.to(self.history_item_id.device)
        items, values = self.history_item_id[user].to(self.device), self.history_item_value[user].to(self.device)
        matrix = torch.zeros(len(user), ITEMS, device=self.device)
        return matrix.scatter_(1, items, values)

    def forward(self, ratings):
        mu, logvar = self.encoder(F.dropout(F.normalize(ratings), 0.5, self.training)).chunk(2, -1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar) if self.training else mu
        return self.decoder(z), mu, logvar

    def calculate_loss(self, user, anneal):
        ratings = self.get_rating_matrix(user)
        scores, mu, logvar = self(ratings)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        return anneal * kl - (F.log_softmax(scores, 1) * ratings).sum(1).mean()

    @torch.no_grad()
    def full_sort_predict(self, user):
        ratings = self.get_rating_matrix(user)
        return self(ratings)[0].masked_fill(ratings > 0, float("-inf"))


model = MultiVAE(Dataset(), torch.device("cuda"))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    model.train()
    for step, user in enumerate(torch.randperm(USERS).split(BATCH)[:8]):
        loss = model.calculate_loss(user, min(0.2, step / 1000))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    top = model.full_sort_predict(torch.arange(BATCH)).topk(TOPK, dim=1)[1].cpu()
    print("epoch", epoch, loss.item(), tuple(top.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
