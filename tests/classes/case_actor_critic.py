# SPDX-License-Identifier: Apache-2.0
"""Soft actor and critics: a memory of pictures on the device, two critics under one module with a target, a temperature that
is a bare leaf, three optimizers, critics frozen while the actor learns."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

device = torch.device("cuda")


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(9, 32, 3, 2), nn.Conv2d(32, 32, 3), nn.Conv2d(32, 32, 3)])
        self.fc, self.ln = nn.Linear(32 * 19 * 19, 50), nn.LayerNorm(50)

    def forward(self, obs, detach=False):
        h = obs.float() / 255.0 - 0.5
        for c in self.convs:
            h = torch.relu(c(h))
        h = h.view(h.size(0), -1)
        return torch.tanh(self.ln(self.fc(h.detach() if detach else h)))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.trunk = nn.Sequential(nn.Linear(50, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 12))

    def forward(self, obs, detach=False):
        mu, log_std = self.trunk(self.encoder(obs, detach)).chunk(2, -1)
        std = (torch.tanh(log_std) * 4 - 3).exp()
        noise = torch.randn_like(mu)
        pi = mu + noise * std
        log_pi = (-0.5 * noise.pow(2) - log_std).sum(-1, keepdim=True) - torch.log(F.relu(1 - torch.tanh(pi).pow(2)) + 1e-6).sum(-1, keepdim=True)
        return torch.tanh(pi), log_pi


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.Q1, self.Q2 = (nn.Sequential(nn.Linear(56, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)) for _ in range(2))

    def forward(self, obs, action, detach=False):
        x = torch.cat([self.encoder(obs, detach), action], dim=1)
        return self.Q1(x), self.Q2(x)


class Memory:
    def __init__(self, size):
        self.obses = torch.empty((size, 9, 48, 48), dtype=torch.uint8, device=device)
        self.next_obses = torch.empty((size, 9, 48, 48), dtype=torch.uint8, device=device)
        self.actions = torch.empty((size, 6), device=device)
        self.rewards = torch.empty((size, 1), device=device)
        self.idx, self.size = 0, size

    def add(self, obs, action, reward, next_obs):
        self.obses[self.idx].copy_(obs)
        self.next_obses[self.idx].copy_(next_obs)
        self.actions[self.idx].copy_(action)
        self.rewards[self.idx] = reward
        self.idx = (self.idx + 1) % self.size

    def sample(self, n):
        i = torch.randint(0, self.size, (n,))
        return self.obses[i].float(), self.actions[i], self.rewards[i], self.next_obses[i].float()


actor, critic = Actor().to(device), Critic().to(device)
critic_target = copy.deepcopy(critic)
log_alpha = torch.tensor(-2.3, device=device, requires_grad=True)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
alpha_opt = torch.optim.Adam([log_alpha], lr=1e-4, betas=(0.5, 0.999))
runner.declare(actor, actor_opt)
runner.declare(critic, critic_opt)
truth.model(critic_target)
truth.optimizer(alpha_opt)
truth.holds("parameters", "temperature", lambda: [log_alpha])
memory = Memory(600)
truth.holds("inputs", "memory", lambda: vars(memory))
batches = runner.Batches(lambda: memory.sample(64))
held = {}
truth.holds("inputs", "what was seen", lambda: held)
for step in range(3):
    for _ in range(4):
        with truth.phase("data"):
            held["obs"] = obs = torch.randint(0, 255, (9, 48, 48), dtype=torch.uint8).to(device)
        with truth.phase("forward"), torch.no_grad():
            action, _ = actor(obs.unsqueeze(0))
        memory.add(obs, action[0], 1.0, obs)
    obs, action, reward, next_obs = batches.next()
    with truth.phase("forward"):
        with torch.no_grad():
            next_action, next_log_pi = actor(next_obs)
            q1, q2 = critic_target(next_obs, next_action)
            wanted = reward + 0.99 * (torch.min(q1, q2) - log_alpha.exp() * next_log_pi)
        q1, q2 = critic(obs, action)
        critic_loss = F.mse_loss(q1, wanted) + F.mse_loss(q2, wanted)
    truth.mark("critic_forward")
    critic_opt.zero_grad()
    with truth.phase("backward"):
        critic_loss.backward()
    truth.mark("critic_backward")
    with truth.phase("step"):
        critic_opt.step()
    critic.requires_grad_(False)
    with truth.phase("forward"):
        pi, log_pi = actor(obs, detach=True)
        actor_loss = (log_alpha.detach().exp() * log_pi - torch.min(*critic(obs, pi, detach=True))).mean()
    truth.mark("actor_forward")
    actor_opt.zero_grad()
    with truth.phase("backward"):
        actor_loss.backward()
    truth.mark("actor_backward")
    with truth.phase("step"):
        actor_opt.step()
    critic.requires_grad_(True)
    alpha_opt.zero_grad()
    with truth.phase("forward"):
        alpha_loss = (log_alpha.exp() * (-log_pi + 6).detach()).mean()
    with truth.phase("backward"):
        alpha_loss.backward()
    with truth.phase("step"):
        alpha_opt.step()
    truth.mark("step")
    with truth.phase("step"):
        for p, t in zip(critic.parameters(), critic_target.parameters()):
            t.data.copy_(0.01 * p.data + 0.99 * t.data)
    truth.mark("end")
truth.finish()
