# SPDX-License-Identifier: Apache-2.0
"""A network for pedestrian lights: a class and a direction for each photograph, trained and validated in turns."""
import sys

import torch
from torch import nn
from torchvision.models import mobilenet_v2

MODE = sys.argv[1]


class LightNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = mobilenet_v2().features
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.light, self.direction = nn.Linear(1280, 5), nn.Linear(1280, 4)

    def forward(self, x):
        x = self.pool(self.features(x)).flatten(1)
        return self.light(x), self.direction(x)


class DirectionLoss(nn.Module):
    def forward(self, light, direction, true_light, true_direction):
        ce = nn.functional.cross_entropy(light, true_light)
        mse = nn.functional.mse_loss(direction, true_direction)
        return 0.5 * ce + 0.5 * mse, mse, ce


def batches(n):
    for _ in range(n):
        yield (torch.randn(16, 3, 288, 384, device="cuda"), torch.randint(5, (16,), device="cuda"), torch.rand(16, 4, device="cuda"))


def train(model, criterion, optimizer):
    model.train()
    running = 0.0
    for image, light, direction in batches(6):
        optimizer.zero_grad()
        loss, mse, ce = criterion(*model(image), light, direction)
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running / 6


def validate(model, criterion):
    model.eval()
    val_loss = val_mse = val_ce = 0.0
    for image, light, direction in batches(12):
        loss, mse, ce = criterion(*model(image), light, direction)
        if MODE == "fixed":
            loss, mse, ce = loss.item(), mse.item(), ce.item()
        val_loss += loss
        val_mse += mse
        val_ce += ce
    return val_loss / 12, val_mse / 12, val_ce / 12


def main():
    model, criterion = LightNet().cuda(), DirectionLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        print(epoch, train(model, criterion, optimizer), *map(float, validate(model, criterion)))


main()
