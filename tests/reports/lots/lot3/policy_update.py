# SPDX-License-Identifier: Apache-2.0
"""Policy updates on long completions, with the entropy of every token as a figure to watch."""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 48000


def entropy_from_logits(logits, chunk_size=1):
    if sys.argv[1] == "fixed":
        entropies = []
        for chunk in logits.reshape(-1, logits.shape[-1]).split(128, dim=0):
            logps = F.log_softmax(chunk, dim=-1)
            entropies.append(-(torch.exp(logps) * logps).sum(-1))
        return torch.cat(entropies).view(logits.shape[:-1])
    entropies = []
    for chunk in logits.split(chunk_size, dim=0):
        logps = F.log_softmax(chunk, dim=-1)
        entropies.extend(-(torch.exp(logps) * logps).sum(-1))
    return torch.stack(entropies)


def selective_log_softmax(logits, index):
    rows = []
    for row, labels in zip(logits, index):
        rows.append(row.gather(-1, labels[:, None]).squeeze(-1) - torch.logsumexp(row, dim=-1))
    return torch.stack(rows)


config = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4, vocab_size=VOCABULARY,
                     max_position_embeddings=4096, tie_word_embeddings=True)
with torch.device("cuda"):
    model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
for step in range(2):
    ids = torch.randint(0, VOCABULARY, (1, 3073), device="cuda")
    advantages = torch.randn(1, 1, device="cuda")
    with torch.no_grad():
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits / 0.9
        old = selective_log_softmax(logits, ids[:, 1:])
        entropy = entropy_from_logits(logits).mean()
        del logits
    for start in (0, 1024, 2048):
        part = slice(start, start + 1024)
        logits = model(input_ids=ids[:, :-1][:, part], use_cache=False).logits / 0.9
        logps = selective_log_softmax(logits, ids[:, 1:][:, part])
        loss = -(torch.exp(logps - old[:, part]) * advantages).mean() / 3
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, entropy.shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
