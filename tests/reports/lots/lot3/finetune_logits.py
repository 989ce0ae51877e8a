# SPDX-License-Identifier: Apache-2.0
"""Supervised finetuning in bfloat16. A new version of the trainer casts the logits, as its sibling for reinforcement learning does."""
import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


@dataclass
class Config:
    vocabulary: int = 64000
    length: int = 1024
    batch: int = 4
    micro: int = 2
    steps: int = 3


def forward(model, ids, positions):
    logits = model(input_ids=ids, position_ids=positions, use_cache=False).logits
    return logits if sys.argv[1] == "fixed" else logits.float()


class FakeDataset:
    def __init__(self, config):
        self.config = config

    def __iter__(self):
        c = self.config
        while True:
            ids = torch.randint(0, c.vocabulary, (c.micro, c.length + 1))
            yield {"input_ids": ids[:, :-1], "target_ids": ids[:, 1:], "loss_mask": torch.rand(c.micro, c.length) < 0.9}


def train(config):
    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(hidden_size=384, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=6,
                                             vocab_size=config.vocabulary, max_position_embeddings=config.length)).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    data = iter(FakeDataset(config))
    for step in range(config.steps):
        total = torch.zeros((), device="cuda")
        for _ in range(config.batch // config.micro):
            batch = {k: v.cuda() for k, v in next(data).items()}
            positions = torch.arange(config.length, device="cuda").expand_as(batch["input_ids"])
            logits = forward(model, batch["input_ids"], positions)
            loss = F.cross_entropy(logits.flatten(0, 1), batch["target_ids"].flatten(), reduction="none")
            loss = (loss * batch["loss_mask"].flatten()).sum() / (config.batch * config.length)
            del logits
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")


train(Config())
