# SPDX-License-Identifier: Apache-2.0
"""The response to doses is a hierarchical model; its posterior is sampled by Hamiltonian Monte Carlo."""
import math
import random
import sys

import torch

PATIENTS, TIMES = 2000, 700
dose = torch.rand(PATIENTS, TIMES, device="cuda")
response = torch.rand(PATIENTS, TIMES, device="cuda")


def normal_log_prob(x, mean, scale):
    return -((x - mean) ** 2) / (2 * scale ** 2) - torch.log(scale) - math.log(math.sqrt(2 * math.pi))


def model(latents):
    trace = dict(latents)
    zero, one = torch.zeros((), device="cuda"), torch.ones((), device="cuda")
    trace["slope.log_prob"] = normal_log_prob(latents["slope"], zero, one)
    trace["offset.log_prob"] = normal_log_prob(latents["offset"], zero, one)
    trace["response.mean"] = latents["slope"][:, None] * dose + latents["offset"][:, None]
    trace["response.log_prob"] = normal_log_prob(response, trace["response.mean"], 0.1 * one)
    return trace


class HMC:
    def __init__(self, model, step_size=1e-3, steps=4):
        self.model, self.step_size, self.steps = model, step_size, steps

    def potential(self, latents):
        return -sum(value.sum() for name, value in self.model(latents).items() if name.endswith("log_prob"))

    def gradient(self, latents):
        latents = {name: value.detach().requires_grad_() for name, value in latents.items()}
        energy = self.potential(latents)
        return energy.detach(), dict(zip(latents, torch.autograd.grad(energy, list(latents.values()))))

    def sample(self, latents):
        z = dict(latents)
        r = {name: torch.randn_like(value) for name, value in z.items()}
        energy, grad = self.gradient(z)
        start = float(energy + sum((v ** 2).sum() for v in r.values()) / 2)
        for _ in range(self.steps):
            r = {name: r[name] - self.step_size / 2 * grad[name] for name in r}
            z = {name: z[name] + self.step_size * r[name] for name in z}
            energy, grad = self.gradient(z)
            r = {name: r[name] - self.step_size / 2 * grad[name] for name in r}
        end = float(energy + sum((v ** 2).sum() for v in r.values()) / 2)
        return z if math.log(random.random()) < start - end else latents


class MCMC:
    def __init__(self, kernel, num_samples, warmup_steps):
        self.kernel, self.num_samples, self.warmup_steps = kernel, num_samples, warmup_steps
        self.samples = []

    def run(self, latents):
        for i in range(self.warmup_steps + self.num_samples):
            latents = self.kernel.sample(latents)
            if i < self.warmup_steps:
                continue
            if sys.argv[1] == "fixed":
                self.samples.append(latents)
            else:
                with torch.no_grad():
                    self.samples.append(self.kernel.model(latents))
            if i % 20 == 19:
                print(i, torch.cuda.memory_allocated() >> 20, "MiB")

    def get_samples(self):
        return {name: torch.stack([s[name] for s in self.samples]) for name in ("slope", "offset")}


mcmc = MCMC(HMC(model), num_samples=90, warmup_steps=10)
mcmc.run({"slope": torch.zeros(PATIENTS, device="cuda"), "offset": torch.zeros(PATIENTS, device="cuda")})
print({name: value.shape for name, value in mcmc.get_samples().items()})
