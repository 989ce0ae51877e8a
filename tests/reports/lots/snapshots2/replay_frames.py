# SPDX-License-Identifier: Apache-2.0
"""Q-learning from pictures with a callback that records the state alone: stacks of live blocks, no history. It writes when the error arrives."""
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]


class OOMExceptionCallback:
    def __init__(self):
        torch.cuda.memory._record_memory_history("state")

    def on_exception(self):
        torch.cuda.memory._dump_snapshot(str(FOLDER / "oom_snapshot.pickle"))


class Replay:
    def __init__(self):
        self.observations, self.actions, self.rewards = [], [], []

    def push(self, frames, action, reward):
        self.observations.append(frames if FIXED else frames.float() / 255)
        self.actions.append(action)
        self.rewards.append(reward)

    def sample(self, n):
        at = torch.randint(0, len(self.actions), (n,)).tolist()
        frames = torch.stack([self.observations[i] for i in at])
        return frames.float() / 255 if FIXED else frames, torch.stack([self.actions[i] for i in at]), torch.stack([self.rewards[i] for i in at])


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                                 nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(), nn.Linear(512, 6))

    def forward(self, x):
        return self.net(x)


callback = OOMExceptionCallback()
critic, target, replay = Critic().cuda(), Critic().cuda(), Replay()
optimizer = torch.optim.Adam(critic.parameters())
try:
    for step in range(9000):
        replay.push(torch.randint(0, 255, (4, 84, 84), dtype=torch.uint8, device="cuda"), torch.tensor(step % 6).cuda(), torch.tensor(1.0).cuda())
        if step % 40 == 39:
            frames, actions, rewards = replay.sample(32)
            with torch.no_grad():
                value = rewards + 0.99 * target(frames).max(1).values
            loss = F.smooth_l1_loss(critic(frames).gather(1, actions[:, None])[:, 0], value)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
except Exception:
    callback.on_exception()
    raise
finally:
    print("truth", {"step": step, "replay": sum(t.nbytes for t in replay.observations), "parameters": sum(p.nbytes for p in critic.parameters())},
          torch.cuda.max_memory_allocated())
