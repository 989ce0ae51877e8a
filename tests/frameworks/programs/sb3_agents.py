# SPDX-License-Identifier: Apache-2.0
# needs: stable_baselines3
"""Stable-Baselines3: PPO collects and learns, SAC learns from its replay buffer."""
import gymnasium
import numpy
from stable_baselines3 import PPO, SAC


class Walk(gymnasium.Env):
    """A state of 512 numbers."""

    observation_space = gymnasium.spaces.Box(-1, 1, (512,), numpy.float32)

    def __init__(self, action_space):
        self.action_space = action_space

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.n = 0
        return self.observe(), {}

    def step(self, action):
        self.n += 1
        return self.observe(), 1.0, self.n >= 30, False, {}

    def observe(self):
        return self.np_random.uniform(-1, 1, 512).astype(numpy.float32)


width = {"net_arch": [1024, 1024]}
discrete, continuous = gymnasium.spaces.Discrete(4), gymnasium.spaces.Box(-1, 1, (8,), numpy.float32)
PPO("MlpPolicy", Walk(discrete), n_steps=64, batch_size=32, n_epochs=2, device="cuda", seed=0, policy_kwargs=width).learn(128)
SAC("MlpPolicy", Walk(continuous), learning_starts=20, batch_size=256, buffer_size=1000, device="cuda", seed=0, policy_kwargs=width).learn(60)
