# SPDX-License-Identifier: Apache-2.0
"""Q-learning: a replay memory on the device, a target network that is copied over now and then."""
import copy

import torch
from torch import nn

import runner
import truth


class ReplayBuffer:
    def __init__(self, size, obs_dim, device):
        self.obs = torch.empty(size, obs_dim, device=device)
        self.next_obs = torch.empty(size, obs_dim, device=device)
        self.reward = torch.empty(size, device=device)
        self.action = torch.empty(size, dtype=torch.int64, device=device).zero_()
        self.size, self.at = size, 0

    def add(self, obs, next_obs, reward):
        n = len(obs)
        self.obs[self.at:self.at + n] = obs
        self.next_obs[self.at:self.at + n] = next_obs
        self.reward[self.at:self.at + n] = reward
        self.at = (self.at + n) % self.size

    def sample(self, n):
        i = torch.randint(0, self.size, (n,), device=self.obs.device)
        return self.obs[i], self.action[i], self.reward[i], self.next_obs[i]


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


q = mlp(512, 2048, 2048, 16).cuda()
target = copy.deepcopy(q)
for p in target.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(q.parameters())
runner.declare(q, optimizer)
truth.model(target)
memory = ReplayBuffer(20000, 512, "cuda")
truth.holds("inputs", "replay memory", lambda: vars(memory))
batches = runner.Batches(lambda: memory.sample(1024))
for step in range(3):
    with truth.phase("data"):
        memory.add(torch.randn(256, 512).cuda(), torch.randn(256, 512).cuda(), torch.randn(256).cuda())
    obs, action, reward, following = batches.next()
    with truth.phase("forward"):
        with torch.no_grad():
            wanted = reward + 0.99 * target(following).max(1).values
        value = q(obs).gather(1, action[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(value, wanted)
    truth.mark("forward")
    optimizer.zero_grad()
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
    if step == 1:
        target.load_state_dict(q.state_dict())
    else:
        with torch.no_grad():
            for t, p in zip(target.parameters(), q.parameters()):
                t.data.copy_(0.995 * t.data + 0.005 * p.data)
    truth.mark("end")
truth.finish()
