# SPDX-License-Identifier: Apache-2.0
"""Trajectory balance on generated sequences, with a replay buffer of past trajectories."""
import random
import sys
from collections import deque

import torch
from torch import nn

MODE = sys.argv[1]
VOCAB, WIDTH, LENGTH = 512, 768, 48


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens)))


class ReplayBuffer:
    def __init__(self, capacity):
        self.items = deque(maxlen=capacity)

    def push(self, trajectories):
        for item in trajectories:
            if MODE == "fixed":
                item = {k: v.detach().cpu() for k, v in item.items()}
            self.items.append(item)

    def sample(self, n):
        return random.sample(list(self.items), min(n, len(self.items)))


def rollout(policy, batch):
    tokens = torch.randint(VOCAB, (batch, LENGTH), device="cuda")
    logp = policy(tokens).log_softmax(-1)
    chosen = logp.gather(2, tokens[..., None]).squeeze(2)
    reward = torch.rand(batch, device="cuda")
    return [{"tokens": tokens[i], "logp": chosen[i].sum(), "reward": reward[i]} for i in range(batch)]


def main():
    torch.manual_seed(0)
    policy = Policy().cuda()
    log_z = nn.Parameter(torch.zeros((), device="cuda"))
    optimizer = torch.optim.Adam([*policy.parameters(), log_z], lr=1e-4)
    replay = ReplayBuffer(4000)
    for step in range(24):
        fresh = rollout(policy, 16)
        batch = fresh + replay.sample(16)
        replay.push(fresh)
        tokens = torch.stack([t["tokens"].cuda() for t in batch])
        reward = torch.stack([t["reward"].cuda() for t in batch])
        behaviour = torch.stack([t["logp"].detach().cuda() for t in batch])
        logp = policy(tokens).log_softmax(-1).gather(2, tokens[..., None]).squeeze(2).sum(1)
        weight = (logp.detach() - behaviour).clamp(max=0).exp()
        loss = (weight * (log_z + logp - reward).pow(2)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
