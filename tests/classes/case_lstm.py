# SPDX-License-Identifier: Apache-2.0
"""A recurrent network: all weights of it are views of one block, and cuDNN keeps a reserve for backward."""
import torch
from torch import nn
from torch.nn import functional as F

import runner


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(6000, 512)
        self.lstm = nn.LSTM(512, 768, num_layers=3, batch_first=True)
        self.head = nn.Linear(768, 6000)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


model = Net().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), momentum=0.9)
runner.declare(model, optimizer)
runner.train(model, optimizer, lambda: torch.randint(0, 6000, (24, 60), device="cuda"), runner.language_loss, inside=model.lstm)
