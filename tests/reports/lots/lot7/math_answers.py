# SPDX-License-Identifier: Apache-2.0
"""A language model learns arithmetic with GRPO: groups of answers to a prompt are rewarded, and a reference model holds it back."""
import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, HEADS, LAYERS, PROMPT, COMPLETION, GENERATIONS, BETA = 24_000, 256, 4, 4, 448, 96, 8, 0.04


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.up(self.norm2(x))))


class CausalLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = nn.Embedding(VOCAB, WIDTH), nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm, self.lm_head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids, num_logits_to_keep=0):
        hidden = self.norm(self.layers(self.embed(ids)))
        return self.lm_head(hidden[:, -num_logits_to_keep:])


def get_per_token_logps(model, ids):
    if sys.argv[1] == "fixed":
        logits = model(ids, num_logits_to_keep=COMPLETION + 1)[:, :-1]
        ids = ids[:, -COMPLETION:]
    else:
        logits, ids = model(ids)[:, :-1], ids[:, 1:]
    per_token_logps = []
    for logits_row, ids_row in zip(logits, ids):
        log_probs = logits_row.log_softmax(dim=-1)
        per_token_logps.append(log_probs.gather(1, ids_row.unsqueeze(1)).squeeze(1))
    return torch.stack(per_token_logps)[:, -COMPLETION:]


policy = CausalLM().cuda()
ref_model = copy.deepcopy(policy).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
for step in range(4):
    prompt = torch.randint(0, VOCAB, (1, PROMPT)).expand(GENERATIONS, -1)
    completions = torch.randint(0, VOCAB, (GENERATIONS, COMPLETION))
    mask = (torch.arange(COMPLETION) < torch.randint(20, COMPLETION, (GENERATIONS, 1))).float().cuda()
    ids = torch.cat([prompt, completions], dim=1).cuda()
    rewards = torch.randint(0, 2, (GENERATIONS,)).float().cuda()
    with torch.no_grad():
        ref_logps = get_per_token_logps(ref_model, ids)
    logps = get_per_token_logps(policy, ids)
    kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
    advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
    per_token_loss = -(torch.exp(logps - logps.detach()) * advantages.unsqueeze(1) - BETA * kl)
    loss = ((per_token_loss * mask).sum(1) / mask.sum(1)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
