# SPDX-License-Identifier: Apache-2.0
"""No module and no optimizer: weights are bare tensors in a dictionary, a loop written from the mathematics."""
import math

import torch
from torch.nn import functional as F

import runner
import truth

device = "cuda"
N, D, H, C = 2048, 1024, 2048, 512


def linear(n_in, n_out):
    w = torch.randn(n_in, n_out, device=device) / math.sqrt(n_in)
    w.requires_grad_()
    return w, torch.zeros(n_out, device=device, requires_grad=True)


w1, b1 = linear(D, H)
w2, b2 = linear(H, H)
w3, b3 = linear(H, C)
weights = [w1, b1, w2, b2, w3, b3]
truth.holds("parameters", "weights", lambda: weights)
truth.holds("gradients", "gradients", lambda: [w.grad for w in weights])
xs = torch.randn(4 * N, D, device=device)
ys = torch.randint(0, C, (4 * N,), device=device)
truth.holds("inputs", "the data", lambda: [xs, ys, *batch])
batch = []
lr = 0.1


def net(x):
    h = torch.tanh(x @ w1 + b1)
    h = torch.relu(h @ w2 + b2)
    return F.log_softmax(h @ w3 + b3, dim=1)


for i in range(4):
    batch[:] = [xs[i * N:(i + 1) * N], ys[i * N:(i + 1) * N]]
    with truth.phase("forward"):
        loss = F.nll_loss(net(batch[0]), batch[1])
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"), torch.no_grad():
        for w in weights:
            w -= lr * w.grad
            w.grad = None
    truth.mark("step")
truth.finish()
