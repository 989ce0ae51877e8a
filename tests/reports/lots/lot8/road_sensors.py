# SPDX-License-Identifier: Apache-2.0
"""Speeds at the sensors of a road network are forecast by a spatio-temporal graph network, with a validation after each epoch."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

SENSORS, FEATURES, STEPS_IN, STEPS_OUT, BATCH, EPOCHS = 128, 2, 12, 3, 50, 2


class TimeBlock(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = (nn.Conv2d(n_in, n_out, (1, 3)) for _ in range(3))

    def forward(self, x):
        x = x.permute(0, 3, 1, 2)
        gated = self.conv1(x) + torch.sigmoid(self.conv2(x))
        return F.relu(gated + self.conv3(x)).permute(0, 2, 3, 1)


class STGCNBlock(nn.Module):
    def __init__(self, n_in, spatial, n_out):
        super().__init__()
        self.temporal1, self.temporal2 = TimeBlock(n_in, n_out), TimeBlock(spatial, n_out)
        self.theta, self.norm = nn.Parameter(torch.randn(n_out, spatial) / n_out ** 0.5), nn.BatchNorm2d(SENSORS)

    def forward(self, x, adjacency):
        t = self.temporal1(x)
        neighbors = torch.einsum("ij,jklm->kilm", adjacency, t.permute(1, 0, 2, 3))
        return self.norm(self.temporal2(F.relu(neighbors @ self.theta)))


class STGCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1, self.block2, self.last = STGCNBlock(FEATURES, 16, 64), STGCNBlock(64, 16, 64), TimeBlock(64, 64)
        self.fully = nn.Linear((STEPS_IN - 10) * 64, STEPS_OUT)

    def forward(self, adjacency, x):
        return self.fully(self.last(self.block2(self.block1(x, adjacency), adjacency)).flatten(2))


def generate_dataset(length):
    series = torch.randn(length, SENSORS, FEATURES)
    windows = series.unfold(0, STEPS_IN + STEPS_OUT, 1).transpose(2, 3)
    return windows[:, :, :STEPS_IN].contiguous(), windows[:, :, STEPS_IN:, 0].contiguous()


def train_epoch(inputs, targets):
    losses = []
    for indices in torch.randperm(len(inputs)).split(BATCH):
        net.train()
        optimizer.zero_grad()
        loss = criterion(net(adjacency, inputs[indices].to(device)), targets[indices].to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def validate(inputs, targets):
    net.eval()
    size = BATCH if sys.argv[1] == "fixed" else len(inputs)
    loss = error = 0
    with torch.no_grad():
        for x, y in zip(inputs.split(size), targets.split(size)):
            x, y = x.to(device), y.to(device)
            out = net(adjacency, x)
            loss += criterion(out, y).item() * len(x)
            error += (out.cpu() - y.cpu()).abs().sum().item()
    return loss / len(inputs), error / targets.numel()


device = torch.device("cuda")
(train_x, train_y), (val_x, val_y) = generate_dataset(614), generate_dataset(814)
adjacency = torch.rand(SENSORS, SENSORS).softmax(-1).to(device)
net, criterion = STGCN().to(device), nn.MSELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    print(epoch, train_epoch(train_x, train_y), *validate(val_x, val_y), torch.cuda.max_memory_allocated() >> 20, "MiB")
