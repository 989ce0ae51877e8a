# SPDX-License-Identifier: Apache-2.0
"""Learning a control policy through a differentiable model of the plant, keeping the best policy by its loss on test starts."""
import copy
import sys

import torch
from torch import nn

HORIZON, STARTS = 40, 4096


class Problem(nn.Module):
    def __init__(self, states=8, controls=4, width=128):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(states, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
                                    nn.Linear(width, controls))
        self.register_buffer("a", torch.eye(states) * 0.98)
        self.register_buffer("b", torch.randn(controls, states) * 0.1)

    def forward(self, x, name):
        cost = 0.0
        for _ in range(HORIZON):
            u = self.policy(x)
            x = x @ self.a + u @ self.b
            cost = cost + x.square().mean() + 0.01 * u.square().mean()
        return {f"{name}_loss": cost, f"{name}_final": x.norm(dim=-1).mean()}


class Trainer:
    def __init__(self, problem, optimizer):
        self.problem, self.optimizer = problem, optimizer
        self.history, self.best, self.best_policy = [], None, None

    def store(self, output):
        if sys.argv[1] == "fixed":
            output = {k: v.detach() for k, v in output.items()}
        self.history.append(output)

    def train(self, epochs):
        for epoch in range(epochs):
            output = self.problem(torch.randn(STARTS, 8, device="cuda"), "train")
            self.optimizer.zero_grad()
            output["train_loss"].backward()
            self.optimizer.step()
            evaluated = self.problem(torch.randn(STARTS // 4, 8, device="cuda"), "dev")
            self.store({**output, **evaluated})
            loss = evaluated["dev_loss"].item()
            if self.best is None or loss < self.best:
                self.best, self.best_policy = loss, copy.deepcopy(self.problem.policy.state_dict())
            if epoch % 3 == 2:
                print(epoch, torch.cuda.memory_allocated() >> 20, "MiB")


problem = Problem().cuda()
trainer = Trainer(problem, torch.optim.AdamW(problem.parameters(), lr=1e-3))
trainer.train(12)
print(len(trainer.history), torch.cuda.max_memory_allocated() >> 20, "MiB")
