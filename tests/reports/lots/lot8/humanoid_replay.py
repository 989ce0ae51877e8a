# SPDX-License-Identifier: Apache-2.0
"""A humanoid learns to walk in many simulations at once, off-policy (SAC), with a replay buffer on the device."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

ENVS, BUFFER, OBS, CRITIC_OBS, ACTIONS, BATCH, HIDDEN = 256, 512, 412, 285, 29, 16, 512


class ReplayBuffer:
    def __init__(self, device):
        def zeros(dim):
            return torch.zeros(ENVS, BUFFER, dim, device=device)
        self.observations, self.next_observations = zeros(OBS), zeros(OBS)
        self.critic_observations, self.next_critic_observations = zeros(CRITIC_OBS), zeros(CRITIC_OBS)
        self.actions, self.rewards, self.dones, self.ptr = zeros(ACTIONS), zeros(1), zeros(1), 0

    def extend(self, obs, critic_obs, actions, rewards, dones, next_obs, next_critic_obs):
        at = self.ptr % BUFFER
        self.observations[:, at], self.next_observations[:, at] = obs, next_obs
        self.critic_observations[:, at], self.next_critic_observations[:, at] = critic_obs, next_critic_obs
        self.actions[:, at], self.rewards[:, at], self.dones[:, at] = actions, rewards, dones
        self.ptr += 1

    def pick(self, field, index):
        return field.gather(1, index.unsqueeze(-1).expand(-1, -1, field.shape[-1])).flatten(0, 1)

    def sample(self, size):
        index = torch.randint(0, min(self.ptr, BUFFER), (ENVS, size), device=self.actions.device)
        fields = (self.observations, self.critic_observations, self.actions, self.rewards, self.dones, self.next_observations, self.next_critic_observations)
        return [self.pick(field, index) for field in fields]


class SharedReplayBuffer(ReplayBuffer):
    def __init__(self, device):
        def zeros(dim):
            return torch.zeros(ENVS, BUFFER + 1, dim, device=device)
        self.observations, self.critic_observations = zeros(OBS), zeros(CRITIC_OBS)
        self.actions, self.rewards, self.dones, self.ptr = zeros(ACTIONS), zeros(1), zeros(1), 0

    def extend(self, obs, critic_obs, actions, rewards, dones, next_obs, next_critic_obs):
        at, after = self.ptr % (BUFFER + 1), (self.ptr + 1) % (BUFFER + 1)
        for i, o, c in ((at, obs, critic_obs), (after, next_obs, next_critic_obs)):
            self.observations[:, i], self.critic_observations[:, i] = o, c
        self.actions[:, at], self.rewards[:, at], self.dones[:, at] = actions, rewards, dones
        self.ptr += 1

    def sample(self, size):
        newest, stored = self.ptr, min(self.ptr, BUFFER)
        index = (newest - 1 - torch.randint(0, stored, (ENVS, size), device=self.actions.device)) % (BUFFER + 1)
        after = (index + 1) % (BUFFER + 1)
        now = [self.pick(f, index) for f in (self.observations, self.critic_observations, self.actions, self.rewards, self.dones)]
        return [*now, self.pick(self.observations, after), self.pick(self.critic_observations, after)]


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, n_out)).cuda()


buffer = (SharedReplayBuffer if sys.argv[1] == "fixed" else ReplayBuffer)("cuda")
actor, critic, target = mlp(OBS, ACTIONS), mlp(CRITIC_OBS + ACTIONS, 1), mlp(CRITIC_OBS + ACTIONS, 1).requires_grad_(False)
optimizers = [torch.optim.AdamW(net.parameters(), lr=3e-4) for net in (actor, critic)]
obs, critic_obs = torch.randn(ENVS, OBS, device="cuda"), torch.randn(ENVS, CRITIC_OBS, device="cuda")
for step in range(60):
    with torch.no_grad():
        actions = torch.tanh(actor(obs) + 0.1 * torch.randn(ENVS, ACTIONS, device="cuda"))
        next_obs, next_critic_obs = torch.randn_like(obs), torch.randn_like(critic_obs)
    buffer.extend(obs, critic_obs, actions, torch.rand(ENVS, 1).cuda(), torch.zeros(ENVS, 1).cuda(), next_obs, next_critic_obs)
    obs, critic_obs = next_obs, next_critic_obs
    if step >= 8:
        o, c, a, r, d, o2, c2 = buffer.sample(BATCH)
        with torch.no_grad():
            goal = r + 0.99 * (1 - d) * target(torch.cat([c2, actor(o2).tanh()], -1))
        critic_loss = F.mse_loss(critic(torch.cat([c, a], -1)), goal)
        actor_loss = -critic(torch.cat([c, actor(o).tanh()], -1)).mean()
        for loss, optimizer in ((critic_loss, optimizers[1]), (actor_loss, optimizers[0])):
            optimizer.zero_grad()
            loss.backward(inputs=[p for group in optimizer.param_groups for p in group["params"]])
        for optimizer in optimizers:
            optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(target.parameters()), list(critic.parameters()), 0.005)
print("critic", critic_loss.item(), "actor", actor_loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
