# SPDX-License-Identifier: Apache-2.0
"""A model of the world: sequences from a memory, cells rolled through time one step after the other, then an actor that learns
in what the model imagines while the model itself is frozen for it, returns walked back to front, three optimizers."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

device, T, B, H = "cuda", 24, 32, 12


class World(nn.Module):
    def __init__(self, deter=1024, stoch=256):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 32, 4, 2), nn.ELU(), nn.Conv2d(32, 64, 4, 2), nn.ELU(), nn.Conv2d(64, 128, 4, 2), nn.ELU(), nn.Flatten())
        self.cell = nn.GRUCell(1024, deter)
        self.inp, self.prior = nn.Linear(stoch + 4, 1024), nn.Linear(deter, 2 * stoch)
        self.post = nn.Linear(deter + 128 * 6 * 6, 2 * stoch)
        self.decoder = nn.Sequential(nn.Linear(deter + stoch, 128 * 6 * 6), nn.Unflatten(1, (128, 6, 6)), nn.ConvTranspose2d(128, 64, 4, 2), nn.ELU(),
                                     nn.ConvTranspose2d(64, 32, 5, 2), nn.ELU(), nn.ConvTranspose2d(32, 3, 4, 2))
        self.reward = nn.Sequential(nn.Linear(deter + stoch, 512), nn.ELU(), nn.Linear(512, 1))
        self.deter, self.stoch = deter, stoch

    def initial(self, n):
        return {"deter": torch.zeros(n, self.deter, device=device), "stoch": torch.zeros(n, self.stoch, device=device)}

    def imagine(self, state, action):
        x = F.elu(self.inp(torch.cat([state["stoch"], action], -1)))
        deter = self.cell(x, state["deter"])
        mean, std = self.prior(deter).chunk(2, -1)
        return {"deter": deter, "stoch": mean + F.softplus(std) * torch.randn_like(mean), "mean": mean, "std": std}

    def observe(self, embeds, actions):
        state, states, priors = self.initial(embeds.shape[1]), [], []
        for t in range(embeds.shape[0]):
            prior = self.imagine(state, actions[t])
            mean, std = self.post(torch.cat([prior["deter"], embeds[t]], -1)).chunk(2, -1)
            state = {"deter": prior["deter"], "stoch": mean + F.softplus(std) * torch.randn_like(mean), "mean": mean, "std": std}
            states.append(state)
            priors.append(prior)
        return [{k: torch.stack([s[k] for s in seq]) for k in seq[0]} for seq in (states, priors)]


def features(state):
    return torch.cat([state["deter"], state["stoch"]], -1)


def mlp(cin, cout):
    return nn.Sequential(nn.Linear(cin, 1024), nn.ELU(), nn.Linear(1024, 1024), nn.ELU(), nn.Linear(1024, cout))


world, actor, critic = World().to(device), mlp(1280, 4).to(device), mlp(1280, 1).to(device)
optimizers = [torch.optim.Adam(m.parameters(), lr) for m, lr in ((world, 6e-4), (actor, 8e-5), (critic, 8e-5))]
for m, o in zip((world, actor, critic), optimizers):
    runner.declare(m, o)
memory = {"image": torch.zeros(200, T, 3, 64, 64, dtype=torch.uint8, device=device), "action": torch.zeros(200, T, 4, device=device),
          "reward": torch.zeros(200, T, device=device)}
truth.holds("inputs", "memory", lambda: memory)
batches = runner.Batches(lambda: {k: v[torch.randint(0, 200, (B,))].transpose(0, 1) for k, v in memory.items()})
extra = []
truth.holds("inputs", "the pictures made ready, the states to start from", lambda: extra, or_else=["forward_temporaries", "activations"])


def step(o, loss, name):
    o.zero_grad(set_to_none=True)
    with truth.phase("backward"):
        loss.backward()
    truth.mark(name + "_backward")
    with truth.phase("step"):
        nn.utils.clip_grad_norm_([p for g in o.param_groups for p in g["params"]], 100.0)
        o.step()


for _ in range(3):
    batch = batches.next()
    with truth.phase("data"):
        image = batch["image"].float() / 255.0 - 0.5
    extra[:] = [image]
    with truth.phase("forward"):
        embeds = world.encoder(image.flatten(0, 1)).view(T, B, -1)
        post, prior = world.observe(embeds, batch["action"])
        feat = features(post)
        picture = world.decoder(feat.flatten(0, 1))
        loss = F.mse_loss(picture, image.flatten(0, 1)) + F.mse_loss(world.reward(feat)[..., 0], batch["reward"])
        loss = loss + ((post["mean"] - prior["mean"]) ** 2 / F.softplus(prior["std"]) ** 2).mean()
    truth.mark("world_forward")
    step(optimizers[0], loss, "world")
    start = {k: v.detach().flatten(0, 1) for k, v in post.items()}
    extra[1:] = list(start.values())
    world.requires_grad_(False)
    critic.requires_grad_(False)
    with truth.phase("forward"):
        state, feats = start, []
        for _ in range(H):
            action = torch.tanh(actor(features(state).detach()))
            state = world.imagine(state, action)
            feats.append(features(state))
        feats = torch.stack(feats)
        reward, value = world.reward(feats)[..., 0], critic(feats)[..., 0]
        last, returns = value[-1], []
        for t in reversed(range(H - 1)):
            last = reward[t] + 0.99 * (0.05 * value[t + 1] + 0.95 * last)
            returns.insert(0, last)
        returns = torch.stack(returns)
        actor_loss = -returns.mean()
    truth.mark("actor_forward")
    step(optimizers[1], actor_loss, "actor")
    world.requires_grad_(True)
    critic.requires_grad_(True)
    with truth.phase("forward"):
        critic_loss = F.mse_loss(critic(feats[:-1].detach())[..., 0], returns.detach())
    truth.mark("critic_forward")
    step(optimizers[2], critic_loss, "critic")
    truth.mark("end")
truth.finish()
