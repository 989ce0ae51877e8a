# SPDX-License-Identifier: Apache-2.0
"""The sampling step of a language-model server that verifies several drafted tokens of each request."""
import sys

import torch
from torch import nn

MODE = sys.argv[1]
VOCAB, WIDTH, REQUESTS, DRAFT = 65_536, 1024, 192, 7


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(6)])
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens):
        return self.blocks(self.embed(tokens))


class Sampler:
    def __init__(self, requests):
        self.temperature = torch.full((requests, 1), 0.7, device="cuda")
        self.bias = torch.zeros(VOCAB, device="cuda", dtype=torch.bfloat16)

    def apply_params(self, logits, rows):
        if MODE == "broken":
            logits = logits.to(torch.float32)
        logits.div_(self.temperature[rows])
        logits.add_(self.bias)
        return logits

    def sample(self, logits, rows):
        logits = self.apply_params(logits, rows)
        noise = torch.empty(len(logits), 1, device="cuda").exponential_()
        return logits.argmax(-1), noise


class Runner:
    def __init__(self):
        self.model = Model().cuda().to(torch.bfloat16)
        self.sampler = Sampler(REQUESTS)
        self.cache = torch.zeros(6, REQUESTS, 256, WIDTH, device="cuda", dtype=torch.bfloat16)

    @torch.inference_mode()
    def step(self, tokens):
        rows = torch.arange(REQUESTS, device="cuda").repeat_interleave(DRAFT + 1)
        hidden = self.model(tokens.flatten())
        self.cache[:, :, 0] = hidden.view(REQUESTS, DRAFT + 1, WIDTH)[:, -1]
        chosen, _ = self.sampler.sample(self.model.head(hidden), rows)
        return chosen.view(REQUESTS, DRAFT + 1)


def main():
    runner = Runner()
    tokens = torch.zeros(REQUESTS, DRAFT + 1, dtype=torch.long, device="cuda")
    for _ in range(6):
        tokens = runner.step(tokens)


main()
