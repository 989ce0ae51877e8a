# SPDX-License-Identifier: Apache-2.0
"""A policy for a robot with four legs is watched in a simulator that runs on the device."""
import sys

import torch
from torch import nn

ROBOTS, JOINTS, HISTORY, OBSERVATIONS = 2048, 12, 15, 70


class LeggedRobot:
    def __init__(self, device="cuda"):
        self.joint_pos, self.joint_vel = torch.zeros(ROBOTS, JOINTS, device=device), torch.zeros(ROBOTS, JOINTS, device=device)
        self.actions, self.last_actions = torch.zeros(ROBOTS, JOINTS, device=device), torch.zeros(ROBOTS, JOINTS, device=device)
        self.commands = torch.rand(ROBOTS, OBSERVATIONS - 4 * JOINTS, device=device)

    def step(self, actions):
        self.last_actions = self.actions
        self.actions = actions.clamp(-10, 10)
        torques = 20 * (0.25 * self.actions - self.joint_pos) - 0.5 * self.joint_vel
        self.joint_vel = self.joint_vel + 0.02 * torques.clamp(-30, 30)
        self.joint_pos = self.joint_pos + 0.02 * self.joint_vel
        return self.observe()

    def observe(self):
        return torch.cat([self.joint_pos, self.joint_vel, self.actions, self.last_actions, self.commands], -1)


class HistoryWrapper:
    def __init__(self, env):
        self.env = env
        self.history = torch.zeros(ROBOTS, HISTORY * OBSERVATIONS, device="cuda")

    def step(self, actions):
        if sys.argv[1] == "fixed":
            with torch.no_grad():
                observation = self.env.step(actions)
                self.history = torch.cat([self.history[:, OBSERVATIONS:], observation], -1)
        else:
            observation = self.env.step(actions)
            self.history = torch.cat([self.history[:, OBSERVATIONS:], observation], -1)
        return {"obs": observation, "obs_history": self.history}

    def reset(self):
        return {"obs": self.env.observe(), "obs_history": self.history}


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.adaptation = nn.Sequential(nn.Linear(HISTORY * OBSERVATIONS, 256), nn.ELU(), nn.Linear(256, 8))
        self.body = nn.Sequential(nn.Linear(HISTORY * OBSERVATIONS + 8, 256), nn.ELU(), nn.Linear(256, 128), nn.ELU(), nn.Linear(128, JOINTS))

    def forward(self, obs):
        latent = self.adaptation(obs["obs_history"])
        return self.body(torch.cat([obs["obs_history"], latent], -1))


def play(env, policy, steps=40):
    obs = env.reset()
    speeds = []
    for step in range(steps):
        actions = policy(obs)
        obs = env.step(actions)
        speeds.append(obs["obs"][0, :JOINTS].mean().item())
        if step % 8 == 7:
            print(step, torch.cuda.memory_allocated() >> 20, "MiB")
    return speeds


play(HistoryWrapper(LeggedRobot()), Policy().cuda().eval())
