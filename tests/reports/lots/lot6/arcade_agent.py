# SPDX-License-Identifier: Apache-2.0
"""An agent learns an arcade game with double Q-learning: frames come from a replay memory on the host."""
import copy
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn

ACTIONS, BATCH, GAMMA = 6, 256, 0.99


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten())
        self.value = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 1))
        self.advantage = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, ACTIONS))

    def forward(self, obs):
        x = self.conv(obs.float() / 255)
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(dim=1, keepdim=True)


class Replay:
    def __init__(self, size):
        self.frames, self.size = torch.zeros(size, 4, 84, 84, dtype=torch.uint8), size

    def sample(self, n, device):
        rows = torch.tensor([random.randrange(self.size - 1) for _ in range(n)])
        actions, rewards, done = torch.randint(0, ACTIONS, (n,)), torch.rand(n), torch.zeros(n)
        return [t.to(device) for t in (self.frames[rows], actions, rewards, self.frames[rows + 1], done)]


def q_loss(q, target, obs, actions, rewards, next_obs, done):
    q_t = q(obs)
    q_selected = q_t.gather(1, actions.unsqueeze(1)).squeeze(1)
    if sys.argv[1] == "fixed":
        with torch.no_grad():
            q_tp1 = target(next_obs)
            q_tp1_online = q(next_obs)
    else:
        q_tp1 = target(next_obs)
        q_tp1_online = q(next_obs)
    best = q_tp1.gather(1, q_tp1_online.argmax(1, keepdim=True)).squeeze(1)
    td_target = rewards + GAMMA * (1 - done) * best
    loss = F.smooth_l1_loss(q_selected, td_target.detach())
    return loss, {"q_t": q_t, "q_tp1": q_tp1, "td_error": q_selected - td_target.detach()}


q = QNetwork().cuda()
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters(), lr=1e-4)
memory = Replay(2_000)
for step in range(12):
    loss, stats = q_loss(q, target, *memory.sample(BATCH, "cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        target.load_state_dict(q.state_dict())
        print(step, stats["td_error"].abs().mean().item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
