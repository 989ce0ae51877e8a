# SPDX-License-Identifier: Apache-2.0
"""A language model learns by GRPO: an inference engine on the same device plays rollouts with the policy's weights, then the policy is trained."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, LAYERS, HEADS, PROMPT, ANSWER, PROMPTS, GROUP, MICRO = 6000, 512, 8, 8, 64, 24, 8, 8, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache=None, start=0):
        q, k, v = self.qkv(self.ln1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            end = start + x.shape[1]
            cache[0][:, :, start:end], cache[1][:, :, start:end] = k, v
            k, v = cache[0][:, :, :end], cache[1][:, :, :end]
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1).transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers, self.norm = nn.Embedding(VOCAB, WIDTH), nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids, caches=None, start=0):
        x = self.embed(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, caches and caches[i], start)
        return self.lm_head(self.norm(x))


class InferenceEngine:
    def wake_up(self, slots=96, length=256):
        self.model = LM().to("cuda", torch.bfloat16).eval()
        shape = (2, slots, HEADS, length, WIDTH // HEADS)
        self.kv_cache = [torch.zeros(shape, dtype=torch.bfloat16, device="cuda") for _ in range(LAYERS)]

    def update_weights(self, state):
        self.model.load_state_dict(state)

    @torch.inference_mode()
    def generate(self, prompts):
        ids, new, start = prompts, prompts, 0
        caches = [cache[:, :len(prompts)] for cache in self.kv_cache]
        for _ in range(ANSWER):
            logits = self.model(new, caches, start)[:, -1].float()
            start, new = ids.shape[1], torch.multinomial(logits.softmax(-1), 1)
            ids = torch.cat([ids, new], 1)
        return ids

    def sleep(self):
        self.model = self.kv_cache = None


class PolicyWorker:
    def __init__(self):
        self.model = LM().cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)

    def optimizer_to(self, device):
        for state in self.optimizer.state.values():
            state.update({name: value.to(device) for name, value in state.items() if value.dim()})

    def train(self, ids, advantages):
        self.optimizer_to("cuda")
        self.optimizer.zero_grad()
        for rows, advantage in zip(ids.split(MICRO), advantages.split(MICRO)):
            logprobs = -F.cross_entropy(self.model(rows[:, :-1]).transpose(1, 2), rows[:, 1:], reduction="none")[:, PROMPT - 1:]
            loss = -(torch.exp(logprobs - logprobs.detach()) * advantage[:, None]).mean() * MICRO / len(ids)
            loss.backward()
        self.optimizer.step()
        if sys.argv[1] == "fixed":
            self.optimizer.zero_grad()
        self.optimizer_to("cpu")
        return loss.item()


policy, engine = PolicyWorker(), InferenceEngine()
for step in range(3):
    engine.wake_up()
    engine.update_weights(policy.model.state_dict())
    ids = engine.generate(torch.randint(0, VOCAB, (PROMPTS, PROMPT)).repeat_interleave(GROUP, 0).cuda())
    engine.sleep()
    rewards = torch.rand(PROMPTS, GROUP).cuda()
    advantages = ((rewards - rewards.mean(1, keepdim=True)) / rewards.std(1, keepdim=True)).flatten()
    print(step, policy.train(ids.clone(), advantages), torch.cuda.max_memory_allocated() >> 20, "MiB")
