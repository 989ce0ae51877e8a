# SPDX-License-Identifier: Apache-2.0
"""Deep Q learning on pictures of a game: states are the last four frames, and a replay memory keeps transitions on the device."""
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn

ENVS, CAPACITY = 8, 24000


class State:
    def __init__(self, frames):
        self.frames = frames

    @property
    def observation(self):
        return torch.cat(self.frames)


class FrameStack:
    """A body around the agent: what it sees becomes a state of several frames."""

    def __init__(self, size=4):
        self.size, self.frames = size, None

    def process(self, frame):
        self.frames = [frame] * self.size if self.frames is None else self.frames[1:] + [frame]
        if sys.argv[1] == "fixed":
            return State(self.frames)
        return State([torch.cat(self.frames)])


class ReplayBuffer:
    def __init__(self, capacity):
        self.capacity, self.buffer, self.at = capacity, [], 0

    def store(self, state, action, reward, next_state):
        entry = (state, action, reward, next_state)
        if len(self.buffer) < self.capacity:
            self.buffer.append(entry)
        else:
            self.buffer[self.at] = entry
        self.at = (self.at + 1) % self.capacity

    def sample(self, count):
        states, actions, rewards, following = zip(*random.sample(self.buffer, count))
        stacked = [torch.stack([s.observation for s in part]) for part in (states, following)]
        return stacked[0], torch.tensor(actions, device="cuda"), torch.tensor(rewards, device="cuda"), stacked[1]


def network(actions=6):
    return nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                         nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions))


q, target = network().cuda(), network().cuda()
optimizer = torch.optim.Adam(q.parameters(), 1e-4)
memory, bodies = ReplayBuffer(CAPACITY), [FrameStack() for _ in range(ENVS)]


def update():
    s, a, r, n = memory.sample(32)
    with torch.no_grad():
        goal = r + 0.99 * target(n / 255.0).max(1).values
    loss = F.smooth_l1_loss(q(s / 255.0).gather(1, a[:, None])[:, 0], goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


states = [body.process(torch.zeros(1, 84, 84, dtype=torch.uint8, device="cuda")) for body in bodies]
for step in range(1400):
    for i, body in enumerate(bodies):
        frame = torch.zeros(1, 84, 84, dtype=torch.uint8, device="cuda")
        following = body.process(frame)
        memory.store(states[i], random.randrange(6), 0.0, following)
        states[i] = following
    if step % 350 == 349:
        for _ in range(4):
            update()
        print(step, len(memory.buffer), torch.cuda.memory_allocated() >> 20, "MiB")
