# SPDX-License-Identifier: Apache-2.0
"""Proximal policy optimisation: rollouts into tensors made beforehand, advantages, epochs of shuffled minibatches."""
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

import runner
import truth

STEPS, ENVS, FRAME = 24, 48, (4, 42, 42)


def init(layer, std=2 ** 0.5):
    nn.init.orthogonal_(layer.weight, std) if layer.weight.device.type == "meta" else nn.init.normal_(layer.weight, std=std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(init(nn.Conv2d(4, 32, 8, stride=4)), nn.ReLU(), init(nn.Conv2d(32, 64, 4, stride=2)), nn.ReLU(),
                                     nn.Flatten(), init(nn.Linear(64 * 3 * 3, 2048)), nn.ReLU(), init(nn.Linear(2048, 2048)), nn.ReLU())
        self.actor, self.critic = init(nn.Linear(2048, 6), 0.01), init(nn.Linear(2048, 1), 1)

    def get_value(self, x):
        return self.critic(self.network(x / 255.0))

    def get_action_and_value(self, x, action=None):
        hidden = self.network(x / 255.0)
        p = Categorical(logits=self.actor(hidden), validate_args=False)
        if action is None:
            action = p.logits.argmax(-1)
        return action, p.log_prob(action), p.entropy(), self.critic(hidden)


device = torch.device("cuda")
agent = Agent().to(device)
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
runner.declare(agent, optimizer)
obs = torch.zeros((STEPS, ENVS) + FRAME).to(device)
actions, logprobs, rewards, dones, values = (torch.zeros((STEPS, ENVS)).to(device) for _ in range(5))
truth.holds("inputs", "rollouts", lambda: [obs, actions, logprobs, rewards, dones, values])
current = {}
truth.holds("inputs", "the minibatch and what was computed of the rollouts", lambda: current, or_else=["forward_temporaries", "activations"])

with truth.phase("data"):
    next_obs = torch.randn((ENVS,) + FRAME).to(device)
current["next_obs"] = next_obs
for update in range(2):
    for step in range(STEPS):
        obs[step] = next_obs
        with truth.phase("forward"), torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        with truth.phase("data"):
            current["next_obs"] = next_obs = torch.randn((ENVS,) + FRAME).to(device)
            rewards[step] = torch.randn(ENVS).to(device)
    truth.mark("rollout")
    with truth.phase("forward"), torch.no_grad():
        following = agent.get_value(next_obs).reshape(1, -1)
        current["advantages"] = advantages = torch.zeros_like(rewards)
        last = 0
        for t in reversed(range(STEPS)):
            following_value = following if t == STEPS - 1 else values[t + 1]
            delta = rewards[t] + 0.99 * following_value - values[t]
            advantages[t] = last = delta + 0.99 * 0.95 * last
        current["returns"] = returns = advantages + values
    order = torch.randperm(STEPS * ENVS)
    for start in range(0, STEPS * ENVS, 384):
        mb = order[start:start + 384].to(device)
        with truth.phase("data"):
            x, a = obs.reshape((-1,) + FRAME)[mb], actions.reshape(-1).long()[mb]
        current.update(mb=mb, x=x, a=a)
        with truth.phase("forward"):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(x, a)
            ratio = (newlogprob - logprobs.reshape(-1)[mb]).exp()
            adv = advantages.reshape(-1)[mb]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            policy = torch.max(-adv * ratio, -adv * ratio.clamp(0.9, 1.1)).mean()
            loss = policy - 0.01 * entropy.mean() + 0.5 * F.mse_loss(newvalue.view(-1), returns.reshape(-1)[mb])
        truth.mark("forward")
        optimizer.zero_grad()
        with truth.phase("backward"):
            loss.backward()
        truth.mark("backward")
        with truth.phase("step"):
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        truth.mark("step")
truth.finish()
