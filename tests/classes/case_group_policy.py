# SPDX-License-Identifier: Apache-2.0
"""A language model that learns from rewards: answers are drawn with a cache made by hand, the log-probabilities of the
policy and of a frozen copy are kept, then a few passes over the answers in micro-batches, weights in bf16."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

device, VOCABULARY, WIDTH, HEADS = "cuda", 12000, 512, 8


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, past=None):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if past is not None and past[0] is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=s > 1)
        return self.out(y.transpose(1, 2).reshape(b, s, d)), (k, v)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, past):
        y, present = self.attention(self.n1(x), past)
        x = x + y
        return x + self.mlp(self.n2(x)), present


class Policy(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.tokens, self.blocks = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids, pasts=None):
        x, presents = self.tokens(ids), []
        for i, b in enumerate(self.blocks):
            x, present = b(x, pasts[i] if pasts else None)
            presents.append(present)
        return self.head(self.norm(x)), presents


policy = Policy().to(device, torch.bfloat16)
reference = copy.deepcopy(policy).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
runner.declare(policy, optimizer)
truth.model(reference)
held, caches = {}, []
truth.holds("inputs", "answers and what goes with them", lambda: held, or_else=["forward_temporaries"])
truth.holds("kv_cache", "keys and values", lambda: caches)


@torch.no_grad()
def rollout(prompt, new):
    ids, x, pasts = prompt, prompt, None
    for t in range(new):
        with truth.phase("forward"):
            logits, pasts = policy(x, pasts)
            x = (logits[:, -1].float() / 0.7).softmax(-1).argmax(-1, keepdim=True)
            ids = torch.cat([ids, x], 1)
        caches[:] = pasts
        if t in (0, 5, 11):
            truth.mark("drawing")
    caches.clear()
    return ids


def logprobs(model, ids):
    logits, _ = model(ids)
    return torch.gather(logits[:, :-1].float().log_softmax(-1), 2, ids[:, 1:, None]).squeeze(-1)


for step in range(2):
    with truth.phase("data"):
        held["prompt"] = prompt = torch.randint(0, VOCABULARY, (2, 96)).to(device).repeat_interleave(8, 0)
    ids = held["ids"] = rollout(prompt, 12)
    rewards = held["rewards"] = torch.randn(16).to(device)
    grouped = rewards.view(2, 8)
    with truth.phase("forward"), torch.no_grad():
        held["advantages"] = advantages = ((grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)).flatten()
        held["old"] = old = torch.cat([logprobs(policy, part) for part in ids.split(4)])
        held["ref"] = ref = torch.cat([logprobs(reference, part) for part in ids.split(4)])
    truth.mark("rewarded")
    for part in range(4):
        at = slice(4 * part, 4 * part + 4)
        with truth.phase("forward"):
            new = logprobs(policy, ids[at])
            ratio = torch.exp(new - old[at])
            adv = advantages[at].unsqueeze(1)
            kl = torch.exp(ref[at] - new) - (ref[at] - new) - 1
            loss = (-torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv) + 0.04 * kl).mean() / 4
        truth.mark("forward")
        with truth.phase("backward"):
            loss.backward()
        truth.mark("backward")
    with truth.phase("step"):
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
    truth.mark("step")
    optimizer.zero_grad()
truth.finish()
