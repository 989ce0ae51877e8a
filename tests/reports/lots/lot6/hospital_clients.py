# SPDX-License-Identifier: Apache-2.0
"""Federated learning, simulated: 16 hospitals train a classifier of X-rays in turn, and a server averages their models."""
import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn

CLIENTS, ROUNDS, SAMPLED = 16, 4, 6
ON_HOST = sys.argv[1] == "fixed"


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU())


def make_model():
    return nn.Sequential(block(1, 64), block(64, 128), block(128, 256), block(256, 512), block(512, 512),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 14))


class Client:
    def __init__(self, name):
        self.name, self.model = name, None

    def unpack(self, package):
        self.model = copy.deepcopy(package["model"])

    def train(self, device):
        self.model.to(device).train()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        for _ in range(2):
            images, labels = torch.rand(8, 1, 128, 128).to(device), torch.rand(8, 14).to(device).round()
            loss = F.binary_cross_entropy_with_logits(self.model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.model.zero_grad()
        if ON_HOST:
            self.model.to("cpu")

    def reply(self, package, device):
        self.unpack(package)
        self.train(device)
        return {"model": copy.deepcopy(self.model)}


class Server:
    def __init__(self, device):
        self.device = device
        self.model = make_model() if ON_HOST else make_model().to(device)
        self.clients = [Client(f"hospital-{i:02d}") for i in range(CLIENTS)]

    def iterate(self, number):
        chosen = [self.clients[(number * SAMPLED + i) % CLIENTS] for i in range(SAMPLED)]
        models = [client.reply({"model": self.model}, self.device)["model"] for client in chosen]
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                value.copy_(sum(m.state_dict()[name].float() for m in models) / len(models))


server = Server("cuda")
for number in range(ROUNDS):
    server.iterate(number)
    print("round", number, torch.cuda.max_memory_allocated() >> 20, "MiB")
