# SPDX-License-Identifier: Apache-2.0
"""One PPO phase on prompts and answers: values and log-probabilities of the batch first, then updates in mini-batches."""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

KEEP = sys.argv[1] != "fixed"
BATCH, MINI, LENGTH = 32, 4, 128


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lm = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=384, n_head=6, n_positions=256))
        self.value = nn.Linear(384, 1)

    def forward(self, ids):
        out = self.lm(ids, output_hidden_states=True, use_cache=False)
        return out.logits, self.value(out.hidden_states[-1]).squeeze(-1)


def logprobs_of(logits, labels):
    return torch.gather(F.log_softmax(logits, dim=2), 2, labels.unsqueeze(2)).squeeze(-1)


def batched_forward(model, ids, return_logits):
    all_logprobs, all_logits, all_values = [], [], []
    for i in range(0, len(ids), MINI):
        part = ids[i:i + MINI]
        logits, values = model(part)
        if return_logits:
            all_logits.append(logits)
        all_values.append(values[:, :-1])
        all_logprobs.append(logprobs_of(logits[:, :-1], part[:, 1:]))
        del logits
    return torch.cat(all_logprobs), torch.cat(all_logits)[:, :-1] if return_logits else None, torch.cat(all_values)


def loss_of(old_logprobs, old_values, logprobs, logits, values, rewards):
    advantages = rewards[:, None] - old_values
    ratio = torch.exp(logprobs - old_logprobs)
    policy = torch.max(-advantages * ratio, -advantages * torch.clamp(ratio, 0.8, 1.2)).mean()
    entropy = -(F.softmax(logits, -1) * F.log_softmax(logits, -1)).sum(-1).mean()
    return policy + 0.1 * (values - rewards[:, None]).pow(2).mean() - 0.01 * entropy


model, reference = Policy().cuda(), Policy().cuda().eval()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
for phase in range(2):
    ids = torch.randint(0, 50257, (BATCH, LENGTH), device="cuda")
    rewards = torch.randn(BATCH, device="cuda")
    with torch.no_grad():
        logprobs, logits, values = batched_forward(model, ids, return_logits=KEEP)
        ref_logprobs, ref_logits, _ = batched_forward(reference, ids, return_logits=KEEP)
    rewards = rewards - 0.1 * (logprobs - ref_logprobs).sum(-1)
    for i in range(0, BATCH, MINI):
        part = slice(i, i + MINI)
        new_logprobs, new_logits, new_values = batched_forward(model, ids[part], return_logits=True)
        loss = loss_of(logprobs[part], values[part], new_logprobs, new_logits, new_values, rewards[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(phase, torch.cuda.max_memory_allocated() >> 20, "MiB")
