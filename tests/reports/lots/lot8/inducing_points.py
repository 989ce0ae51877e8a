# SPDX-License-Identifier: Apache-2.0
"""Variational Gaussian processes for a Bayesian optimization: a new model, with new inducing points, for each batch of experiments."""
import contextlib
import gc
import sys

import torch
from torch import nn

POINTS, INDUCING, DIM = 2048, 24, 5


class MaternKernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_lengthscale, self.raw_outputscale = nn.Parameter(torch.zeros(1, DIM)), nn.Parameter(torch.zeros(()))

    def forward(self, x1, x2):
        lengthscale, outputscale = (nn.functional.softplus(raw) for raw in (self.raw_lengthscale, self.raw_outputscale))
        distance = torch.cdist(x1 / lengthscale, x2 / lengthscale) * 5**0.5
        return outputscale * (1 + distance + distance**2 / 3) * torch.exp(-distance)


def _pivoted_cholesky_init(train_inputs, kernel_matrix, max_length, epsilon=1e-6):
    cis = torch.zeros(max_length, len(train_inputs), device=train_inputs.device)
    di2s = kernel_matrix.diag()
    selected_items = [torch.argmax(di2s)]
    while len(selected_items) < max_length:
        k, selected_item = len(selected_items) - 1, selected_items[-1]
        ci_optimal = cis[:k, selected_item]
        di_optimal = torch.sqrt(di2s[selected_item])
        elements = kernel_matrix[..., selected_item, :]
        eis = (elements - torch.matmul(ci_optimal, cis[:k, :])) / di_optimal
        cis[k, :] = eis
        di2s = di2s - eis.pow(2.0)
        di2s[selected_item] = float("-inf")
        selected_items.append(torch.argmax(di2s))
    return train_inputs[torch.stack(selected_items)]


class GreedyVarianceReduction:
    def allocate_inducing_points(self, inputs, covar_module, num_inducing):
        with torch.no_grad() if sys.argv[1] == "fixed" else contextlib.nullcontext():
            train_train_kernel = covar_module(inputs, inputs)
        return _pivoted_cholesky_init(inputs, train_train_kernel, num_inducing)


class SingleTaskVariationalGP(nn.Module):
    def __init__(self, train_X, train_Y):
        super().__init__()
        self.covar_module, self.mean, self.raw_noise = MaternKernel().to(train_X.device), nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
        self.inducing_points = GreedyVarianceReduction().allocate_inducing_points(train_X, self.covar_module, INDUCING).detach()
        self.variational_mean, self.chol = nn.Parameter(torch.zeros(INDUCING)), nn.Parameter(torch.eye(INDUCING))

    def elbo(self, x, y):
        z, jitter = self.inducing_points, 1e-3 * torch.eye(INDUCING, device=x.device)
        interpolation = torch.linalg.solve(self.covar_module(z, z) + jitter, self.covar_module(z, x))
        mean, variance = self.mean + interpolation.t() @ self.variational_mean, (self.chol.tril() @ interpolation).pow(2).sum(0)
        noise = nn.functional.softplus(self.raw_noise)
        return -((y - mean).pow(2) + variance).mean() / noise - noise.log() - self.variational_mean.pow(2).mean()


def suggest(train_X, train_Y):
    model = SingleTaskVariationalGP(train_X, train_Y).to(train_X.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(10):
        optimizer.zero_grad()
        loss = -model.elbo(train_X, train_Y)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        candidates = torch.rand(512, DIM).to(train_X.device)
        return candidates[(model.covar_module(candidates, model.inducing_points) @ model.variational_mean).argmax()]


for experiment in range(12):
    train_X = torch.rand(POINTS, DIM).to("cuda")
    best = suggest(train_X, torch.sin(train_X).sum(1))
    gc.collect()
    print("experiment", experiment, torch.cuda.memory_allocated() >> 20, "MiB in use,", torch.cuda.max_memory_allocated() >> 20, "MiB at most")
