# SPDX-License-Identifier: Apache-2.0
"""A Q-network learns to play from pictures; the last transitions are kept on the device and sampled for each update."""
import random
import sys
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ACTIONS = 6


class State:
    def __init__(self, raw):
        self.raw = raw

    @classmethod
    def from_gym(cls, observation, device, dtype=np.float32):
        return cls(torch.from_numpy(np.array(observation, dtype=dtype)).to(device))


class Game:
    def __init__(self):
        self.frames = deque(maxlen=4)

    def reset(self):
        self.frames.extend(np.zeros((4, 84, 84), dtype=np.uint8))
        return np.stack(self.frames)

    def step(self, action):
        self.frames.append(np.full((84, 84), action, dtype=np.uint8))
        return np.stack(self.frames), random.random()


class Environment:
    def __init__(self, game, device):
        self.game, self.device = game, device

    def state(self, observation):
        if sys.argv[1] == "fixed":
            return State.from_gym(observation, self.device, dtype=observation.dtype)
        return State.from_gym(observation, self.device)

    def reset(self):
        return self.state(self.game.reset())

    def step(self, action):
        observation, reward = self.game.step(action)
        return self.state(observation), reward


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU())
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, ACTIONS))

    def forward(self, states):
        return self.head(self.body(states.float() / 255))


class ReplayBuffer:
    def __init__(self, capacity):
        self.buffer = deque(maxlen=capacity)

    def store(self, *transition):
        self.buffer.append(transition)

    def sample(self, n):
        states, actions, rewards, following = zip(*random.sample(self.buffer, n))
        return (torch.stack([s.raw for s in states]), torch.tensor(actions, device="cuda"), torch.tensor(rewards, device="cuda"),
                torch.stack([s.raw for s in following]))


q, env, replay = QNetwork().cuda(), Environment(Game(), "cuda"), ReplayBuffer(20000)
optimizer = torch.optim.Adam(q.parameters(), lr=1e-4)
state = env.reset()
for frame in range(6000):
    action = random.randrange(ACTIONS)
    following, reward = env.step(action)
    replay.store(state, action, reward, following)
    state = following
    if frame % 2000 == 1999:
        for update in range(10):
            states, actions, rewards, after = replay.sample(64)
            with torch.no_grad():
                target = rewards + 0.99 * q(after).max(1).values
            loss = F.smooth_l1_loss(q(states).gather(1, actions[:, None]).squeeze(1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(frame + 1, torch.cuda.max_memory_allocated() >> 20, "MiB")
