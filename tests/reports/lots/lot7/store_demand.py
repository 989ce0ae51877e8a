# SPDX-License-Identifier: Apache-2.0
"""Demand of stores is forecast by a recurrent network with attention; logs of all batches are summed up at the epoch's end."""
import sys

import torch
from torch import nn

HIDDEN, HEADS, HISTORY, HORIZON, BATCH = 64, 4, 168, 24, 64
QUANTILES = torch.tensor([0.1, 0.5, 0.9])


class TemporalNetwork(nn.Module):
    def __init__(self, variables=8):
        super().__init__()
        self.selection = nn.Sequential(nn.Linear(variables, variables), nn.Softmax(-1))
        self.encoder, self.decoder = nn.LSTM(variables, HIDDEN, batch_first=True), nn.LSTM(1, HIDDEN, batch_first=True)
        self.q, self.kv, self.out = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 2 * HIDDEN), nn.Linear(HIDDEN, len(QUANTILES))

    def forward(self, x):
        weights = self.selection(x["encoder"])
        memory, state = self.encoder(weights * x["encoder"])
        query, _ = self.decoder(x["calendar"], state)
        q = self.q(query).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        k, v = self.kv(memory).unflatten(-1, (2, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        return {"prediction": self.out((attention @ v).transpose(1, 2).flatten(2)), "attention": attention, "variables": weights}


class ForecastModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.network, self.training_step_outputs = TemporalNetwork(), []
        self.register_buffer("quantiles", QUANTILES)

    def loss(self, prediction, target):
        error = target.unsqueeze(-1) - prediction
        return torch.maximum(self.quantiles * error, (self.quantiles - 1) * error).mean()

    def create_log(self, out, target):
        median = out["prediction"][..., 1]
        importance = out["attention"].square().sum(dim=1)
        return {"smape": 2 * (median - target).abs() / (median.abs() + target.abs() + 1e-8),
                "attention": (importance / importance.sum(-1, keepdim=True)).mean(dim=(0, 1)), "variables": out["variables"].square().mean(dim=(0, 1)).sqrt()}

    def training_step(self, x, target):
        out = self.network(x)
        loss = self.loss(out["prediction"], target)
        log = {"loss": loss, **self.create_log(out, target)}
        if sys.argv[1] == "fixed":
            log = {name: value.detach() for name, value in log.items()}
        self.training_step_outputs.append(log)
        return loss

    def on_epoch_end(self):
        means = {name: torch.stack([log[name].mean() for log in self.training_step_outputs]).mean().item() for name in self.training_step_outputs[0]}
        self.training_step_outputs.clear()
        return means


def dataloader(batches):
    for _ in range(batches):
        yield {"encoder": torch.randn(BATCH, HISTORY, 8).cuda(), "calendar": torch.randn(BATCH, HORIZON, 1).cuda()}, torch.rand(BATCH, HORIZON).cuda()


module = ForecastModule().cuda()
optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
for epoch in range(2):
    for x, target in dataloader(40):
        loss = module.training_step(x, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, module.on_epoch_end(), torch.cuda.max_memory_allocated() >> 20, "MiB")
