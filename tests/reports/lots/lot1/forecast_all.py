# SPDX-License-Identifier: Apache-2.0
"""Forecasts of many series: a recurrent encoder, and a prediction run that collects the raw outputs."""
import sys

import torch
from torch import nn

MODE = sys.argv[1]
PAST, FUTURE, FEATURES = 192, 48, 40


class Forecaster(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.encoder = nn.GRU(FEATURES, width, batch_first=True)
        self.decoder = nn.GRU(FEATURES, width, batch_first=True)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.quantiles = nn.Linear(width, 7)

    def forward(self, x):
        memory, state = self.encoder(x["encoder"])
        hidden, _ = self.decoder(x["decoder"], state)
        mixed, weights = self.attention(hidden, memory, memory)
        return {"prediction": self.quantiles(hidden + mixed), "encoder_attention": weights, "static": memory.mean(1)}


def move_to(value, device):
    return {k: v.detach().to(device) for k, v in value.items()}


class PredictCallback:
    def __init__(self):
        self.predictions, self.info = [], []

    def on_batch_end(self, out, x):
        if MODE == "fixed":
            out, x = move_to(out, "cpu"), move_to(x, "cpu")
        self.predictions.append(out)
        self.info.append(x)

    def on_end(self):
        return {k: torch.cat([p[k] for p in self.predictions]) for k in self.predictions[0]}


class Trainer:
    def loader(self, n):
        for _ in range(n):
            yield {"encoder": torch.randn(256, PAST, FEATURES), "decoder": torch.randn(256, FUTURE, FEATURES)}

    @torch.inference_mode()
    def predict(self, model, callback):
        for x in self.loader(30):
            x = move_to(x, "cuda")
            callback.on_batch_end(model(x), x)
        return callback.on_end()


def main():
    model = Forecaster().cuda().eval()
    raw = Trainer().predict(model, PredictCallback())
    print({k: tuple(v.shape) for k, v in raw.items()})


main()
