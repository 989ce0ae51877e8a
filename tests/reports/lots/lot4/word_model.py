# SPDX-License-Identifier: Apache-2.0
"""A language model of words with dropped recurrent weights, after AWD-LSTM."""
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, HIDDEN = 12000, 400, 1600


class WeightDrop(nn.Module):
    def __init__(self, module, names, dropout):
        super().__init__()
        self.module, self.names, self.dropout = module, names, dropout
        for name in names:
            weight = getattr(module, name)
            del module._parameters[name]
            self.register_parameter(name + "_raw", nn.Parameter(weight.data))

    def set_weights(self):
        for name in self.names:
            weight = F.dropout(getattr(self, name + "_raw"), self.dropout, self.training)
            setattr(self.module, name, weight)
        if sys.argv[1] == "fixed":
            self.module.flatten_parameters()

    def forward(self, *args):
        self.set_weights()
        return self.module(*args)


class WordModel(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        sizes = [WIDTH] + [HIDDEN] * (layers - 1) + [WIDTH]
        self.rnns = nn.ModuleList(WeightDrop(nn.LSTM(a, b, batch_first=True), ["weight_hh_l0"], 0.5) for a, b in zip(sizes, sizes[1:]))

    def forward(self, ids):
        h = self.embed(ids)
        for rnn in self.rnns:
            h = F.dropout(rnn(h)[0], 0.3, self.training)
        return h @ self.embed.weight.T


model = WordModel().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=10)
for step in range(4):
    ids = torch.randint(0, WORDS, (16, 71), device="cuda")
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
