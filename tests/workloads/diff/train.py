# SPDX-License-Identifier: Apache-2.0
"""The training of the program that test_diff.py changes as a commit would."""
import torch
from torch.nn import functional as F

import model

BATCH, TOKENS, WORDS, WIDTH, LAYERS = 8, 128, 512, 128, 4
STEPS = 5


def make_model():
    net = model.Net(WORDS, WIDTH, 4, LAYERS)
    return net.cuda()


def make_optimizer(net):
    return torch.optim.AdamW(net.parameters(), lr=1e-3)


def loss_of(net, ids):
    logits = net(ids)
    return F.cross_entropy(logits.flatten(0, 1), ids.flatten())


def main():
    net = make_model()
    optimizer = make_optimizer(net)
    for step in range(STEPS):
        ids = torch.zeros(BATCH, TOKENS, dtype=torch.long, device="cuda")
        loss = loss_of(net, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
