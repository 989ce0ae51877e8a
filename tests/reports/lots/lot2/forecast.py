# SPDX-License-Identifier: Apache-2.0
"""Training a forecaster, then predicting all series with a callback that collects the results."""
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MOVE = sys.argv[1] == "fixed"


class Series(Dataset):
    def __init__(self, batches):
        self.batches, self.values = batches, torch.rand(1024, 192, 24)

    def __len__(self):
        return self.batches

    def __getitem__(self, i):
        x = self.values.roll(i, 0)
        return {"encoder": x[:, :168], "decoder": x[:, 168:], "lengths": torch.full((1024,), 168)}, x[:, 168:, 0].clone()


class Forecaster(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.past, self.future = nn.LSTM(24, width, batch_first=True), nn.LSTM(24, width, batch_first=True)
        self.quantiles = nn.Linear(width, 7)

    def forward(self, x):
        _, state = self.past(x["encoder"])
        h, _ = self.future(x["decoder"], state)
        return self.quantiles(h)


class Collect:
    def __init__(self, return_x=True, return_y=True):
        self.predictions, self.x, self.y = [], [] if return_x else None, [] if return_y else None

    def on_batch_end(self, output, x, y):
        if MOVE:
            output, y = output.detach().cpu(), y.cpu()
            x = {k: v.cpu() for k, v in x.items()}
        self.predictions.append(output)
        if self.x is not None:
            self.x.append(x)
        if self.y is not None:
            self.y.append(y)

    def result(self):
        return torch.cat(self.predictions), {k: torch.cat([x[k] for x in self.x]) for k in self.x[0]}, torch.cat(self.y)


def to_device(batch):
    x, y = batch
    return {k: v.cuda(non_blocking=True) for k, v in x.items()}, y.cuda(non_blocking=True)


model = Forecaster().cuda()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Series(4), batch_size=None)
for batch in loader:
    x, y = to_device(batch)
    loss = (model(x)[..., 3] - y).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

callback = Collect()
model.eval()
with torch.no_grad():
    for i, batch in enumerate(DataLoader(Series(60), batch_size=None)):
        x, y = to_device(batch)
        callback.on_batch_end(model(x), x, y)
predictions, inputs, truth = callback.result()
print(predictions.shape, inputs["encoder"].shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
