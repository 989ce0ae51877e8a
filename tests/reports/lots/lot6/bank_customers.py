# SPDX-License-Identifier: Apache-2.0
"""A generative network learns a table of a bank's customers, with each categorical column as one-hot."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

COLUMNS = {"customer_id": 24_000, "iban": 24_000, "branch": 180, "job": 60, "country": 90, "product": 25, "segment": 8, "gender": 3}
NUMERIC, EMBEDDING, BATCH, PAC, ROWS = 10, 128, 500, 10, 24_000
if sys.argv[1] == "fixed":
    del COLUMNS["customer_id"], COLUMNS["iban"]


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.fc, self.bn = nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs)

    def forward(self, x):
        return torch.cat([F.relu(self.bn(self.fc(x))), x], dim=1)


class Generator(nn.Module):
    def __init__(self, data_dim):
        super().__init__()
        self.seq = nn.Sequential(Residual(EMBEDDING, 256), Residual(EMBEDDING + 256, 256), nn.Linear(EMBEDDING + 512, data_dim))

    def forward(self, z):
        return self.seq(z)


class Discriminator(nn.Module):
    def __init__(self, data_dim):
        super().__init__()
        self.seq = nn.Sequential(nn.Linear(data_dim * PAC, 128), nn.LeakyReLU(0.2), nn.Dropout(0.5),
                                 nn.Linear(128, 128), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(128, 1))

    def forward(self, rows):
        return self.seq(rows.view(len(rows) // PAC, -1))


def activate(raw):
    parts, start = [torch.tanh(raw[:, :NUMERIC])], NUMERIC
    for size in COLUMNS.values():
        parts.append(F.gumbel_softmax(raw[:, start:start + size], tau=0.2))
        start += size
    return torch.cat(parts, dim=1)


def real_batch(table):
    rows = torch.randint(0, ROWS, (BATCH,))
    parts = [torch.randn(BATCH, NUMERIC)] + [F.one_hot(table[name][rows], size).float() for name, size in COLUMNS.items()]
    return torch.cat(parts, dim=1)


table = {name: torch.randint(0, size, (ROWS,)) for name, size in COLUMNS.items()}
data_dim = NUMERIC + sum(COLUMNS.values())
generator, discriminator = Generator(data_dim).cuda(), Discriminator(data_dim).cuda()
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.9))
for epoch in range(3):
    for step in range(2):
        fake = activate(generator(torch.randn(BATCH, EMBEDDING, device="cuda")))
        real = real_batch(table).cuda()
        loss_d = discriminator(fake.detach()).mean() - discriminator(real).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        fake = activate(generator(torch.randn(BATCH, EMBEDDING, device="cuda")))
        loss_g = -discriminator(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
    print(epoch, torch.cuda.max_memory_allocated() >> 20, "MiB")
